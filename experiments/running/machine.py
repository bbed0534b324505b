"""This machine: the cores and memory that the process may use, and the host name.

Containers and batch systems limit a process by control groups: each group may have limits, and those of the
groups above it apply too. A limit that cannot be read counts as no limit.
"""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

from emulator.errors import InputError

OTHER_FILES = 256
"""Open files of a process besides those that `allow_open_files` counts, at most."""

MOST_HOST_LETTERS = 255
"""Maximum length of a host name; further characters are cut off."""


def host_name() -> str:
    """The host name, with a question mark for each character that cannot be printed."""
    name = socket.gethostname()[:MOST_HOST_LETTERS]
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def cores(root: Path = Path("/")) -> int:
    """Number of cores that this process may use, at least 1. `root` is the root of the file system."""
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
    """Bytes of memory that this process and its children can still use. `root`: root of the file system.

    Inactive file pages count as available: the kernel evicts them when memory is needed.
    """
    import psutil  # takes six modules, which an error in a configuration does without

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


def allow_open_files(number: int, what: str) -> None:
    """Raise this process's limit of open files, if it is too low to have `number` files open at once.

    `what` names them in the InputError that is raised if the system allows fewer.
    """
    needed = number + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise InputError(
                f"{number:,} {what} need {needed:,} open files at once, and this system allows a process "
                f"{hard:,} (ulimit -Hn); raise that limit, or take fewer at a time"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's control groups, from the root down; those that do not exist are included.

    They are those of version 1 for a `controller`, of version 2 if it is "". In a container, the process's
    own group may be mounted as the root, while /proc names its path on the host.
    """
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
    """The first number in the file; None if the file is missing, or has `max`, which means no limit."""
    words = _words(file)
    return int(words[0]) if words and words[0] != "max" else None


def _words(file: Path) -> list[str]:
    return _text(file).split()


def _text(file: Path) -> str:
    """Content of the file; empty if it does not exist or cannot be read."""
    try:
        return file.read_text()
    except OSError:
        return ""
