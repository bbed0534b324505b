"""The text of a CSV as pyarrow reads it: in UTF-8, decompressed, and from its header on.

A file in another encoding, with runs of blanks between cells or with lines to leave out is rewritten so, as
the file in a zip is unpacked: into a temporary file, since pyarrow is given a path or a buffer.
"""

from __future__ import annotations

import codecs
import gzip
import mmap
import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from emulator.errors import DataFileError, ResumableError
from emulator.storage.reading import tally
from emulator.storage.reading.zip_file import opened_member
from emulator.storage.table_paths import Given

MOST_LINE = 2**24
"""Most letters of a line of a file with runs of blanks."""

_HEAD = 2**20
"""Bytes of a text that its form is found from."""

_PIECE = 2**20
"""Bytes of a text that are read at once."""

_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t|])"?', re.IGNORECASE)
"""The first line of Excel's exports that names what is between cells."""

_NOT_OF_WINDOWS = b"\x81\x8d\x8f\x90\x9d"
"""The bytes that windows-1252 does not have; it differs from Latin-1 in those from 0x80 to 0x9f alone."""

_CELL = re.compile(r'(?:"(?:[^"]|"")*"|\S)+')
"""A cell between blanks: within quotes a blank is a letter."""


@dataclass(frozen=True)
class Form:
    """How the text of a CSV differs from what pyarrow reads.

    `ends`: a ';' ends each line, and separates nothing, as in the files of WISDM. `returns`: a carriage
    return alone does, as Excel's "CSV (Macintosh)" has it.
    """

    given: Given
    encoding: str = "utf-8"
    skip_lines: int = 0
    separator: str | None = None
    ends: bool = False
    returns: bool = False

    @property
    def is_plain(self) -> bool:
        changes = self.skip_lines or self.is_changed_by_line or self.returns
        return self.encoding == "utf-8" and not changes

    @property
    def is_changed_by_line(self) -> bool:
        return self.ends or self.given.mark == " "

    @property
    def mark(self) -> str | None:
        """What separates cells of the rewritten text, as far as that is given."""
        return "\t" if self.given.mark == " " else self.separator


def form_of(head: bytes, given: Given) -> Form:
    """The form of a text that begins with `head`.

    >>> form = form_of("sep=;\\na;b\\n".encode("utf-16"), Given())
    >>> form.encoding, form.skip_lines, form.separator
    ('utf-16', 1, ';')
    """
    is_marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = given.encoding or ("utf-16" if is_marked else "utf-8")
    skipped = given.skip_lines
    returns = b"\r" in head and b"\n" not in head
    head = head if skipped or given.columns else head[:4096]
    text = head.decode(encoding, "replace").removeprefix("\ufeff")
    text = text.replace("\r", "\n") if returns else text
    first = next(iter(text.split("\n", skipped + 1)[skipped:]), "")
    named = _SEPARATOR_LINE.fullmatch(first.strip(" \r"))  # it may name a tab
    first = first.strip()
    separator = given.mark or (named[1] if named else None)
    ends = bool(given.columns) and separator != ";" and first.find(";") == len(first) - 1 > 0
    return Form(given, encoding, skipped + bool(named), separator, ends, returns)


def form_at(path: Path, given: Given) -> Form:
    """The form of the text of a CSV."""
    with opened(path) as file:
        return form_of(file.read(_HEAD), given)


def opened(path: Path) -> AbstractContextManager[IO[bytes]]:
    """Context of the bytes of a CSV as a file of Python's, decompressed."""
    if path.suffix == ".zip":
        return opened_member(path)
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def pieces_of(path: Path, form: Form) -> Iterator[bytes]:
    """The text of a CSV, rewritten unless its form is plain.

    Raises DataFileError for bytes that its encoding does not have, and for more lines to leave out than it
    has.
    """
    with opened(path) as file:
        plain = iter(lambda: file.read(_PIECE), b"")
        yield from plain if form.is_plain else _rewritten(path, file, form)


def refuse_encoding(path: Path, form: Form) -> None:
    """Raise DataFileError, with its place, for the first byte that is not in the encoding of a CSV."""
    with opened(path) as file:
        for _ in _decoded(path, file, form):
            pass


@contextmanager
def source_of(path: Path, form: Form) -> Iterator[Any]:
    """Context of what pyarrow's readers of CSVs open: a path or a buffer, and no file object of Python's.

    NOTE: a reader of Python's in the threads of pyarrow's CSV reader may be at work when the process ends,
    which then never ends.

    Raises:
        DataFileError: it is damaged, or has more text than is read of a data set.
        ResumableError: there is no room for the temporary file.
    """
    if form.is_plain and path.suffix != ".zip":
        yield path
        return
    with tempfile.TemporaryFile() as file:
        num_bytes = 0
        for content in pieces_of(path, form):
            num_bytes += len(content)
            if num_bytes > tally.MOST_TEXT:
                raise DataFileError(path, f"has more than {tally.MOST_TEXT:,} bytes of text")
            _write(file, content)
        if num_bytes == 0:
            raise DataFileError(path, "is empty")
        # NOTE: not closed here: pyarrow may still hold it, and it ends with the last reference.
        mapped = mmap.mmap(file.fileno(), num_bytes, access=mmap.ACCESS_READ)
        yield pa.BufferReader(pa.py_buffer(mapped))


def _write(file: IO[bytes], content: bytes) -> None:
    try:
        file.write(content)
        file.flush()
    except OSError as error:
        raise ResumableError(
            f"{tempfile.gettempdir()}: {error.strerror}; make room for an unpacked zip, or set TMPDIR, and "
            f"give the same command again"
        ) from error


def _rewritten(path: Path, file: IO[bytes], form: Form) -> Iterator[bytes]:
    left, held, is_empty = form.skip_lines, "", True
    for decoded in _decoded(path, file, form):
        text = decoded.replace("\r", "\n") if form.returns else decoded
        if left:
            *skipped, text = text.split("\n", left)
            left -= len(skipped)
            if left:
                continue
        if form.is_changed_by_line:
            *lines, held = (held + text).split("\n")
            if len(held) > MOST_LINE:
                raise DataFileError(path, f"has a line of more than {MOST_LINE:,} letters")
            text = "".join(f"{_row(line, form)}\n" for line in lines)
        is_empty = is_empty and not text.strip()
        yield text.encode()
    if held:
        yield _row(held, form).encode()
    if form.given.skip_lines and is_empty and not held:
        option = form.given.option(path, "skip_lines")
        raise DataFileError(path, f"{option}: it has no line after those; leave out fewer")


def _row(line: str, form: Form) -> str:
    """A line with a tab for each run of blanks, and without what only ends it."""
    line = line.rstrip().removesuffix(";") if form.ends else line
    if form.given.mark != " ":
        return line
    return "\t".join(_CELL.findall(line) if '"' in line else line.split())


def _decoded(path: Path, file: IO[bytes], form: Form) -> Iterator[str]:
    """The text of a file piece by piece, without a mark at its beginning."""
    decoder = codecs.getincrementaldecoder(form.encoding)()
    num_bytes, num_lines, content = 0, 1, b" "
    while content:
        content = file.read(_PIECE)
        num_pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(content, final=not content)
        except UnicodeDecodeError as error:
            byte, before = error.object[error.start], error.object[: error.start]
            at, line = num_bytes - num_pending + error.start, num_lines + before.count(b"\n")
            wanted, is_cut = "latin-1" if byte in _NOT_OF_WINDOWS else "windows-1252", ""
            if form.encoding.startswith("utf-16"):  # in which half a letter is what does not fit
                wanted, is_cut = "utf-8", "it is cut off or damaged, or else "
            raise DataFileError(
                path,
                f"byte 0x{byte:02x} at {at:,}, in line {line}, is not {form.encoding.upper()}: {is_cut}give "
                f"the encoding that it was saved in, such as {form.given.option(path, 'encoding', wanted)}",
            ) from error
        except UnicodeError as error:
            either = " or ".join(form.given.option(path, "encoding", f"utf-16-{end}") for end in ("le", "be"))
            raise DataFileError(path, f"has no mark of UTF-16 at its beginning: give {either}") from error
        yield text if num_bytes else text.removeprefix("\ufeff")
        num_bytes, num_lines = num_bytes + len(content), num_lines + text.count("\n")
