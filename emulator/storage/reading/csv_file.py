"""A CSV of a table, plain or compressed: first lines, the types of its columns, and its rows in batches."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

import pyarrow as pa
import pyarrow.csv

from emulator.errors import DataFileError
from emulator.storage.parquet_columns import damage_in_one_line
from emulator.storage.reading.bounds import MOST_REASON
from emulator.storage.reading.columns import refuse_columns
from emulator.storage.reading.dialects import MOST_ROWS, Dialect, Sample
from emulator.storage.reading.tally import Tally
from emulator.storage.reading.zip_file import opened_member, unpacked

MOST_HEADER_BYTES = 2**20
"""Most bytes of the first line of a CSV."""

MOST_SAMPLE_BYTES = 2**23
"""Bytes of a CSV, at most, that its dialect is found from."""

_BLOCK = 2**20
"""Bytes of a CSV that are read at once."""

_ROW = re.compile(r"Row #(\d+)")
_VALUE = re.compile(r"invalid value '(.*)'", re.DOTALL)
_COLUMN = re.compile(r"In CSV column #(\d+)")

Malformed = Callable[[], bool] | None
"""Called for every line with too few or too many cells, which is left out; False ends the reading."""


def count_text(path: Path, tally: Tally) -> None:
    """Count the text of a CSV, for which a compressed one is decompressed.

    NOTE: not while it is parsed: a reader of Python's in the threads of pyarrow's CSV reader may be at work
    when the process ends, which then never ends.
    """
    if path.suffix not in (".gz", ".zip"):
        tally.add_text(path, path.stat().st_size)
        return
    with damage_in_one_line(path), _opened(path) as file:
        while content := file.read(_BLOCK):
            tally.add_text(path, len(content))


def sample_of(path: Path) -> Sample:
    """The first lines of a CSV; DataFileError if its first one is too long, or it is damaged."""
    pieces, num_lines, num_bytes = [], 0, 0
    with damage_in_one_line(path), _opened(path) as file:
        content = b" "
        while content and num_lines <= MOST_ROWS and num_bytes < MOST_SAMPLE_BYTES:
            content = file.read(_BLOCK)
            num_lines, num_bytes = num_lines + content.count(b"\n"), num_bytes + len(content)
            pieces.append(content)
    lines = b"".join(pieces).split(b"\n")
    is_whole = not content
    if len(lines[0]) >= MOST_HEADER_BYTES:
        raise DataFileError(path, f"its first line has more than {MOST_HEADER_BYTES:,} bytes")
    if not is_whole:
        lines.pop()  # it may go on
    lines = [line for line in (line.rstrip(b"\r") for line in lines) if line]
    if len(lines) > MOST_ROWS + 1:
        lines, is_whole = lines[: MOST_ROWS + 1], False
    return Sample(path, lines[0] if lines else b"", lines[1:], is_whole)


@dataclass(frozen=True)
class CsvFile:
    """A CSV of this dialect, in which the texts `na` stand for missing numbers, besides the usual ones."""

    path: Path
    dialect: Dialect
    na: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """The columns, checked."""
        with _opened(self.path) as file:
            line = file.readline(MOST_HEADER_BYTES)
        if len(line) >= MOST_HEADER_BYTES:
            raise DataFileError(self.path, f"its first line has more than {MOST_HEADER_BYTES:,} bytes")
        header = line.decode("utf-8-sig").strip("\r\n")
        try:
            names = next(csv.reader([header], delimiter=self.dialect.separator), [])
        except csv.Error as error:  # such as a carriage return alone
            raise DataFileError(self.path, f"cannot be read as CSV ({error})") from error
        refuse_columns(self.path, names)
        return names

    def kinds(self, *, skips_bad: bool) -> dict[str, pa.DataType]:
        """The columns, with the types of the first rows."""
        with damage_in_one_line(self.path):
            self.names()
            malformed = (lambda: True) if skips_bad else None
            try:
                with self._source() as source, self._reader(source, {}, malformed) as reader:
                    schema = reader.schema
            except pa.ArrowInvalid as error:
                raise self._error({}, malformed, error) from error
        return {field.name: field.type for field in schema}

    def batches(
        self, types: Mapping[str, pa.DataType], malformed: Malformed
    ) -> Iterator[tuple[int, Mapping[str, pa.Array[Any]]]]:
        """The rows of these columns, each batch with the number of its first row."""
        with damage_in_one_line(self.path):
            first = 0
            try:
                with self._source() as source, self._reader(source, types, malformed) as reader:
                    for batch in reader:
                        if len(batch):
                            yield first, {name: batch.column(name) for name in types}
                            first += len(batch)
            except pa.ArrowInvalid as error:
                raise self._error(types, malformed, error) from error

    def _source(self) -> AbstractContextManager[Any]:
        """What pyarrow's reader opens; no file object of Python's, see `count_text`."""
        return unpacked(self.path) if self.path.suffix == ".zip" else nullcontext(self.path)

    def _reader(
        self,
        source: Any,
        types: Mapping[str, pa.DataType],
        malformed: Malformed,
        *,
        use_threads: bool = True,
    ) -> pyarrow.csv.CSVStreamingReader:
        def left_out(_: object) -> Literal["skip", "error"]:
            assert malformed is not None
            return "skip" if malformed() else "error"

        conversion = pyarrow.csv.ConvertOptions(
            include_columns=list(types), column_types=dict(types), decimal_point=self.dialect.decimal
        )
        conversion.null_values = [*cast(Any, conversion.null_values), *self.na]
        return pyarrow.csv.open_csv(
            source,
            pyarrow.csv.ReadOptions(block_size=_BLOCK, use_threads=use_threads),
            pyarrow.csv.ParseOptions(
                delimiter=self.dialect.separator,
                invalid_row_handler=None if malformed is None else left_out,
            ),
            conversion,
        )

    def _error(
        self, types: Mapping[str, pa.DataType], malformed: Malformed, error: pa.ArrowInvalid
    ) -> DataFileError:
        """The error, with its row: the file is read once more, by one thread, which counts the rows."""
        try:
            quiet = None if malformed is None else lambda: True
            with (
                self._source() as source,
                self._reader(source, types, quiet, use_threads=False) as reader,
            ):
                for _ in reader:
                    pass
        except pa.ArrowInvalid as again:
            error = again
        text = " ".join(str(error).split())
        row, column, value = (pattern.search(text) for pattern in (_ROW, _COLUMN, _VALUE))
        number = None if row is None else int(row[1]) - 1
        if column is not None and value is not None:
            name = sample_of(self.path).names(self.dialect.separator)[int(column[1])]
            what = "a whole number" if pa.types.is_integer(types[name]) else self.dialect.number
            return DataFileError(self.path, f"{name} = {value[1][:MOST_REASON]!r}: must be {what}", number)
        return DataFileError(self.path, f"cannot be read as CSV ({text[:MOST_REASON]})", number)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Context of the text of a CSV as a file of Python's, decompressed."""
    if path.suffix == ".zip":
        with opened_member(path) as member:
            yield member
        return
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        yield cast(IO[bytes], file)
