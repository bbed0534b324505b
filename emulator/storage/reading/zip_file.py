"""A CSV in a zip: its only file."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from emulator.errors import DataFileError, abbreviated

MOST_READ = 2**22
"""Bytes of a zip that are read at once: so many has its table of contents, at most."""

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
