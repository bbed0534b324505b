"""Storage of a trace's columns: in memory, or mapped from an unlinked scratch file.

Knows nothing of their content.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from emulator.errors import RunError

MAPPED_FROM_BYTES = 2**26
"""Columns of at least this size together are mapped; smaller ones are faster in memory."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Columns:
    """Named arrays of one dimension; `layout` has the dtype and length of each.

    Large ones are laid out together in an unlinked file in `scratch` (None: the system's folder for temporary
    files), which disappears when no process maps it any more, even if processes are killed. Its blocks are
    reserved beforehand: a full disk raises RunError here, and never causes a bus error while a run reads.

    `given` are the contents of some columns. In memory they are used as they are, without a copy; of the
    others, the content is not defined.
    """

    def __init__(
        self,
        layout: Mapping[str, tuple[np.dtype, int]],
        scratch: Path | None,
        given: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self._mapping: mmap.mmap | None = None
        contents = given or {}
        if _num_bytes(layout) >= MAPPED_FROM_BYTES:
            self._mapping = _mapped(_num_bytes(layout), scratch)
            self._arrays = _laid_out(self._mapping, layout)
            for name, content in contents.items():
                self._arrays[name][:] = content
        else:
            self._arrays = {
                name: contents[name].view() if name in contents else np.empty(length, dtype)
                for name, (dtype, length) in layout.items()
            }

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def seal(self) -> None:
        """Make the columns read-only."""
        for array in self._arrays.values():
            array.setflags(write=False)
        self.drop_pages()

    def drop_pages(self) -> None:
        """Release the resident memory of the mapped pages; a page that is read again is mapped again.

        Nothing is lost: what was written stays in the page cache, from which the kernel writes it back.
        """
        if self._mapping is not None:
            self._mapping.madvise(mmap.MADV_DONTNEED)


def _mapped(num_bytes: int, scratch: Path | None) -> mmap.mmap:
    """Map a new unlinked file in `scratch`; RunError if it cannot be created, or there is no room for it."""
    folder = Path(tempfile.gettempdir()) if scratch is None else scratch
    try:
        if shutil.disk_usage(folder).free < num_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with tempfile.TemporaryFile(dir=folder) as file:
            _reserve(cast(BinaryIO, file), num_bytes)
            return mmap.mmap(file.fileno(), num_bytes)
    except OSError as error:
        size = f"trace: its samples take {num_bytes} bytes ({num_bytes / 2**30:.2f} GiB)"
        if error.errno not in NO_ROOM:
            raise RunError(f"{size}, which cannot be laid out in {folder} ({error.strerror})") from error
        raise RunError(
            f"{size}, for which there is no room in {folder} ({error.strerror}); make some, take a "
            f"folder on a larger disk, or lower trace.samples_per_step, the number of clients or "
            f"round.rounds"
        ) from error


def _laid_out(mapping: mmap.mmap, layout: Mapping[str, tuple[np.dtype, int]]) -> dict[str, np.ndarray]:
    """The columns of `layout`, each at the start of a page."""
    arrays, start = {}, 0
    for name, (dtype, length) in layout.items():
        arrays[name] = np.frombuffer(mapping, dtype, length, start)
        start += _pages(dtype, length)
    return arrays


def _num_bytes(layout: Mapping[str, tuple[np.dtype, int]]) -> int:
    """The size of the file that holds all columns; at least a page, as an empty file cannot be mapped."""
    return max(mmap.PAGESIZE, sum(_pages(dtype, length) for dtype, length in layout.values()))


def _pages(dtype: np.dtype, length: int) -> int:
    """The bytes of a column, rounded up to whole pages."""
    return -(-dtype.itemsize * length // mmap.PAGESIZE) * mmap.PAGESIZE


def _reserve(file: BinaryIO, num_bytes: int) -> None:
    """Reserve the file's blocks; OSError if the disk, a quota or a limit does not have enough."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, num_bytes)
        return
    # macOS has no such call, and allocates only the blocks that were written.
    zeros = bytes(2**20)
    for first in range(0, num_bytes, len(zeros)):
        file.write(zeros[: num_bytes - first])
    file.flush()
