"""A CSV of a table, plain or compressed: first lines, the types of its columns, and its rows in batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.csv

from emulator.errors import DataFileError
from emulator.storage.parquet_columns import damage_in_one_line
from emulator.storage.reading.bounds import MOST_REASON
from emulator.storage.reading.columns import Batch, Types, refuse_columns, twice_in
from emulator.storage.reading.dialects import MOST_ROWS, Dialect, Sample, doubt_of, names_of
from emulator.storage.reading.tally import Tally
from emulator.storage.reading.text import Form, form_at, pieces_of, refuse_encoding, source_of
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
    with damage_in_one_line(path):
        is_packed = path.suffix in (".gz", ".zip")
        for size in map(len, pieces_of(path, Form(Given()))) if is_packed else [path.stat().st_size]:
            tally.add_text(path, size)


def sample_of(path: Path, given: Given = Given(), most_rows: int = MOST_ROWS) -> Sample:  # noqa: B008
    """The first lines of a CSV; DataFileError if its first one is too long, or it is damaged."""
    pieces, num_lines, num_bytes, is_whole = [], 0, 0, True
    with damage_in_one_line(path):
        form = form_at(path, given)
        for content in pieces_of(path, form):
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
    header, rows = ([], lines) if given.columns else (lines[:1], lines[1:])
    is_whole = is_whole and len(rows) <= most_rows
    return Sample(path, b"".join(header), rows[:most_rows], is_whole, form)


@dataclass(frozen=True)
class CsvFile:
    """A CSV of this dialect and form, and how it is read.

    Attributes:
        names: Those of all its columns.
        na: Texts that stand for missing numbers, besides the usual ones.
        types: The columns that are read, with their types; none: all, with the types that fit.
        malformed: What is done about lines with too few or too many cells; None: the first one is an error.
    """

    path: Path
    dialect: Dialect
    form: Form
    names: Sequence[str]
    na: tuple[str, ...] = ()
    types: Types = field(default_factory=dict)
    malformed: Malformed = None

    def kinds(self) -> dict[str, pa.DataType]:
        """The columns that have a name, with the types of the first rows; bytes count as texts."""
        with self._source(self.types) as source, pyarrow.csv.open_csv(source, *self._options()) as reader:
            fields = [(field.name, field.type) for field in reader.schema if field.name.strip()]
        return {name: pa.string() if pa.types.is_binary(kind) else kind for name, kind in fields}

    def table(self) -> pa.Table:
        """The columns, with the types that fit all rows."""
        once = set(self.names) - twice_in(self.names)
        with self._source(self.types or dict.fromkeys(once, pa.string())) as source:
            return pyarrow.csv.read_csv(source, *self._options())

    def texts(self, name: str) -> pa.ChunkedArray[Any]:
        """A column as it is written."""
        return replace(self, types={name: pa.string()}).table().column(name)

    def batches(self) -> Iterator[Batch]:
        """The rows of the columns `types`."""
        first = 0
        with self._source(self.types) as source, pyarrow.csv.open_csv(source, *self._options()) as reader:
            for batch in reader:
                if len(batch):
                    columns = {name: batch.column(name) for name in self.types}
                    yield Batch(self.path, first, columns, len(batch))
                    first += len(batch)

    @contextmanager
    def _source(self, types: Types) -> Iterator[Any]:
        """Context of what pyarrow reads; its errors are told with their rows, which are read as `types`."""
        with damage_in_one_line(self.path), source_of(self.path, self.form) as source:
            try:
                yield source
            except pa.ArrowInvalid as error:
                raise self._error(error, types) from error

    def _options(self, *, use_threads: bool = True) -> tuple[Any, Any, Any]:
        """How pyarrow reads it: its options of reading, of parsing and of conversion."""
        types, malformed, names = dict(self.types), self.malformed, list(self.form.given.columns)

        def left_out(_: object) -> Literal["skip", "error"]:
            return "skip" if malformed and malformed() else "error"

        conversion = pyarrow.csv.ConvertOptions(
            include_columns=list(types), column_types=types, decimal_point=self.dialect.decimal
        )
        conversion.null_values = [*cast(Any, conversion.null_values), *self.na]
        return (
            pyarrow.csv.ReadOptions(block_size=_BLOCK, use_threads=use_threads, column_names=names),
            pyarrow.csv.ParseOptions(
                delimiter=self.dialect.separator, invalid_row_handler=left_out if malformed else None
            ),
            conversion,
        )

    def _error(self, error: pa.ArrowInvalid, types: Types) -> DataFileError:
        """The error, with its row: the file is read once more, by one thread, which counts the rows."""
        given = self.form.given
        again = replace(self, types=types, malformed=self.malformed and (lambda: True))
        try:
            with (
                source_of(self.path, self.form) as source,
                pyarrow.csv.open_csv(source, *again._options(use_threads=False)) as reader,
            ):
                for _ in reader:
                    pass
        except pa.ArrowInvalid as of_row:
            error = of_row
        text = " ".join(str(error).split())
        if "invalid UTF8" in text:
            refuse_encoding(self.path, self.form)
        row, column, value = (pattern.search(text) for pattern in (_ROW, _COLUMN, _VALUE))
        lines_above = 0 if given.columns else 1  # the header
        number = None if row is None else int(row[1]) - lines_above
        if column is not None and value is not None:
            name = self.names[int(column[1])]
            what = "a whole number" if pa.types.is_integer(types[name]) else self.dialect.number
            return DataFileError(self.path, f"{name} = {value[1][:MOST_REASON]!r}: must be {what}", number)
        doubt = doubt_of(sample_of(self.path, given), self.names)
        hint = "" if doubt is None else f": {doubt}"
        return DataFileError(self.path, f"cannot be read as CSV ({text[:MOST_REASON]}){hint}", number)


def csv_of(sample: Sample, dialect: Dialect) -> CsvFile:
    """The CSV of a sample; DataFileError if a column other than the first one has no name."""
    names = names_of(sample, dialect.separator)
    refuse_columns(sample.path, names, unnamed_first=True)
    return CsvFile(sample.path, dialect, sample.form, names)
