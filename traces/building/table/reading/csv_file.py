"""A CSV of a table, plain or compressed: its columns, their types, and its rows in batches."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv

from emulator.errors import DataFileError
from emulator.storage.parquet_columns import damage_in_one_line
from emulator.storage.tables import MOST_REASON
from traces.building.table.reading.columns import refuse_columns
from traces.building.tally import Tally

MOST_HEADER_BYTES = 2**20
"""Most bytes of the first line of a CSV."""

_BLOCK = 2**20
"""Bytes of a CSV that are read at once."""

_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_ROW = re.compile(r"Row #(\d+)")
_VALUE = re.compile(r"invalid value '(.*)'", re.DOTALL)
_COLUMN = re.compile(r"In CSV column #(\d+)")


def count_text(path: Path, tally: Tally) -> None:
    """Count the text of a CSV, for which a compressed one is decompressed.

    NOTE: not while it is parsed: a reader of Python's in the threads of pyarrow's CSV reader may be at work
    when the process ends, which then never ends.
    """
    if path.suffix != ".gz":
        tally.add_text(path, path.stat().st_size)
        return
    with damage_in_one_line(path), gzip.open(path) as file:
        while content := file.read(_BLOCK):
            tally.add_text(path, len(content))


def csv_kinds(path: Path, skips_bad: bool) -> dict[str, pa.DataType]:
    """The columns of a CSV, with the types of its first rows."""
    with damage_in_one_line(path):
        _names(path)
        malformed = (lambda: True) if skips_bad else None
        try:
            with _reader(path, {}, malformed, use_threads=True) as reader:
                schema = reader.schema
        except pa.ArrowInvalid as error:
            raise _error(path, {}, malformed, error) from error
    return {field.name: field.type for field in schema}


def csv_batches(
    path: Path, types: Mapping[str, pa.DataType], malformed: Callable[[], bool] | None
) -> Iterator[tuple[int, Mapping[str, pa.Array[Any]]]]:
    with damage_in_one_line(path):
        first = 0
        try:
            with _reader(path, types, malformed, use_threads=True) as reader:
                for batch in reader:
                    if len(batch):
                        yield first, {name: batch.column(name) for name in types}
                        first += len(batch)
        except pa.ArrowInvalid as error:
            raise _error(path, types, malformed, error) from error


def _reader(
    path: Path, types: Mapping[str, pa.DataType], malformed: Callable[[], bool] | None, *, use_threads: bool
) -> pyarrow.csv.CSVStreamingReader:
    def left_out(_: object) -> Literal["skip", "error"]:
        assert malformed is not None
        return "skip" if malformed() else "error"

    return pyarrow.csv.open_csv(
        path,
        pyarrow.csv.ReadOptions(block_size=_BLOCK, use_threads=use_threads),
        pyarrow.csv.ParseOptions(invalid_row_handler=None if malformed is None else left_out),
        pyarrow.csv.ConvertOptions(include_columns=list(types), column_types=dict(types)),
    )


def _error(
    path: Path, types: Mapping[str, pa.DataType], malformed: Callable[[], bool] | None, error: pa.ArrowInvalid
) -> DataFileError:
    """The error of a CSV, with its row: it is read once more, by one thread, which counts the rows."""
    try:
        quiet = None if malformed is None else lambda: True
        with _reader(path, types, quiet, use_threads=False) as reader:
            for _ in reader:
                pass
    except pa.ArrowInvalid as again:
        error = again
    text = " ".join(str(error).split())
    row, column, value = (pattern.search(text) for pattern in (_ROW, _COLUMN, _VALUE))
    number = None if row is None else int(row[1]) - 1
    if column is not None and value is not None:
        name = _names(path)[int(column[1])]
        what = "a whole number" if pa.types.is_integer(types[name]) else "a number"
        return DataFileError(path, f"{name} = {value[1][:MOST_REASON]!r}: must be {what}", number)
    return DataFileError(path, f"cannot be read as CSV ({text[:MOST_REASON]})", number)


def _names(path: Path) -> list[str]:
    """The columns of a CSV, checked."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        line = file.readline(MOST_HEADER_BYTES)
    if len(line) >= MOST_HEADER_BYTES:
        raise DataFileError(path, f"its first line has more than {MOST_HEADER_BYTES:,} bytes")
    header = line.decode("utf-8-sig").strip("\r\n")
    try:
        names = next(csv.reader([header]), [])
    except csv.Error as error:  # such as a carriage return alone
        raise DataFileError(path, f"cannot be read as CSV ({error})") from error
    if len(names) <= 1:
        for separator, what in _OTHER_SEPARATORS.items():
            if separator in header:
                raise DataFileError(
                    path, f"is separated by {what}; a table is separated by commas: save it that way"
                )
    refuse_columns(path, names)
    return names
