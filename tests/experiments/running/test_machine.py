from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from experiments.running.machine import available_bytes, cores, host_name

MIB = 2**20
V1_WITHOUT_LIMIT = 9223372036854771712


def system(root: Path, groups: str, files: Mapping[str, object]) -> Path:
    """A fake root of the file system: `/proc/self/cgroup`, and files below `/sys/fs/cgroup`."""
    for name, content in {
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{k}": v for k, v in files.items()},
    }.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")
    return root


@pytest.fixture(autouse=True)
def _a_large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 16 cores and 1000 MiB available."""

    class Memory:
        available = 1000 * MIB

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    monkeypatch.setattr(psutil, "virtual_memory", Memory)


def test_without_control_groups_all_is_the_machines(tmp_path: Path) -> None:
    assert (cores(tmp_path), available_bytes(tmp_path)) == (16, 1000 * MIB)


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("max 100000", 16), ("400000 100000", 4), ("250000 100000", 2), ("50000 100000", 1), ("75000 50000", 1)],
)
def test_cores_are_no_more_than_the_quota_of_version_2_rounded_down(
    quota: str, expected: int, tmp_path: Path
) -> None:
    files = {"cgroup.controllers": "cpu memory", "batch/cpu.max": quota, "batch/job/cpu.max": "max 100000"}
    assert cores(system(tmp_path, "0::/batch/job", files)) == expected


@pytest.mark.parametrize(("quota", "expected"), [(-1, 16), (400_000, 4), (399_999, 3), (1, 1)])
def test_cores_are_no_more_than_the_quota_of_version_1_rounded_down(
    quota: int, expected: int, tmp_path: Path
) -> None:
    files = {"cpu/job/cpu.cfs_quota_us": quota, "cpu/job/cpu.cfs_period_us": 100_000}
    assert cores(system(tmp_path, "3:cpu,cpuacct:/job\n2:memory:/other\n0::/", files)) == expected


def test_a_process_that_is_bound_to_a_core_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {7}, raising=False)
    files = {"cgroup.controllers": "cpu", "cpu.max": "400000 100000"}
    assert cores(system(tmp_path, "0::/", files)) == 1


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"batch": (500, 100, 0), "batch/job": ("max", 100, 0)}, 400),
        ({"batch": ("max", 100, 0), "batch/job": (300, 100, 0)}, 200),
        ({"batch": (500, 450, 0), "batch/job": (300, 100, 0)}, 50),
        ({"batch": ("max", 100, 0), "batch/job": (300, 100, 80)}, 280),
        ({"batch": (300, 400, 50), "batch/job": (300, 100, 0)}, 0),
        ({"batch": (5000, 100, 0), "batch/job": ("max", 100, 0)}, 1000),
    ],
    ids=["above", "own", "the least", "inactive files", "beyond", "the machine"],
)
def test_memory_is_what_every_group_of_version_2_leaves(
    limits: dict[str, tuple[int | str, int, int]], expected: int, tmp_path: Path
) -> None:
    files: dict[str, object] = {"cgroup.controllers": "memory"}
    for group, (limit, current, inactive) in limits.items():
        files[f"{group}/memory.max"] = limit if isinstance(limit, str) else limit * MIB
        files[f"{group}/memory.current"] = current * MIB
        files[f"{group}/memory.stat"] = f"anon 5\nactive_file 7\ninactive_file {inactive * MIB}"
    assert available_bytes(system(tmp_path, "0::/batch/job", files)) == expected * MIB


def test_memory_is_what_every_group_of_version_1_leaves(tmp_path: Path) -> None:
    files = {
        "memory/memory.limit_in_bytes": V1_WITHOUT_LIMIT,
        "memory/memory.usage_in_bytes": 700 * MIB,
        "memory/job/memory.limit_in_bytes": 600 * MIB,
        "memory/job/memory.usage_in_bytes": 500 * MIB,
        "memory/job/memory.stat": f"inactive_file 1\ntotal_inactive_file {30 * MIB}",
    }
    assert available_bytes(system(tmp_path, "4:memory:/job\n0::/", files)) == 130 * MIB


def test_a_container_that_knows_only_its_path_on_the_host_finds_its_limits_at_the_root(
    tmp_path: Path,
) -> None:
    one = {"memory/memory.limit_in_bytes": 600 * MIB, "memory/memory.usage_in_bytes": 500 * MIB}
    assert available_bytes(system(tmp_path / "one", "4:memory:/docker/0123", one)) == 100 * MIB
    two = {"cgroup.controllers": "memory", "memory.max": 600 * MIB, "memory.current": 400 * MIB}
    assert available_bytes(system(tmp_path / "two", "0::/../job", two)) == 200 * MIB


def test_version_2_is_found_beside_version_1(tmp_path: Path) -> None:
    files = {"unified/job/memory.max": 600 * MIB, "unified/job/memory.current": 400 * MIB}
    assert available_bytes(system(tmp_path, "4:memory:/\n0::/job", files)) == 200 * MIB


@pytest.mark.parametrize(
    ("name", "expected"),
    [("node3", "node3"), ("a\x1b[31m\n", "a?[31m?"), ("x" * 300, "x" * 255), ("\udcff", "?")],
)
def test_the_name_of_a_host_can_be_printed(name: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    assert host_name() == expected
