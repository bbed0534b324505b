"""A table in memory: columns of one length, whose rows are added at the end and removed anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.arrays import Bools, Ints
from emulator.storage.state_tree import Tree
from emulator.storage.stateful import Stateful

Column = npt.NDArray[Any]

FEWEST_ROWS = 64
"""Rows that there is room for at first, at least."""


class Table(Stateful):
    """Columns of shape (n, ...) by name, in the ascending order of one of them, the key.

    Removed rows stay where they are, marked as `removed`, until there is no room for further ones: then only
    the others are copied to larger arrays. So a row costs constant time, and row numbers hold until the next
    `append`.
    """

    state_fields = ("_columns", "columns", "count", "_removed", "_end")  # all follow from the rows in `state`

    def __init__(self, key: str) -> None:
        self._key = key
        self._columns: dict[str, Column] = {}
        self.columns: Mapping[str, Column] = {}
        """The column of all rows, also of those that were removed; none before the first `append`."""
        self.count = 0
        """The number of rows, without those that were removed."""
        self._removed: Bools = np.zeros(0, dtype=bool)  # (room,)
        self._end = 0  # rows up to here are in use, or removed

    @property
    def rows(self) -> Ints:
        """The numbers of the rows that were not removed, ascending."""
        return (~self._removed[: self._end]).nonzero()[0]

    def append(self, columns: Mapping[str, Column]) -> None:
        """Add rows, of all columns, in the order of their keys, which are above those of all rows before."""
        count = len(columns[self._key])
        if self.count == 0:
            self._end = 0
        if not self._columns or self._end + count > len(self._removed):
            self._make_room(columns, count)
        rows = slice(self._end, self._end + count)
        for name, values in columns.items():
            self._columns[name][rows] = values
        self._removed[rows] = False
        self._end, self.count = self._end + count, self.count + count
        self.columns = {name: column[: self._end] for name, column in self._columns.items()}

    def find(self, keys: Ints) -> Ints:
        """(n,) the first row with each of these keys (n,), which are in the table."""
        return self.columns[self._key].searchsorted(keys)

    def find_all(self, keys: Ints) -> tuple[Ints, Ints]:
        """The rows with these keys (n,), key after key, and the number of rows (n,) of each key."""
        first, last = self.find(keys), self.columns[self._key].searchsorted(keys, "right")
        counts = last - first
        offsets = counts.cumsum() - counts
        return np.repeat(first - offsets, counts) + np.arange(counts.sum()), counts

    def take(self, rows: Ints) -> dict[str, Column]:
        """The columns of the given rows, in that order, as copies."""
        return {name: column[rows] for name, column in self._columns.items()}

    def remove(self, rows: Ints) -> None:
        """Remove the given rows, none of which was removed before."""
        self._removed[rows] = True
        self.count -= len(rows)

    def state(self) -> dict[str, Tree]:
        """The columns, without the rows that were removed."""
        rows = self.rows
        return {name: column[rows] for name, column in self._columns.items()}

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from a state, in a table without rows."""
        if state:
            self.append(state)

    def _make_room(self, columns: Mapping[str, Column], count: int) -> None:
        """Move the rows to arrays with room for twice as many rows as there are, with `count` new ones."""
        rows = self.rows
        room = max(FEWEST_ROWS, 2 * (len(rows) + count))
        for name, values in columns.items():
            larger = np.empty((room, *values.shape[1:]), dtype=values.dtype)
            if len(rows) > 0:
                larger[: len(rows)] = self._columns[name][rows]
            self._columns[name] = larger
        self._removed = np.zeros(room, dtype=bool)
        self._end = len(rows)
