"""One process at a time in a run directory. The lock is the kernel's: a killed process holds none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import getpid
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.checkpoints import make_folder
from emulator.errors import ForeignFileError, InputError
from emulator.own_files import open_file
from experiments.run_directory import RunDirectory

if TYPE_CHECKING:
    from filelock import FileLock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Within it no other process runs into `path`, which is made a folder where there is none.

    InputError when another one does, or when nothing can be written there; ForeignFileError when the lock is
    no file of its own. A folder that is still no run directory at the end is left as it was found.
    """
    from filelock import FileLock, Timeout

    directory = RunDirectory(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; a run directory is a folder")
    lock_path = directory.lock_path
    is_new = not path.exists()
    try:
        make_folder(path)
    except OSError as error:
        raise InputError(f"--out {path}: cannot be made a folder ({error.strerror})") from error
    # Where locks are not implemented, one that outlives its process is no substitute.
    lock = FileLock(lock_path, blocking=False, fallback_to_soft=False)
    try:
        lock.acquire()
        with open_file(lock_path, in_place=True) as file:
            file.truncate()
            file.write(f"{getpid()}\n".encode())
    except Timeout as error:
        raise InputError(
            f"{path}: another process{_pid(lock_path)} is running into this directory; wait for it, or take "
            f"another --out"
        ) from error
    except ForeignFileError:
        lock.release()
        raise
    except OSError as error:
        _let_go(lock, directory, is_new)
        raise InputError(f"--out {path}: cannot be written in ({error.strerror})") from error
    try:
        yield
    finally:
        _let_go(lock, directory, is_new)


def _let_go(lock: FileLock, directory: RunDirectory, is_new: bool) -> None:
    """Release the lock, and take away what was made for it where there is no run directory."""
    try:
        if directory.path.is_dir() and not directory.experiment_path.is_file():
            Path(lock.lock_file).unlink(missing_ok=True)  # while it is held: nobody else holds a deleted one
            if is_new and not any(directory.path.iterdir()):
                directory.path.rmdir()
    except (OSError, ForeignFileError):
        pass  # a disk that may only be read keeps it; so does what is no run directory of ours
    finally:
        lock.release()


def _pid(lock_path: Path) -> str:
    """` (process 4711)`, where the holder has said who it is."""
    try:
        with open_file(lock_path) as file:
            text = file.read(20).decode("ascii").strip()
    except (OSError, ValueError, ForeignFileError):
        return ""
    return f" (process {text})" if text.isdecimal() else ""
