"""The next models while a clusterer is still deciding: moves, new models, merges and drops in any order.

Rows are those of the bank, then the new ones, and keep their numbers until the draft becomes an `Assignment`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coordinator.assignment import Assignment
from emulator.arrays import Bools, Floats, Floats32, Ints


class Draft:
    """Models and members as they will be. N clients, each in one model; M models in the bank.

    `members` (N,) may be written to: the row each client will belong to. `last_used` (M,) is the data step in
    which each model of the bank last had members.
    """

    def __init__(self, members: Ints, last_used: Ints) -> None:
        self.members = members.copy()
        self._before = members
        self._last_used = last_used.copy()  # (rows,)
        self._num_old = len(last_used)
        # (rows, M + 1): what each is mixed from; the last column is the shared initialisation.
        self._sources: Floats = np.eye(self._num_old, self._num_old + 1)
        self._kept = np.ones(self._num_old, dtype=bool)  # (rows,)
        self._successor = np.arange(self._num_old)  # (M,)

    @property
    def rows(self) -> Ints:
        """The rows that will be kept, ascending."""
        return np.flatnonzero(self._kept)

    @property
    def used(self) -> Bools:
        """(rows,) whether some client is a member."""
        return np.bincount(self.members, minlength=len(self._kept)) > 0

    @property
    def unused(self) -> Ints:
        """The kept rows without members, ascending."""
        return np.flatnonzero(self._kept & ~self.used)

    def longest_unused(self) -> Ints:
        """Of the rows without members, those that had none for longest; ascending."""
        unused = self.unused
        last = self._last_used[unused]
        longest: Ints = unused[last == last.min(initial=np.iinfo(np.int64).max)]
        return longest

    def add(self, copied: int | None = None) -> int:
        """The row of a new model: a copy of row `copied` of the bank, or None: the shared initialisation."""
        source = np.zeros((1, self._num_old + 1))
        source[0, -1 if copied is None else copied] = 1.0
        self._sources = np.vstack([self._sources, source])
        self._kept = np.append(self._kept, True)
        self._last_used = np.append(self._last_used, 0)
        return len(self._kept) - 1

    def drop(self, rows: Ints) -> None:
        """These models of the bank end without a successor; no client may be left in them at the end."""
        self._kept[rows] = False

    def merge(self, rows: Ints, weights: Floats) -> None:
        """These models of the bank become one in the lowest row, mixed by `weights`; members go with them."""
        lowest = rows[0]
        self._sources[lowest] = 0.0
        self._sources[lowest, rows] = weights
        self._kept[rows[1:]] = False
        self._successor[rows] = lowest
        self._last_used[lowest] = self._last_used[rows].max()
        self.members[np.isin(self.members, rows)] = lowest

    def last_used(self, step: int) -> Ints:
        """(kept rows,) the data step in which each last had members, now that `step` is decided."""
        return np.where(self.used, step, self._last_used)[self.rows]

    def assignment(self, initial: Callable[[int], Floats32]) -> Assignment | None:
        """What was drafted, with the kept rows numbered anew; None when it is all as before."""
        rows = self.rows
        number = np.full(len(self._kept), -1)  # of a dropped row, as a successor and as its own
        number[rows] = np.arange(len(rows))
        mixing = self._sources[rows]
        extra = initial(0)[None, :] if mixing[:, -1].any() else np.zeros((0, 0), dtype=np.float32)
        members = number[self.members]
        assert (members >= 0).all(), "a client was left in a model that was dropped"
        assignment = Assignment(
            mixing=mixing if len(extra) else mixing[:, :-1],
            extra=extra,
            successor=number[self._successor],
            members=members[:, None],
        )
        same = not assignment.changes_models and np.array_equal(members, self._before)
        return None if same else assignment
