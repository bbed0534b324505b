"""Kernel locks on files, which a process loses when it is killed."""

from __future__ import annotations

import os
from contextlib import suppress

from filelock import FileLock


class Lock(FileLock):
    """A lock whose release is no error: what it guarded is done."""

    def release(self, force: bool = False) -> None:
        """Release the lock; where the file system cannot unlock it, its file is closed, which ends it too."""
        try:
            super().release(force)
        except OSError:
            descriptor, self._context.lock_file_fd = self._context.lock_file_fd, None
            if descriptor is not None:
                with suppress(OSError):
                    os.close(descriptor)
