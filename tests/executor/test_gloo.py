from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.errors import ConfigurationError, ResumableError
from executor import gloo
from executor.gloo import Job

TORCHRUN = {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RESTART_COUNT": "2"}


@pytest.mark.parametrize(
    ("changes", "job"),
    [
        ({}, Job(1, 3, True, "2")),
        ({"MASTER_ADDR": "node7"}, Job(1, 3, False, "2")),
        ({"MASTER_ADDR": "localhost"}, Job(1, 3, True, "2")),
        ({"MASTER_ADDR": "10.0.0.7"}, Job(1, 3, False, "2")),
        ({"WORLD_SIZE": "1", "RANK": "0"}, None),
    ],
)
def test_a_job_is_read_from_torchruns_variables(changes: dict[str, str], job: Job | None) -> None:
    assert Job.from_environment({**TORCHRUN, **changes}) == job


def test_without_torchrun_there_is_no_job() -> None:
    assert Job.from_environment({"WORLD_SIZE": "4"}) is None


@pytest.mark.parametrize("changes", [{"RANK": "3"}, {"RANK": "x"}, {"WORLD_SIZE": "two"}, {"RANK": "-1"}])
def test_an_invalid_rank_is_refused(changes: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="not what torchrun sets"):
        Job.from_environment({**TORCHRUN, **changes})


@pytest.mark.parametrize("port", [None, "none"])
def test_an_environment_that_only_resembles_torchruns_is_refused(
    port: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other launchers set RANK and WORLD_SIZE too."""
    for name, value in (
        ("RANK", "1"),
        ("WORLD_SIZE", "2"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", port),
    ):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match="not all else that torchrun sets"):
        Job(1, 2, True).store()


def test_a_store_that_does_not_respond_is_resumable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gloo, "CONNECT_S", 1.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(silent.getsockname()[1]))
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setenv("WORLD_SIZE", "2")
        with pytest.raises(ResumableError, match=r"^rank 1 of 2: the others do not come up in 1 s"):
            Job(1, 2, True).store()


EXCHANGING = """
import sys
import numpy as np
from executor.gloo import Job, file_store, join
rank, size, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
ranks = join(Job(rank, size, on_loopback=True), file_store(path, size))
for length in (3, 2**18):
    contents = ranks.exchange({"rank": rank, "column": np.full(length, rank)})
    assert [content["rank"] for content in contents] == list(range(size))
    assert all((content["column"] == content["rank"]).all() for content in contents)
print("done", flush=True)
"""


@pytest.mark.slow
def test_processes_exchange_by_gloo(tmp_path: Path) -> None:
    commands = [
        [sys.executable, "-c", EXCHANGING, str(rank), "2", str(tmp_path / "store")] for rank in range(2)
    ]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    assert [process.communicate(timeout=300)[0] for process in processes] == ["done\n"] * 2
