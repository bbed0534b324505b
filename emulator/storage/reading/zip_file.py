"""A CSV in a zip: its only file, unpacked for readers that take no file object of Python's."""

from __future__ import annotations

import io
import mmap
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from emulator.errors import DataFileError, ResumableError, abbreviated
from emulator.storage.reading import tally

MOST_READ = 2**22
"""Bytes of a zip that are read at once: so many has its table of contents, at most."""

_PIECE = 2**20
_ENCRYPTED = 0x1

_OF_MACOS = "__MACOSX/"
"""The folder that macOS adds to what it packs, with icons and the like."""


class _Pieces(io.FileIO):
    """A file of which little is read at once, whatever a library asks for."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:  # all that is left: of a zip, its last bytes
            size = MOST_READ
        if size > MOST_READ:
            raise ValueError(f"its table of contents has more than {MOST_READ:,} bytes")
        return super().read(size) or b""


@contextmanager
def opened_member(path: Path) -> Iterator[IO[bytes]]:
    """Context of the file in a zip, to be read in pieces.

    Raises:
        DataFileError: there is no file in it, or another one; or it is encrypted.
        ValueError: the zip is damaged.
    """
    try:
        with (
            _Pieces(path) as file,
            zipfile.ZipFile(cast(IO[bytes], file)) as archive,
            archive.open(_only_file(path, archive)) as member,
        ):
            yield member
    except (zipfile.BadZipFile, NotImplementedError, struct.error) as error:
        raise ValueError(str(error)) from error


def _only_file(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    files = [
        member
        for member in archive.infolist()
        if not member.filename.endswith("/") and not member.filename.startswith(_OF_MACOS)
    ]
    if len(files) != 1:
        names = abbreviated([member.filename for member in files], ", ") or "no file"
        raise DataFileError(
            path, f"has {names} in it; a zip of a table has one CSV: unpack it, and give the folder"
        )
    [member] = files
    if member.flag_bits & _ENCRYPTED:
        raise DataFileError(path, f"{member.filename} in it is encrypted; unpack it, and give the CSV")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataFileError(
            path,
            f"{member.filename} in it is compressed by method {member.compress_type}; only deflate is read: "
            f"unpack it, and give the CSV",
        )
    return member


@contextmanager
def unpacked(path: Path) -> Iterator[pa.BufferReader]:
    """Context of the text of the file in a zip, in a temporary file that has no name any more.

    Raises:
        DataFileError: it is damaged, or has more text than is read of a data set.
        ResumableError: there is no room for the temporary file.
    """
    with tempfile.TemporaryFile() as file:
        num_bytes = 0
        with opened_member(path) as member:
            while content := member.read(_PIECE):
                num_bytes += len(content)
                if num_bytes > tally.MOST_TEXT:
                    raise DataFileError(path, f"has more than {tally.MOST_TEXT:,} bytes of text")
                with _room():
                    file.write(content)
        with _room():
            file.flush()
        if num_bytes == 0:
            raise DataFileError(path, "is empty")
        # NOTE: not closed here: pyarrow may still hold it, and it ends with the last reference.
        mapped = mmap.mmap(file.fileno(), num_bytes, access=mmap.ACCESS_READ)
        yield pa.BufferReader(pa.py_buffer(mapped))


@contextmanager
def _room() -> Iterator[None]:
    """Context in which a temporary file is written."""
    try:
        yield
    except OSError as error:
        raise ResumableError(
            f"{tempfile.gettempdir()}: {error.strerror}; make room for an unpacked zip, or set TMPDIR, and "
            f"give the same command again"
        ) from error
