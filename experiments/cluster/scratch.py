"""Temporary folders for dask's servers: one per command, deleted at its end or by a later command."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dask

from emulator.storage.own_files import entries

PREFIX = ".driftscale-scratch-"
"""Prefix of our folders, which no other software uses: a folder whose command is gone is deleted whole."""


@contextmanager
def scratch_folder(within: Path | None = None) -> Iterator[None]:
    """Context with a temporary folder for this command's servers, set as dask's `temporary-directory`.

    It lies in `within`, by default in the system's folder for temporary files. Folders of commands that were
    killed are deleted there: a command that is alive holds a lock on its folder.

    NOTE: dask puts the folder on sys.path. By default, it would use one that all users of the machine share.
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
    """Create a folder and lock it; returns the folder and the descriptor that holds the lock.

    The lock is released when the descriptor is closed or this process ends.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))
        with suppress(FileNotFoundError):  # deleted by another command before it was locked
            lock = _open_folder(folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():
                return folder, lock
            os.close(lock)


def _sweep(parent: Path) -> None:
    """Delete this user's scratch folders in `parent` whose commands are gone."""
    for folder in entries(parent, f"{PREFIX}*"):
        try:
            lock = _open_folder(folder)
        except OSError:  # another user's, not a folder, or gone meanwhile
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
