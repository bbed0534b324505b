"""What this machine has for runs: cores and memory, as far as the process may use them, and its name.

A container or a batch system gives a process less than the machine has, by control groups: each may have
limits, and those of the groups above it hold too. A limit that the system does not tell is taken for none.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil

MOST_HOST_LETTERS = 255


def host_name() -> str:
    """The name of this machine; what cannot be printed in it is a question mark."""
    name = socket.gethostname()[:MOST_HOST_LETTERS]
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def cores(root: Path = Path("/")) -> int:
    """Cores that this process may use, at least 1. `root` is where the system's files are."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for group in _groups(root, ""):
        with_period = _words(group / "cpu.max")
        if len(with_period) == 2 and with_period[0] != "max":
            allowed = min(allowed, int(with_period[0]) // int(with_period[1]))
    for group in _groups(root, "cpu"):
        quota, period = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
        if quota is not None and quota > 0 and period is not None:  # -1 stands for no limit
            allowed = min(allowed, quota // period)
    return max(allowed, 1)


def available_bytes(root: Path = Path("/")) -> int:
    """Memory that this process and its children can still have. `root` is where the system's files are.

    Files that the kernel keeps in memory, and has not used lately, make room where it is asked for.
    """
    available = int(psutil.virtual_memory().available)
    for version, names in (
        ("", ("memory.max", "memory.current", "inactive_file")),
        ("memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")),
    ):
        for group in _groups(root, version):
            limit, used = _number(group / names[0]), _number(group / names[1])
            if limit is not None and used is not None:
                available = min(available, limit - used + _statistic(group / "memory.stat", names[2]))
    return max(available, 0)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the control groups that this process is in: of version 1 for a `controller`, of
    version 2 for "". A container may see its own one as the root, and know its path on the host only."""
    mounted = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller not in controllers.split(","):
            continue
        if controller:
            top = mounted / controller
        else:
            top = mounted if (mounted / "cgroup.controllers").exists() else mounted / "unified"
        names = [name for name in path.split("/") if name not in ("", "..")]
        yield from (top.joinpath(*names[:depth]) for depth in range(len(names) + 1))


def _statistic(file: Path, name: str) -> int:
    for line in _text(file).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


def _number(file: Path) -> int | None:
    """None where the file is missing, or says `max`, which is no limit."""
    words = _words(file)
    return int(words[0]) if words and words[0] != "max" else None


def _words(file: Path) -> list[str]:
    return _text(file).split()


def _text(file: Path) -> str:
    """Empty where there is no such file, or the system does not let it be read."""
    try:
        return file.read_text()
    except OSError:
        return ""
