"""`features.npy` as it is built: a file of its final size, whose rows are written in any order."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from emulator.storage.checkpoints import naming_file
from emulator.storage.own_files import create_file, open_file
from traces.files.features import write_header


class FeatureRows:
    """An `.npy` file of `shape` uint8 whose rows are written in place, also by several threads at once.

    The space is taken when the file is created, so that a full disk is found then. Rows that are never
    written are zero.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], *, resume: bool) -> None:
        """Create the file, or open the one that an earlier attempt left.

        Raises:
            OSError: the disk is full, or fails; the error has the name of the file, here and later.
        """
        self._path = path
        self._row_bytes = int(np.prod(shape[1:]))
        size = shape[0] * self._row_bytes
        with naming_file(path), rows_file(path, resume=resume) as file:
            self._start = write_header(file, np.dtype(np.uint8), shape)
            file.flush()
            self._file = os.dup(file.fileno())
        try:
            if not resume:
                with naming_file(path):
                    take_space(self._file, self._start + size)
        except OSError:
            os.close(self._file)
            raise

    def __enter__(self) -> FeatureRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with naming_file(self._path):
            os.close(self._file)

    def write(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Write `values` (k, *shape) as the rows with these numbers (k,), consecutive ones at once."""
        order = np.argsort(rows)
        rows, values = rows[order], np.ascontiguousarray(values[order])
        borders = np.flatnonzero(np.diff(rows) != 1) + 1
        for first, last in zip([0, *borders.tolist()], [*borders.tolist(), len(rows)], strict=True):
            content = values[first:last].data.cast("B")
            offset = self._start + int(rows[first]) * self._row_bytes
            while content:
                with naming_file(self._path):
                    written = os.pwrite(self._file, content, offset)
                content, offset = content[written:], offset + written

    def flush(self) -> None:
        """Bring all rows written so far to the disk."""
        with naming_file(self._path):
            os.fsync(self._file)


def rows_file(path: Path, *, resume: bool) -> BinaryIO:
    """The file of an earlier attempt, to go on with, or a new one in its place; no link is followed.

    Raises:
        ForeignFileError: what is to be gone on with is a link, or has a second name.
    """
    if resume:
        return open_file(path, in_place=True)
    path.unlink(missing_ok=True)
    return create_file(path)


def take_space(file: int, size: int) -> None:
    """Extend the open `file` to `size` bytes that exist on the disk; OSError if there is no room."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:  # macOS
        os.ftruncate(file, size)
