"""Temporary folders of commands that start dask's servers, and those that killed ones have left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dask

PREFIX = ".driftscale-scratch-"
"""Nobody names a folder like this: those whose command is gone are deleted, whatever is in them."""


@contextmanager
def scratch_folder(within: Path | None = None) -> Iterator[None]:
    """A temporary folder of this command's own, in which its servers have theirs. Those of commands that
    have been killed are deleted.

    A command that is alive holds a lock on its folder.

    NOTE: dask puts it on sys.path, and would take one that all users of the machine share.
    """
    _sweep(within or Path(tempfile.gettempdir()))
    folder, lock = _locked_folder(within)
    try:
        with dask.config.set({"temporary-directory": str(folder)}):
            yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder(within: Path | None) -> tuple[Path, int]:
    """A new folder and a lock on it, which holds as long as this process, or until it is closed."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))
        with suppress(FileNotFoundError):  # swept by a command that found it without its lock
            lock = _open_folder(folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():
                return folder, lock
            os.close(lock)


def _sweep(parent: Path) -> None:
    """Delete this user's folders there whose commands are gone."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            lock = _open_folder(folder)
        except OSError:  # another user's, no folder, or gone meanwhile
            continue
        try:
            if os.fstat(lock).st_uid == os.getuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:  # its command is at work
            continue
        finally:
            os.close(lock)


def _open_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
