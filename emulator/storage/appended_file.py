"""A file that is only appended to, and resumed from a checkpoint: truncated to its length at that time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from emulator.errors import DataFileError
from emulator.storage.own_files import create_file, open_file
from emulator.storage.state_tree import Tree

READ_AT_ONCE = 2**24  # bytes


class AppendedFile:
    """A file that begins with `head`, and to which bytes are appended.

    Args:
        path: the file, which must not exist unless `resume` is given.
        head: the first bytes of the file.
        resume: a state of this file; it is truncated to its length at that time.

    Raises:
        FileExistsError: a new file exists.
        ValueError: the state to resume from is shorter than the head.
        DataFileError: the file to resume is missing, or what it should still hold has changed.
        ForeignFileError: the file to resume is not a regular file, or has a second name.
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path, head: bytes, resume: Mapping[str, Tree] | None = None) -> None:
        self._sha256 = hashlib.sha256()
        self._bytes = 0
        if resume is None:
            self._file: BinaryIO = create_file(path)
            self.write(head)
        else:
            self._file = self._reopen(path, head, resume)

    def state(self) -> dict[str, Tree]:
        """Length and hash of the file so far, which is on the disk when this returns."""
        os.fsync(self._file.fileno())
        return {"bytes": self._bytes, "sha256": self._sha256.hexdigest()}

    def write(self, content: bytes) -> None:
        """Append `content`; other processes see it when this returns."""
        self._file.write(content)
        self._file.flush()
        self._sha256.update(content)
        self._bytes += len(content)

    def close(self) -> None:
        """Close the file; all of it is on the disk when this returns."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def _reopen(self, path: Path, head: bytes, resume: Mapping[str, Tree]) -> BinaryIO:
        """Open the file at its end, truncated to the length in `resume`; see the class for the errors."""
        num_bytes = resume["bytes"]
        if type(num_bytes) is not int or num_bytes < len(head):  # no such state is ever stored
            raise ValueError(f"its log has {num_bytes!r} bytes, fewer than the {len(head)} of a header")
        try:
            file = open_file(path, in_place=True)
        except FileNotFoundError as error:
            raise DataFileError(path, "is gone") from error
        try:
            while self._bytes < num_bytes:
                part = file.read(min(num_bytes - self._bytes, max(READ_AT_ONCE, len(head))))
                if not part or (self._bytes == 0 and not part.startswith(head)):
                    break
                self._sha256.update(part)
                self._bytes += len(part)
            if self._bytes < num_bytes or self._sha256.hexdigest() != resume["sha256"]:
                raise DataFileError(
                    path, f"damaged: its first {num_bytes} bytes are not those that were written"
                )
            file.truncate(self._bytes)
            file.seek(self._bytes)
        except BaseException:
            file.close()
            raise
        return file
