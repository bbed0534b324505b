"""The column of a table that says until when a client holds a row, in the unit of the column of arrivals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.reading.shards import Batch, Shards, missing
from traces.building.bad_rows import BadRows
from traces.files.arrivals import When
from traces.files.expiry import MOST_STEP, before_its_turn, out_of_turn
from traces.ordering import sizes_of
from traces.tables.sorted import first_from


class Instants(Protocol):
    """What reads a column of times, steps or numbers, batch by batch."""

    name: str

    def add(self, batch: Batch, start: int) -> None:
        """Read the column of a batch that begins at row `start` of the table."""
        ...

    def all(self) -> np.ndarray:
        """(rows,) what was read."""
        ...


class PresentRows(BadRows):
    """`bad`, of which only rows that have a value may be: in the others one is put that nobody wrote."""

    def __init__(self, bad: BadRows) -> None:
        super().__init__(bad.most)
        self._bad = bad
        self.present = np.zeros(0, dtype=np.bool_)

    def refuse(self, batch: Batch, start: int, bad: Bools, problem: Callable[[int], str]) -> None:
        """Leave out the rows with a value where `bad` (rows of the batch,); see `BadRows.refuse`."""
        self._bad.refuse(batch, start, bad & self.present, problem)


class Expiry:
    """Reads the column with what reads the column of arrivals; rows without a value never expire.

    `is_whole` says that numbers are steps. Those of a column with gaps may be written as fractions, 1.0, as
    pandas does.
    """

    def __init__(self, reader: Instants, bad: PresentRows, *, is_whole: bool) -> None:
        self.reader = reader
        self.bad = bad
        self.is_whole = is_whole
        self._present: list[Bools] = []
        self._read: list[Bools] = []

    def add(self, batch: Batch, start: int) -> None:
        """Read the column of a batch that begins at row `start` of the table."""
        column: Any = batch.columns[self.reader.name]
        is_missing = missing(column) | _is_blank(column)
        self.bad.present = ~is_missing
        if self.is_whole and pa.types.is_floating(column.type):
            column = self._as_whole(batch, start, column)
        present = np.flatnonzero(~is_missing)
        self._present.append(~is_missing)
        self._read.append(np.full(len(is_missing), len(present) > 0))
        if len(present):
            # What reads arrivals refuses a missing one: it gets another value, and is left out afterwards.
            taken = np.where(is_missing, present[0], np.arange(len(is_missing)))
            filled = {self.reader.name: column.take(pa.array(taken))}
            self.reader.add(batch._replace(columns=filled), start)

    @property
    def has_some(self) -> bool:
        """Whether some row expires."""
        return any(read.any() for read in self._read)

    def all(self) -> np.ndarray:
        """(rows,) the expiry of each row; the greatest number, or infinity, if it never expires."""
        if not self.has_some:
            return np.full(sum(map(len, self._read)), MOST_STEP + 1, np.int32)
        values = self.reader.all()
        never = np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).max
        expiry = np.full(sum(map(len, self._read)), never, values.dtype)
        expiry[np.concatenate(self._read)] = values
        expiry[~np.concatenate(self._present)] = never
        return expiry

    def _as_whole(self, batch: Batch, start: int, column: Any) -> Any:
        numbers = np.asarray(column.fill_null(0))
        is_whole = np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < 2**53)
        self.bad.refuse(
            batch,
            start,
            ~is_whole,
            lambda row: f"{self.reader.name} = {numbers[row]}: must be a whole number, or empty for never",
        )
        return pa.array(np.where(is_whole, numbers, 0).astype(np.int64))


def refuse_never_held(
    shards: Shards, at: np.ndarray, expiry: np.ndarray, names: tuple[str, str], bad: BadRows
) -> None:
    """Leave out rows that expire before they arrive, or as they do; `names` are those of both columns.

    Raises DataFileError if there are more than may be left out.
    """
    early = (expiry <= at) & ~bad.mask(len(at))
    path = shards.files[0] if len(shards.files) == 1 else shards.files[0].parent
    bad.refuse(
        Batch(path, 0, {}, len(at)),
        0,
        early,
        lambda row: f"{names[1]} = {_shown(expiry[row])}: must be after {names[0]} = {_shown(at[row])}",
    )


def expiring_ranks(at: np.ndarray, expiry: np.ndarray, client: np.ndarray, order: np.ndarray) -> np.ndarray:
    """(n,) the rank of the first row of its client that arrives when each row expires, or later.

    Args:
        at: (n,) by what the rows of a client are ordered.
        expiry: (n,) in the same unit.
        client: (n,) the client of each row.
        order: (n,) the rows by client, and by `at` within it.

    Returns:
        (n,) ranks; the greatest number of 32 bits where no row arrives then: it is held to the end.
    """
    size = sizes_of(client, int(client.max()) + 1)
    start = (np.cumsum(size) - size)[client]
    end = start + size[client]
    first: Any = first_from(at[order], start, end, expiry, int(size.max()).bit_length())
    return np.where(first < end, first - start, MOST_STEP + 1).astype(np.int32)


def refuse_out_of_turn(
    columns: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    name_of: Callable[[int], str],
    keep: Bools,
    when: When,
    root: Any,
) -> None:
    """Raise DataFileError for a row that expires before one of its client and split that arrives earlier.

    `columns` are client, split, arrival and expiry of the rows of the table to `keep`.
    """
    client, _, at, expiry = columns
    later, earlier = out_of_turn(*columns)
    if len(later):
        first = int(np.argmin(later))
        pair: Ints = np.array([later[first], earlier[first]])
        row, other = (int(number) + 1 for number in np.flatnonzero(keep)[pair])
        instants, ends = (tuple(column[pair].tolist()) for column in (at, expiry))
        name = name_of(int(client[later[first]]))
        raise DataFileError(root, before_its_turn(name, instants, ends, other, when), row)


def _is_blank(column: Any) -> Bools:
    """(rows,) whether each value is a text of nothing but spaces, or no number."""
    blank: Bools = np.zeros(len(column), dtype=np.bool_)
    if isinstance(column, pa.DictionaryArray):
        texts: Any = pc.utf8_trim_whitespace(pc.cast(column.dictionary, pa.string()))
        is_empty = np.array([not text for text in texts.to_pylist()] + [True])
        blank = is_empty[np.asarray(column.indices.fill_null(len(texts)))]
    elif pa.types.is_floating(column.type):
        blank = np.isnan(np.asarray(column.fill_null(0)))
    return blank


def _shown(value: Any) -> str:
    """A time, which has 64 bits, in ISO 8601; a number as it is."""
    if isinstance(value, np.int64):
        return str(np.datetime64(int(value), "us")).removesuffix(".000000")
    return str(value)
