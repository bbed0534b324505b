"""Columns that say who has a row, or when, read batch by batch and then taken as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import MOST_TEXTS
from emulator.storage.reading.shards import TEXT, Batch, missing
from traces.building.bad_rows import BadRows
from traces.building.rows import Names
from traces.building.rules import FRACTIONS, NAMED, NAMES, NUMBERS, WHOLE, Cells, Rules, keep, refuse
from traces.files.expiry import MOST_STEP
from traces.ordering import pieces, ranks_of

BLOCK_BYTES = 2**26
"""Bytes of a block of a column, of eight bytes a row."""


class Column:
    """A column that is read batch by batch, and then as a whole.

    NOTE: what is read is kept in large blocks, which the system takes back at once when they are freed; of
    arrays as long as a batch, the allocator keeps as much memory as they had.

    Attributes:
        optional: Values may be missing, and are `never` then.
        has_some: Whether one of an optional column is there.
        unit: What is compared with a column of the same unit only.
        has_column: Whether a column of the table is read for it.
        has_zone: Whether times are those of UTC because they had an offset.
        notes: What is to be told about the column, once it was read.
    """

    never: Any
    unit = "numbers"
    has_zone = False
    has_column = True
    notes: tuple[str, ...] = ()

    def __init__(self, name: str, bad: BadRows, *, optional: bool = False) -> None:
        self.name = name
        self.bad = bad
        self.optional = optional
        self.has_some = False
        self._blocks: list[np.ndarray] = []
        self._used = 0  # of the last block

    def read_as(self, kind: pa.DataType) -> pa.DataType:
        """The type as which a column of a CSV is read whose first values are of type `kind`."""
        return TEXT

    def new_names(self) -> Iterator[str]:
        """The names that were not there when this was last called."""
        return iter(())

    def add(self, batch: Batch, start: int) -> None:
        """Read the column of a batch that begins at row `start` of the table."""
        if not self.optional:
            self._append(self.values(batch, start, None))
            return
        present = ~_missing_in(batch.columns[self.name])
        values = np.full(batch.num_rows, self.never)
        if present.any():
            self.has_some = True
            values = np.where(present, self.values(batch, start, present), self.never)
        self._append(values)

    def values(self, batch: Batch, start: int, present: Bools | None) -> np.ndarray:
        """(rows,) what is kept of a batch, of which only the rows that are `present` (rows,) are looked at.

        Raises DataFileError for a value that breaks a rule.
        """
        raise NotImplementedError

    def keep(self, rules: Rules, batch: Batch, start: int, among: Bools | None, **cells: Any) -> Bools:
        """(rows,) whether each row keeps the rules on these cells; see `traces.building.rules.keep`."""
        return keep(rules, Cells(name=self.name, **cells), self.bad, batch, start, among)

    def refuse(self, rules: Rules, batch: Batch, **cells: Any) -> None:
        """Raise DataFileError for the first row that breaks one of the rules: it may not be left out."""
        refuse(rules, Cells(name=self.name, **cells), batch.path, batch.num_rows, batch.first)

    def _append(self, values: np.ndarray) -> None:
        while len(values):
            # Values of a shorter type than that of the last block fit into it, those of a longer one do not.
            last = self._blocks[-1][self._used :] if self._blocks else values[:0]
            if not len(last) or values.itemsize > last.itemsize:
                self._cut()
                self._blocks.append(np.empty(BLOCK_BYTES // 8, values.dtype))
            block = self._blocks[-1][self._used :][: len(values)]
            block[:] = values[: len(block)]
            self._used += len(block)
            values = values[len(block) :]

    def _cut(self) -> None:
        """Leave off what the last block has no values for."""
        if self._blocks:
            self._blocks[-1] = self._blocks[-1][: self._used]
        self._used = 0

    def all(self) -> np.ndarray:
        """(rows,) what was kept of all batches, which is forgotten."""
        self._cut()
        whole = np.empty(sum(map(len, self._blocks)), max(block.dtype for block in self._blocks))
        last = len(whole)
        while self._blocks:  # each one is freed before the next one is copied
            block = self._blocks.pop()
            whole[last - len(block) : last] = block
            last -= len(block)
        return whole

    def finish(self) -> tuple[np.ndarray, Names]:
        """(rows,) what was kept, and the names that it indexes into, if it does."""
        return self.all(), ()


class NumberColumn(Column):
    """Whole numbers within `bounds`; without these finite numbers, by which rows are ordered."""

    def __init__(
        self, name: str, bad: BadRows, bounds: tuple[int, int] | None = None, *, optional: bool = False
    ) -> None:
        super().__init__(name, bad, optional=optional)
        self.bounds = bounds
        self.never = np.float64(np.inf) if bounds is None else np.int32(MOST_STEP + 1)
        self.rules: Rules = NUMBERS if bounds is None else WHOLE
        self.told = {} if bounds is None else {"least": bounds[0], "most": bounds[1]}

    def read_as(self, kind: pa.DataType) -> pa.DataType:
        if self.bounds is None or (self.optional and pa.types.is_floating(kind)):
            return pa.float64()
        return pa.int64()

    def values(self, batch: Batch, start: int, present: Bools | None) -> np.ndarray:
        column = batch.columns[self.name]
        if not is_number(column.type):
            kind = getattr(column.type, "value_type", column.type)
            raise DataFileError(batch.path, f"column {self.name!r} is {kind}; it must hold numbers")
        numbers, is_missing = numbers_in(column)
        if self.bounds is not None and numbers.dtype.kind == "f":  # as pandas writes whole ones with gaps
            is_whole = self.keep(FRACTIONS, batch, start, present, value=numbers)
            numbers = np.where(is_whole, numbers, 0).astype(np.int64)
        cells = {"value": numbers, "is_missing": is_missing, **self.told}
        kept = self.keep(self.rules, batch, start, present, **cells)
        return np.where(kept, numbers, 0).astype(self.never.dtype)


class NameColumn(Column):
    """Texts or whole numbers, each of which is a name: of a client, a class, a split, or a category.

    There are `most` different ones. `told` is what their rules are told besides the values. Those that are
    `optional`, values of a feature, may be missing: their code is -1.
    """

    dtype: np.dtype = np.dtype(np.int32)
    remedy = ""

    def __init__(
        self, name: str, what: str, most: int, bad: BadRows, *, optional: bool = False, **told: Any
    ) -> None:
        super().__init__(name, bad)
        self.what, self.most, self.told = what, most, told
        self.has_gaps, self.is_client = optional, what == "client" and not optional
        self.rules: Rules = NAMED.get(what, NAMES)
        self.known: dict[str, int] = {}
        self.is_whole = False
        self._num_counted = 0

    def values(self, batch: Batch, start: int, present: Bools | None) -> np.ndarray:
        column = batch.columns[self.name]
        if self.is_client and pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
            self.is_whole = True
            whole, is_missing = numbers_in(column)
            self.keep(NAMES, batch, start, present, is_missing=is_missing, what=self.what)
            fits = whole.min() >= -(2**31) and whole.max() < 2**31
            return whole.astype(np.int32) if fits else whole
        column, codes = coded(column)
        texts, is_missing = column.to_pylist(), missing(column)
        cells = {"codes": codes, "value": texts, "is_missing": is_missing, "what": self.what, **self.told}
        kept = codes >= 0 if self.has_gaps else self.keep(self.rules, batch, start, None, **cells)
        used = np.zeros(len(texts), dtype=np.bool_)
        used[codes if kept.all() else codes[kept]] = True
        known = self.known
        numbers = np.zeros(len(texts), self.dtype)
        numbers[-1] = -self.has_gaps
        numbers[used] = [known.setdefault(text, len(known)) for text in compress(texts, used.tolist())]
        if len(known) > self.most:
            many = f"{self.what}: column {self.name!r} has more than {self.most} different values"
            raise DataFileError(batch.path, many + self.remedy)
        return numbers[codes]

    def new_names(self) -> Iterator[str]:
        number, self._num_counted = len(self.known) - self._num_counted, len(self.known)
        return islice(reversed(self.known), number)

    def finish(self) -> tuple[np.ndarray, Names]:
        """The rank (rows,) of each value among the different ones, and these: numbers if all are, else texts.

        Numbers ascend, and so do texts.
        """
        codes = self.all()
        if self.is_whole:
            distinct, rank = ranks_of(codes)
            return rank, distinct
        texts = list(self.known)
        whole = all(map(_is_canonical, texts))
        names = sorted(texts, key=int if whole else None)
        rank_of = np.full(len(texts) + 1, -1, dtype=np.int32)
        rank_of[[self.known[name] for name in names]] = np.arange(len(names))
        for piece in pieces(len(codes)):
            codes[piece] = rank_of[codes[piece]]
        if whole and self.is_client:
            return codes, np.array(list(map(int, names)), dtype=np.int64)
        return codes, tuple(names)


class SplitColumn(NameColumn):
    """Texts of which each stands for a split: `choices` has its number, which is what is kept."""

    dtype = np.dtype(np.int8)

    def __init__(self, name: str, choices: Mapping[str, int], bad: BadRows) -> None:
        super().__init__(name, "split", len(choices), bad, choices=choices, either=" or ".join(choices))
        self.known = dict(choices)
        self._num_counted = len(choices)

    def finish(self) -> tuple[np.ndarray, Names]:
        return self.all(), ()


class FileColumn(NameColumn):
    """The clients of files: all rows of a file have the same one."""

    has_column = False

    def __init__(self, owners: Mapping[Path, str], bad: BadRows) -> None:
        super().__init__("client_from", "client", MOST_TEXTS, bad)
        self.owners = owners

    def values(self, batch: Batch, start: int, present: Bools | None) -> np.ndarray:
        name, codes = self.owners[batch.path], np.zeros(batch.num_rows, np.int64)
        self.keep(self.rules, batch, start, None, codes=codes, value=[name], is_missing=[False])
        return np.full(batch.num_rows, self.known.setdefault(name, len(self.known)), np.int32)


def is_number(kind: pa.DataType) -> bool:
    is_other = pa.types.is_decimal(kind) or pa.types.is_boolean(kind)
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_other


def numbers_in(column: pa.Array[Any]) -> tuple[np.ndarray, Bools]:
    """The numbers (rows,) of a column, whole ones of 64 bits, and (rows,) which are missing: null or NaN."""
    if pa.types.is_integer(column.type):
        kind = column.type if pa.types.is_uint64(column.type) else pa.int64()
        return np.asarray(pc.cast(column.fill_null(0), kind)), missing(column)
    numbers = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers, np.isnan(numbers)


def coded(column: pa.Array[Any]) -> tuple[Any, Ints]:
    """The distinct texts (k,) of a column, without the spaces around them, and (rows,) the number of each.

    That of a blank or missing one is -1, and the last one of the texts is null.
    """
    if not isinstance(column, pa.DictionaryArray):
        column = pc.cast(column, pa.string()).dictionary_encode()
    trimmed: Any = pc.utf8_trim_whitespace(pc.cast(column.dictionary, pa.string()))
    codes = np.asarray(column.indices.fill_null(-1)).astype(np.int64)
    blank = np.asarray(pc.equal(trimmed, pa.scalar("")).fill_null(True))
    if blank.any():
        codes[np.append(blank, False)[codes]] = -1
    return pa.concat_arrays([trimmed, pa.nulls(1, pa.string())]), codes


def _missing_in(column: Any) -> Bools:
    """(rows,) whether each value is null, no number, or a text of nothing but spaces."""
    if isinstance(column, pa.DictionaryArray):
        return coded(column)[1] < 0
    if pa.types.is_floating(column.type):
        return numbers_in(column)[1]
    return missing(column)


def _is_canonical(text: str) -> bool:
    """Whether a text is a whole number of 64 bits, written as Python writes it: not 007, +7 or 7.0.

    >>> _is_canonical("-7"), _is_canonical("007"), _is_canonical("7.0")
    (True, False, False)
    """
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text
