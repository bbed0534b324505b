"""Columns that say who has a row, or when, read batch by batch and then taken as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.errors import DataFileError
from emulator.storage.parquet_columns import MOST_TEXTS
from emulator.storage.reading.shards import Batch, missing
from traces.building.bad_rows import BadRows
from traces.building.rows import Names
from traces.building.table.times.instants import Instants, TimeOptions
from traces.ordering import pieces, ranks_of

BLOCK_BYTES = 2**26
"""Bytes of a block of a column, of eight bytes a row."""


class Column:
    """A column that is read batch by batch, and then as a whole.

    NOTE: what is read is kept in large blocks, which the system takes back at once when they are freed; of
    arrays as long as a batch, the allocator keeps as much memory as they had.
    """

    def __init__(self, name: str, bad: BadRows) -> None:
        self.name = name
        self.bad = bad
        self._blocks: list[np.ndarray] = []
        self._used = 0  # of the last block

    def add(self, batch: Batch, start: int) -> None:
        values = self.values(batch, start)
        while len(values):
            if not self._blocks or self._used == len(self._blocks[-1]) or self._widens(values):
                self._cut()
                self._blocks.append(np.empty(BLOCK_BYTES // 8, values.dtype))
            block = self._blocks[-1][self._used :][: len(values)]
            block[:] = values[: len(block)]
            self._used += len(block)
            values = values[len(block) :]

    def _widens(self, values: np.ndarray) -> bool:
        """Whether `values` are of a longer type than the last block; shorter ones fit into it."""
        return values.dtype.itemsize > self._blocks[-1].dtype.itemsize

    def _cut(self) -> None:
        """Leave off what the last block has no values for."""
        if self._blocks:
            self._blocks[-1] = self._blocks[-1][: self._used]
        self._used = 0

    def values(self, batch: Batch, start: int) -> np.ndarray:
        """(rows,) what is kept of a batch; raises DataFileError for a value that breaks a rule."""
        raise NotImplementedError

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


class Times(Column):
    def __init__(self, name: str, options: TimeOptions, bad: BadRows) -> None:
        super().__init__(name, bad)
        self.instants = Instants(name, options, bad)

    def values(self, batch: Batch, start: int) -> np.ndarray:
        return self.instants.read(batch, start)


class Whole(Column):
    """Whole numbers in a range."""

    def __init__(self, name: str, least: int, most: int, bad: BadRows) -> None:
        super().__init__(name, bad)
        self.least, self.most = least, most

    def values(self, batch: Batch, start: int) -> np.ndarray:
        column = batch.columns[self.name]
        is_missing = missing(column)
        numbers = np.asarray(column.fill_null(0))
        outside = (numbers < self.least) | (numbers > self.most)

        def problem(row: int) -> str:
            if is_missing[row]:
                return f"{self.name} is missing"
            return f"{self.name} = {numbers[row]}: must be from {self.least} to {self.most}"

        self.bad.refuse(batch, start, is_missing | outside, problem)
        return np.where(outside, 0, numbers).astype(np.int32)


class Numbers(Column):
    """Finite numbers, by which rows are ordered."""

    def values(self, batch: Batch, start: int) -> np.ndarray:
        numbers = pc.cast(batch.columns[self.name], pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        infinite = ~np.isfinite(numbers)
        self.bad.refuse(
            batch,
            start,
            infinite,
            lambda row: (
                f"{self.name} is missing"
                if np.isnan(numbers[row])
                else f"{self.name} = {numbers[row]}: must be a finite number"
            ),
        )
        return np.where(infinite, 0.0, numbers)


class Values(Column):
    """Texts or whole numbers, each of which is a name: of a client, a class, a split, or a category.

    `choices` are the names that are allowed, with their numbers. With `empty`, a missing value is allowed;
    its code is -1.
    """

    def __init__(
        self,
        name: str,
        what: str,
        most: int,
        bad: BadRows,
        choices: Mapping[str, int] | None = None,
        *,
        empty: bool = False,
    ) -> None:
        super().__init__(name, bad)
        self.what, self.most, self.choices, self.empty = what, most, choices, empty
        self.known: dict[str, int] = {}
        self.is_whole = False
        self._num_counted = 0

    def values(self, batch: Batch, start: int) -> np.ndarray:
        column = batch.columns[self.name]
        if self.what == "client" and pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
            self.is_whole = True
            self.bad.refuse(batch, start, missing(column), lambda row: self._missing())
            numbers = np.asarray(pc.cast(column.fill_null(0), pa.int64()))
            fits = numbers.min() >= -(2**31) and numbers.max() < 2**31
            return numbers.astype(np.int32) if fits else numbers
        if not isinstance(column, pa.DictionaryArray):
            column = pc.cast(column, pa.string()).dictionary_encode()
        codes = np.asarray(column.indices.fill_null(-1)).astype(np.int64)
        texts: list[Any] = pc.utf8_trim_whitespace(pc.cast(column.dictionary, pa.string())).to_pylist()
        is_good = np.array(
            [self._is_good(text) for text in texts] + [self.empty], dtype=np.bool_
        )  # -1: missing
        if not self.empty:
            self.bad.refuse(batch, start, ~is_good[codes], lambda row: self._problem(texts, codes[row]))
        known = self.known
        used = np.zeros(len(texts) + 1, dtype=np.bool_)
        used[codes] = True
        numbers = np.full(len(texts) + 1, -1 if self.empty else 0, dtype=np.int32)
        if used[:-1].all() and is_good[:-1].all() and all(texts):
            numbers[:-1] = [known.setdefault(text, len(known)) for text in texts]
        else:
            for number in np.flatnonzero(used[:-1] & is_good[:-1]).tolist():
                if texts[number]:
                    numbers[number] = known.setdefault(texts[number], len(known))
        if len(known) > self.most:
            raise self.too_many(batch)
        return numbers[codes]

    def new_names(self) -> Iterator[str]:
        """The names that were not there when this was last called."""
        number, self._num_counted = len(self.known) - self._num_counted, len(self.known)
        return islice(reversed(self.known), number)

    def too_many(self, batch: Batch) -> DataFileError:
        return DataFileError(
            batch.path, f"{self.what}: column {self.name!r} has more than {self.most} different values"
        )

    def finish(self) -> tuple[np.ndarray, Names]:
        """The rank (rows,) of each value among the different ones, and these: numbers if all are, else texts.

        Numbers ascend, and so do texts.
        """
        codes = self.all()
        if self.is_whole:
            distinct, rank = ranks_of(codes)
            return rank, distinct
        texts = list(self.known)
        whole = self.what != "split" and all(map(_is_canonical, texts))
        order = sorted(range(len(texts)), key=lambda code: int(texts[code]) if whole else texts[code])
        rank_of = np.full(len(texts) + 1, -1, dtype=np.int32)
        rank_of[order] = np.arange(len(order), dtype=np.int32)
        names = [texts[code] for code in order]
        for piece in pieces(len(codes)):
            codes[piece] = rank_of[codes[piece]]
        if whole and self.what == "client":
            return codes, np.array([int(name) for name in names], dtype=np.int64)
        return codes, tuple(names)

    def in_choices(self) -> np.ndarray:
        """(rows,) the number of each value, as `choices` has it."""
        assert self.choices is not None
        numbers = np.array([self.choices[text] for text in self.known] or [0], dtype=np.int8)
        codes = self.all()
        taken = np.empty(len(codes), np.int8)
        for piece in pieces(len(codes)):
            taken[piece] = numbers[np.minimum(codes[piece], len(numbers) - 1)]
        return taken

    def _is_good(self, text: str | None) -> bool:
        if not text:
            return self.empty
        return self.choices is None or text in self.choices

    def _problem(self, texts: list[Any], code: int) -> str:
        if code < 0 or not texts[code]:
            return self._missing()
        rule = f"must be {' or '.join(self.choices or ())}; --splits 'val=test' says what other texts are"
        return f"{self.name} = {texts[code]!r}: {rule}"

    def _missing(self) -> str:
        return f"{self.name} is missing: the {self.what} of the row"


class FileClients(Values):
    """The clients of files: all rows of a file have the same one."""

    def __init__(self, owners: Mapping[Path, str], bad: BadRows) -> None:
        super().__init__("client_from", "client", MOST_TEXTS, bad)
        self.owners = owners

    def values(self, batch: Batch, start: int) -> np.ndarray:
        code = self.known.setdefault(self.owners[batch.path], len(self.known))
        return np.full(batch.num_rows, code, np.int32)


def _is_canonical(text: str) -> bool:
    """Whether a text is a whole number of 64 bits, written as Python writes it: not 007, +7 or 7.0.

    >>> _is_canonical("-7"), _is_canonical("007"), _is_canonical("7.0")
    (True, False, False)
    """
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text
