"""A CSV of a table, plain or compressed: first lines, the types of its columns, and its rows in batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.csv

from emulator.errors import DataFileError
from emulator.storage.parquet_columns import damage_in_one_line
from emulator.storage.reading.bounds import MOST_REASON
from emulator.storage.reading.columns import refuse_columns, twice_in
from emulator.storage.reading.dialects import MOST_ROWS, Dialect, Sample, doubt_of, names_of
from emulator.storage.reading.tally import Tally
from emulator.storage.reading.text import Form, form_of, opened, pieces_of, refuse_encoding, source_of
from emulator.storage.table_paths import Given

MOST_HEADER_BYTES = 2**20
"""Most bytes of the first line of a CSV."""

MOST_SAMPLE_BYTES = 2**23
"""Bytes of a CSV, at most, that its dialect is found from."""

UNNAMED = "column 1 has no name, and is left out: pandas' index or R's row names, perhaps"

_BLOCK = 2**20
"""Bytes of a CSV that are read at once."""

_ROW = re.compile(r"Row #(\d+)")
_VALUE = re.compile(r"invalid value '(.*)'", re.DOTALL)
_COLUMN = re.compile(r"In CSV column #(\d+)")

Malformed = Callable[[], bool] | None
"""Called for every line with too few or too many cells, which is left out; False ends the reading."""


def count_text(path: Path, tally: Tally) -> None:
    """Count the text of a CSV, for which a compressed one is decompressed."""
    if path.suffix not in (".gz", ".zip"):
        tally.add_text(path, path.stat().st_size)
        return
    with damage_in_one_line(path), opened(path) as file:
        while content := file.read(_BLOCK):
            tally.add_text(path, len(content))


def sample_of(path: Path, given: Given = Given(), most_rows: int = MOST_ROWS) -> Sample:  # noqa: B008
    """The first lines of a CSV; DataFileError if its first one is too long, or it is damaged."""
    pieces, num_lines, num_bytes = [], 0, 0
    with damage_in_one_line(path), opened(path) as file:
        head, is_whole = file.read(_BLOCK), True
        form = form_of(head, given)
        rest = chain([head], iter(lambda: file.read(_BLOCK), b"")) if form.is_plain else pieces_of(path, form)
        for content in rest:
            num_lines, num_bytes = num_lines + content.count(b"\n"), num_bytes + len(content)
            pieces.append(content)
            if num_lines > most_rows or num_bytes >= MOST_SAMPLE_BYTES:
                is_whole = False
                break
    text = b"".join(pieces)
    lines = text.split(b"\n") if most_rows else text.lstrip(b"\r\n").split(b"\n", 1)
    if len(lines[0]) >= MOST_HEADER_BYTES:
        raise DataFileError(path, f"its first line has more than {MOST_HEADER_BYTES:,} bytes")
    if not is_whole:
        lines.pop()  # it may go on
    lines = [line for line in (line.rstrip(b"\r") for line in lines) if line]
    header = b"" if given.columns else b"".join(lines[:1])
    rows = lines if given.columns else lines[1:]
    if len(rows) > most_rows:
        rows, is_whole = rows[:most_rows], False
    return Sample(path, header, rows, is_whole, form)


@dataclass(frozen=True)
class CsvFile:
    """A CSV of this dialect and form, in which the texts `na` stand for missing numbers, besides the usual.

    `names` are those of all its columns.
    """

    path: Path
    dialect: Dialect
    form: Form
    names: Sequence[str]
    na: tuple[str, ...] = ()

    def kinds(self, *, skips_bad: bool) -> dict[str, pa.DataType]:
        """The columns that have a name, with the types of the first rows; bytes count as texts."""
        with damage_in_one_line(self.path):
            malformed = (lambda: True) if skips_bad else None
            try:
                with source_of(self.path, self.form) as source, self._reader(source, {}, malformed) as reader:
                    schema = reader.schema
            except pa.ArrowInvalid as error:
                raise self._error({}, malformed, error) from error
            return {
                field.name: pa.string() if pa.types.is_binary(field.type) else field.type
                for field in schema
                if field.name.strip()
            }

    def table(self) -> pa.Table:
        """All columns, with the types that fit all rows."""
        with damage_in_one_line(self.path), source_of(self.path, self.form) as source:
            try:
                return pyarrow.csv.read_csv(source, *self._options({}))
            except pa.ArrowInvalid as error:
                once = set(self.names) - twice_in(self.names)
                raise self._error(dict.fromkeys(once, pa.string()), None, error) from error

    def texts(self, name: str) -> pa.ChunkedArray[Any]:
        """A column as it is written."""
        with damage_in_one_line(self.path), source_of(self.path, self.form) as source:
            return pyarrow.csv.read_csv(source, *self._options({name: pa.string()})).column(name)

    def batches(
        self, types: Mapping[str, pa.DataType], malformed: Malformed
    ) -> Iterator[tuple[int, Mapping[str, pa.Array[Any]]]]:
        """The rows of these columns, each batch with the number of its first row."""
        with damage_in_one_line(self.path):
            first = 0
            try:
                with (
                    source_of(self.path, self.form) as source,
                    self._reader(source, types, malformed) as reader,
                ):
                    for batch in reader:
                        if len(batch):
                            yield first, {name: batch.column(name) for name in types}
                            first += len(batch)
            except pa.ArrowInvalid as error:
                raise self._error(types, malformed, error) from error

    def _reader(
        self,
        source: Any,
        types: Mapping[str, pa.DataType],
        malformed: Malformed,
        *,
        use_threads: bool = True,
    ) -> pyarrow.csv.CSVStreamingReader:
        return pyarrow.csv.open_csv(source, *self._options(types, malformed, use_threads=use_threads))

    def _options(
        self, types: Mapping[str, pa.DataType], malformed: Malformed = None, *, use_threads: bool = True
    ) -> tuple[pyarrow.csv.ReadOptions, pyarrow.csv.ParseOptions, pyarrow.csv.ConvertOptions]:
        """How pyarrow reads these columns, or all if there are none."""

        def left_out(_: object) -> Literal["skip", "error"]:
            assert malformed is not None
            return "skip" if malformed() else "error"

        conversion = pyarrow.csv.ConvertOptions(
            include_columns=list(types), column_types=dict(types), decimal_point=self.dialect.decimal
        )
        conversion.null_values = [*cast(Any, conversion.null_values), *self.na]
        return (
            pyarrow.csv.ReadOptions(
                block_size=_BLOCK, use_threads=use_threads, column_names=list(self.form.given.columns)
            ),
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
                source_of(self.path, self.form) as source,
                self._reader(source, types, quiet, use_threads=False) as reader,
            ):
                for _ in reader:
                    pass
        except pa.ArrowInvalid as again:
            error = again
        text = " ".join(str(error).split())
        if "invalid UTF8" in text:
            refuse_encoding(self.path, self.form.given)
        row, column, value = (pattern.search(text) for pattern in (_ROW, _COLUMN, _VALUE))
        lines_above = 0 if self.form.given.columns else 1  # the header
        number = None if row is None else int(row[1]) - lines_above
        if column is not None and value is not None:
            name = self.names[int(column[1])]
            what = "a whole number" if pa.types.is_integer(types[name]) else self.dialect.number
            return DataFileError(self.path, f"{name} = {value[1][:MOST_REASON]!r}: must be {what}", number)
        doubt = doubt_of(sample_of(self.path, self.form.given), self.names)
        hint = "" if doubt is None else f": {doubt}"
        return DataFileError(self.path, f"cannot be read as CSV ({text[:MOST_REASON]}){hint}", number)


def csv_of(sample: Sample, dialect: Dialect, na: tuple[str, ...] = ()) -> CsvFile:
    """The CSV of a sample; DataFileError if a column other than the first one has no name."""
    names = names_of(sample, dialect.separator)
    refuse_columns(sample.path, names, unnamed_first=True)
    return CsvFile(sample.path, dialect, sample.form, names, na)
