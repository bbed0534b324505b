"""Columns out of a `.csv`, `.csv.gz` or `.parquet` file, checked as they are taken.

Errors name file, row and column.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from emulator.arrays import Floats, Ints
from emulator.errors import DataFileError

SUFFIXES = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True)
class TableFile:
    """A table that was read from `path` and has at least one row."""

    path: Path
    table: pa.Table

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def columns(self) -> list[str]:
        return self.table.column_names

    def require(self, *names: str) -> None:
        """DataFileError unless every column of `names` is there."""
        for name in names:
            if name not in self.columns:
                raise DataFileError(
                    self.path, f"column {name!r} is missing; it has {', '.join(self.columns)}"
                )

    def refuse_others(self, known: Collection[str]) -> None:
        """DataFileError for a column that nobody would read: a misspelt one must not be ignored."""
        for name in self.columns:
            if name not in known:
                raise DataFileError(
                    self.path, f"unknown column {name!r}; known are {', '.join(sorted(known))}"
                )

    def numbers(self, name: str, *, at_least: float | None = None, above: float | None = None) -> Floats:
        """(rows,) the column as finite float64, each at least `at_least` and greater than `above`."""
        self.require(name)
        column = self.table.column(name)
        try:
            values: Floats = np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid as error:
            row = _first_that_is_no_number(column)
            value = column[row - 1].as_py()
            raise DataFileError(
                self.path, f"column {name!r} must hold numbers, not {value!r}", row
            ) from error
        except pa.ArrowNotImplementedError as error:
            raise DataFileError(self.path, f"column {name!r} must hold numbers ({error})") from error
        self._refuse(name, ~np.isfinite(values), "must be a finite number, not missing or NaN", values)
        if at_least is not None:
            self._refuse(name, values < at_least, f"must be at least {at_least:g}", values)
        if above is not None:
            self._refuse(name, values <= above, f"must be greater than {above:g}", values)
        return values

    def ids(self, name: str) -> Ints:
        """(rows,) each value's rank among the distinct values, so that permuting the rows changes no rank."""
        return np.unique(np.array(self.values(name)), return_inverse=True)[1].astype(np.int64)

    def unique_ids(self, name: str) -> Ints:
        """As `ids`; DataFileError when a value stands in two rows."""
        ranks = self.ids(name)
        _, first, counts = np.unique(ranks, return_index=True, return_counts=True)
        if (counts > 1).any():
            rank = int(np.flatnonzero(counts > 1)[0])
            rows = np.flatnonzero(ranks == rank) + 1
            value = self.table.column(name)[int(first[rank])].as_py()
            raise DataFileError(self.path, f"{name} {value!r} is also in row {rows[0]}", row=int(rows[1]))
        return ranks

    def values(self, name: str) -> list[Any]:
        """(rows,) the column as Python's own values, by which rows can be told apart; none may be missing."""
        self.require(name)
        self._refuse_missing(name)
        column = self.table.column(name)
        if pa.types.is_nested(column.type):
            raise DataFileError(self.path, f"column {name!r} is {column.type}; an id is a text or a number")
        values: list[Any] = column.to_pylist()
        return values

    def texts(self, name: str) -> list[str]:
        """(rows,) the column as text; none of it may be missing."""
        self.require(name)
        self._refuse_missing(name)
        return [str(value) for value in self.table.column(name).to_pylist()]

    def _refuse_missing(self, name: str) -> None:
        column = self.table.column(name)
        if column.null_count:
            row = int(np.flatnonzero(np.asarray(column.is_null()))[0]) + 1
            raise DataFileError(self.path, f"{name} is missing", row=row)

    def _refuse(self, name: str, bad: np.ndarray, rule: str, values: Floats) -> None:
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise DataFileError(self.path, f"{name} = {values[row]:g} {rule}", row=row + 1)


def read_table(path: Path) -> TableFile:
    """The table in `path`; DataFileError when it is missing, empty, unreadable or neither CSV nor Parquet."""
    if not path.name.endswith(SUFFIXES):
        raise DataFileError(path, f"a table is one of {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise DataFileError(path, "no such file")
    if path.stat().st_size == 0:
        raise DataFileError(path, "is empty")
    try:
        # One file and nothing around it: no dataset discovery, no columns out of the names of folders.
        # What is gzipped, `read_csv` tells by the name.
        table = pq.ParquetFile(path).read() if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        kind = next(suffix[1:] for suffix in SUFFIXES if path.name.endswith(suffix))
        raise DataFileError(path, f"cannot be read as {kind} ({reason})") from error
    if len(set(table.column_names)) < len(table.column_names):
        raise DataFileError(path, f"a column name stands twice: {', '.join(table.column_names)}")
    if table.num_rows == 0:
        raise DataFileError(path, "has no rows")
    return TableFile(path, table)


def _first_that_is_no_number(column: pa.ChunkedArray[Any]) -> int:
    """The first row, counted from 1, whose value cannot be cast to a number; some row's cannot."""
    low, high = 0, len(column)  # the row is in [low, high), and all before low are numbers
    while high - low > 1:
        middle = (low + high) // 2
        try:
            pc.cast(column.slice(low, middle - low), pa.float64())
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low + 1
