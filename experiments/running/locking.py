"""Locks: one command at a time in a run directory, and one process at a time in the folder of a run.

The workers of a command hold the locks of the runs that they play, not that of the run directory. All are
kernel locks, which a process loses when it is killed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from emulator.errors import ForeignFileError, InputError, ResumableError, RunError
from emulator.storage.checkpoints import make_folder
from emulator.storage.own_files import delete_if_empty, open_file
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.machine import host_name

if TYPE_CHECKING:
    from emulator.storage.locks import Lock

MOST_HOLDER_BYTES = 300
"""Maximum size of a lock file: a line with process id and host name, then the line `PROCESS`."""

PATIENCE_S = 0.2
"""Wall seconds to wait for the lock of a run: its last holder may delete the file while we open it."""

PROCESS = uuid4().hex
"""Random id in lock files: the lock files of any two processes differ, on whatever hosts they are."""


class RunAtWorkError(RunError):
    """Another process is at work on a run, which must not be touched until that work has ended."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Context that holds the lock of the run directory `path`, and creates the folder if it is missing.

    If the folder has no recorded configuration at the end, and so has not become a run directory, the lock
    file is deleted, and then the folder too if it was created here and is empty.

    Raises:
        InputError: Another process has the lock, `path` is a file, or the folder cannot be created or
            written.
        ForeignFileError: The lock file is a link or another kind of file.
    """
    from filelock import Timeout

    directory = RunDirectory(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; a run directory is a folder")
    lock_path = directory.lock_path
    is_new = not path.exists()
    try:
        make_folder(path)
    except OSError as error:
        raise InputError(f"--out {path}: cannot be made a folder ({error.strerror})") from error
    lock = _lock(lock_path, 0)
    try:
        _acquire(lock, lock_path)
    except Timeout as error:
        raise InputError(
            f"{path}: {_holder(lock_path)} is running into this directory; wait for it, or take another --out"
        ) from error
    except OSError as error:
        _release_and_tidy(lock, directory, is_new)
        raise InputError(f"--out {path}: cannot be written in ({error.strerror})") from error
    try:
        yield
    finally:
        _release_and_tidy(lock, directory, is_new)


@contextmanager
def seed_locked(directory: RunDirectory, arm: str, seed: int) -> Iterator[None]:
    """Context that holds the lock of a run: no other process touches the run's folder.

    Raises:
        RunAtWorkError: Another process is at work on the run.
        ResumableError: The lock file, which lies beside the run's folder, cannot be written.
        ForeignFileError: The lock file is a link or another kind of file.
    """
    from filelock import Timeout

    lock_path = directory.seed_lock_path(arm, seed)
    lock = _lock(lock_path, PATIENCE_S)
    try:
        make_folder(lock_path.parent)
        _acquire(lock, lock_path)
    except Timeout as error:
        raise RunAtWorkError(f"{arm}, seed {seed}: {_holder(lock_path)} is at work on it") from error
    except OSError as error:
        _delete_and_release(lock, lock_path)
        raise ResumableError(
            f"{arm}, seed {seed}: its lock {lock_path} cannot be written ({error.strerror})"
        ) from error
    try:
        yield
    finally:
        _delete_and_release(lock, lock_path)


def lock_content(directory: RunDirectory) -> bytes:
    """The content of the run directory's lock file, which identifies the process that holds the lock."""
    with open_file(directory.lock_path) as file:
        return file.read(MOST_HOLDER_BYTES)


def why_not_excluded(directory: RunDirectory, content: bytes) -> str | None:
    """Why this worker must not play runs in a run directory that its command has locked; None if it may.

    It may if it sees the lock file with the command's `content`, and cannot take the lock. If not, it sees
    another directory, or one on a file system whose locks do not reach across machines.
    """
    from filelock import Timeout

    path = directory.path
    try:
        content_here = lock_content(directory) if directory.lock_path.is_file() else None
    except (OSError, ForeignFileError):
        content_here = None
    if content_here != content:
        return f"does not see the run directory {path}, which must be at that path on all machines"
    lock = _lock(directory.lock_path, 0)
    try:
        _take(lock)
    except Timeout:
        return None
    except OSError as error:
        return f"cannot lock files in {path} ({error.strerror})"
    lock.release()
    return (
        f"takes the lock of {path} although the command has it: locks of that file system do not reach "
        f"across machines, so that two could write the same run; take an --out on one where they do"
    )


def _lock(path: Path, patience_s: float) -> Lock:
    from emulator.storage.locks import Lock

    # A soft lock would outlive its process: it is no substitute where kernel locks are not implemented.
    return Lock(path, timeout=patience_s, poll_interval=0.01, fallback_to_soft=False)


def _acquire(lock: Lock, path: Path) -> None:
    """Take the lock, and write this process into its file; Timeout if another process has the lock."""
    _take(lock)
    try:
        with open_file(path, in_place=True) as file:
            file.truncate()
            file.write(_this_process())
    except ForeignFileError:
        lock.release()
        raise


def _take(lock: Lock) -> None:
    """Take the lock; Timeout if another process has it.

    Raises OSError also if the file system has no locks (filelock raises NotImplementedError).
    """
    try:
        lock.acquire()
    except NotImplementedError as error:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from error


def _delete_and_release(lock: Lock, path: Path) -> None:
    """Release the lock, after deleting its file if the lock is held."""
    try:
        with suppress(OSError):  # the file stays on a read-only disk
            if lock.is_locked:
                path.unlink(missing_ok=True)
    finally:
        lock.release()


def _release_and_tidy(lock: Lock, directory: RunDirectory, is_new: bool) -> None:
    """Release the lock; unless `directory` has become a run directory, delete what `locked` created in it."""
    try:
        # They stay on a read-only disk, and where a foreign file is in the way.
        with suppress(OSError, ForeignFileError):
            if directory.path.is_dir() and not directory.experiment_path.is_file():
                Path(lock.lock_file).unlink(missing_ok=True)  # while held: nobody else can hold a deleted one
                if is_new:
                    delete_if_empty(directory.path)
    finally:
        lock.release()


def _holder(lock_path: Path) -> str:
    """Who has the lock by its file, for errors: `another process (process 4711)`, or another call of ours.

    A process on another host is `(process 4711 on HOST)`; one whose file cannot be read has no number.
    """
    try:
        with open_file(lock_path) as file:
            text = file.read(MOST_HOLDER_BYTES).decode("utf-8")
    except (OSError, ValueError, ForeignFileError):
        text = ""
    if text.encode() == _this_process():
        return "another call in this process"
    pid, _, host = text.partition("\n")[0].partition(" ")
    if not pid.isdecimal() or not host.isprintable():
        return "another process"
    return f"another process (process {pid}{'' if host in ('', host_name()) else f' on {host}'})"


def _this_process() -> bytes:
    """The content of the lock files that this process holds."""
    return f"{os.getpid()} {host_name()}\n{PROCESS}\n".encode()
