"""Kernel locks on files, which a process loses when it is killed."""

from __future__ import annotations

from contextlib import suppress

from filelock import FileLock


class Lock(FileLock):
    """A lock whose release is no error: what it guarded is done, and it ends with the process."""

    def release(self, force: bool = False) -> None:
        """Release the lock if the file system can."""
        with suppress(OSError):
            super().release(force)
