"""Where the columns of a trace lie: in memory, or mapped from a scratch file that nobody else sees.

Knows nothing of what is in them.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from emulator.errors import RunError

MAPPED_FROM_BYTES = 2**26
"""Columns that take up as much together are mapped; smaller ones are quicker in memory."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Columns:
    """Named arrays of one dimension: `layout` says each one's dtype and length.

    Large ones, and those that are `shared`, lie side by side in an unlinked file in `scratch` (None: the
    system's folder for temporary files), which is gone when nobody maps it any more, killed processes
    included. Its blocks are reserved beforehand: a full disk is a RunError here, and never a bus error while
    a run reads.
    """

    def __init__(
        self,
        layout: Mapping[str, tuple[np.dtype, int]],
        scratch: Path | None,
        *,
        shared: bool = False,
    ) -> None:
        self._layout = dict(layout)
        self._scratch = scratch
        self._file: _File | None = None
        if shared or _num_bytes(layout) >= MAPPED_FROM_BYTES:
            self._file = _File.made(_num_bytes(layout), scratch)
            self._arrays = self._file.arrays(layout)
        else:
            self._arrays = {name: np.empty(length, dtype) for name, (dtype, length) in layout.items()}

    @classmethod
    def mapped(cls, description: Mapping[str, tuple[str, int]], descriptor: int) -> Columns:
        """Those that `share` described, in another process, which is given the open file: to be read only."""
        columns = cls({}, None)
        columns._layout = {name: (np.dtype(kind), length) for name, (kind, length) in description.items()}
        columns._file = _File(descriptor, _num_bytes(columns._layout), writes=False)
        columns._arrays = columns._file.arrays(columns._layout)
        return columns

    def share(self) -> tuple[dict[str, tuple[str, int]], int]:
        """What another process needs to map these: what they are, and an open file that is closed with them.

        From here on they are only read. Those in memory are moved into a file.
        """
        if self._file is None:
            file = _File.made(_num_bytes(self._layout), self._scratch)
            arrays = file.arrays(self._layout)
            for name, array in self._arrays.items():
                arrays[name][:] = array
            self._file, self._arrays = file, arrays
        self.seal()
        described = {name: (kind.str, length) for name, (kind, length) in self._layout.items()}
        return described, self._file.descriptor

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def seal(self) -> None:
        """From here on they are only read."""
        for array in self._arrays.values():
            array.setflags(write=False)
        self.drop_pages()

    def drop_pages(self) -> None:
        """Take the mapped pages out of the process's resident memory; what is read again is mapped again.

        Nothing is lost: what was written stays in the page cache, from where the kernel writes it back.
        """
        if self._file is not None:
            self._file.mapping.madvise(mmap.MADV_DONTNEED)


class _File:
    """An open file without a name, mapped; it is closed when it is let go of."""

    def __init__(self, descriptor: int, num_bytes: int, *, writes: bool) -> None:
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writes else 0)
        self.mapping = mmap.mmap(descriptor, num_bytes, prot=protection)

    @classmethod
    def made(cls, num_bytes: int, scratch: Path | None) -> _File:
        """A fresh one; RunError where there is no room for it."""
        folder = Path(tempfile.gettempdir()) if scratch is None else scratch
        try:
            if shutil.disk_usage(folder).free < num_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            with tempfile.TemporaryFile(dir=folder) as file:
                _reserve(cast(BinaryIO, file), num_bytes)
                return cls(os.dup(file.fileno()), num_bytes, writes=True)
        except OSError as error:
            size = f"trace: its samples take {num_bytes} bytes ({num_bytes / 2**30:.2f} GiB)"
            if error.errno not in NO_ROOM:
                raise RunError(f"{size}, which cannot be laid out in {folder} ({error.strerror})") from error
            raise RunError(
                f"{size}, for which there is no room in {folder} ({error.strerror}); make some, take a "
                f"folder on a larger disk, or lower trace.samples_per_step, the number of clients or "
                f"round.rounds"
            ) from error

    def arrays(self, layout: Mapping[str, tuple[np.dtype, int]]) -> dict[str, np.ndarray]:
        """The columns of `layout`, each at the start of a page."""
        arrays, start = {}, 0
        for name, (dtype, length) in layout.items():
            arrays[name] = np.frombuffer(self.mapping, dtype, length, start)
            start += _pages(dtype, length)
        return arrays


def _num_bytes(layout: Mapping[str, tuple[np.dtype, int]]) -> int:
    """Of the file that holds all columns; never none, as nothing cannot be mapped."""
    return max(mmap.PAGESIZE, sum(_pages(dtype, length) for dtype, length in layout.values()))


def _pages(dtype: np.dtype, length: int) -> int:
    """Bytes of the whole pages that a column takes."""
    return -(-dtype.itemsize * length // mmap.PAGESIZE) * mmap.PAGESIZE


def _reserve(file: BinaryIO, num_bytes: int) -> None:
    """Give the file its blocks; OSError where the disk, a quota or a limit has not as many."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, num_bytes)
        return
    # macOS has no such call, and blocks only where something was written.
    zeros = bytes(2**20)
    for first in range(0, num_bytes, len(zeros)):
        file.write(zeros[: num_bytes - first])
    file.flush()
