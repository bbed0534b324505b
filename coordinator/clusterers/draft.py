"""A draft of the next models while a clusterer decides: moves, new models, merges and drops in any order.

Rows are those of the bank followed by the new ones; they keep their numbers until the draft becomes an
`Assignment`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coordinator.assignment import Assignment
from emulator.arrays import Bools, Floats, Floats32, Ints


class Draft:
    """The next models and their members, for N clients with one model each and M models in the bank.

    `members` (N,) is the row that each client will belong to, -1 = none, and may be written to.

    >>> draft = Draft(np.array([0, 0, 1]), last_used=np.array([0, 0]))
    >>> draft.members[0] = draft.add()
    >>> draft.merge(np.array([0, 1]), np.array([0.75, 0.25]))
    >>> drafted = draft.assignment(lambda number: np.zeros(1, dtype=np.float32))
    >>> drafted.members.ravel().tolist()
    [1, 0, 0]
    >>> drafted.mixing  # the merged model, then the new one; the last column is the shared initialisation
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    def __init__(self, members: Ints, last_used: Ints) -> None:
        """Start from the models of the bank.

        Args:
            members: the present model of each client, of shape (N,); -1 = none.
            last_used: the data step in which each model of the bank last had members, of shape (M,).
        """
        self.members = members.copy()
        self._before = members
        self._last_used = last_used.copy()  # (rows,)
        self._num_old = len(last_used)
        # (rows, M + 1): the mixing weights of each row; the last column is the shared initialisation.
        self._sources: Floats = np.eye(self._num_old, self._num_old + 1)
        self._kept = np.ones(self._num_old, dtype=bool)  # (rows,)
        self._successor = np.arange(self._num_old)  # (M,)

    @property
    def rows(self) -> Ints:
        """The rows that were neither dropped nor merged into another one, ascending."""
        return np.flatnonzero(self._kept)

    @property
    def used(self) -> Bools:
        """(rows,) whether each row has members."""
        return np.bincount(self.members[self.members >= 0], minlength=len(self._kept)) > 0

    @property
    def unused(self) -> Ints:
        """The remaining rows without members, ascending."""
        return np.flatnonzero(self._kept & ~self.used)

    def longest_unused(self) -> Ints:
        """Find the rows that have been without members for longest.

        Returns:
            The rows without members whose `last_used` is the lowest, ascending; empty if every row has
            members.
        """
        unused = self.unused
        last = self._last_used[unused]
        longest: Ints = unused[last == last.min(initial=np.iinfo(np.int64).max)]
        return longest

    def add(self, copied: int | None = None) -> int:
        """Add a new model.

        Args:
            copied: the row of the bank to copy; None starts from the shared initialisation.

        Returns:
            The row of the new model.
        """
        source = np.zeros((1, self._num_old + 1))
        source[0, -1 if copied is None else copied] = 1.0
        self._sources = np.vstack([self._sources, source])
        self._kept = np.append(self._kept, True)
        self._last_used = np.append(self._last_used, 0)
        return len(self._kept) - 1

    def drop(self, rows: Ints) -> None:
        """Drop models of the bank; they get no successor.

        No client may be left in them when the draft becomes an assignment.

        Args:
            rows: the rows of the bank to drop, of shape (n,).
        """
        self._kept[rows] = False

    def merge(self, rows: Ints, weights: Floats) -> None:
        """Merge models of the bank into one, in the lowest of their rows; their members move with them.

        Args:
            rows: the rows of the bank to merge, ascending, of shape (n,).
            weights: the weight of each in the mean, of shape (n,); they sum to 1.
        """
        lowest = rows[0]
        self._sources[lowest] = 0.0
        self._sources[lowest, rows] = weights
        self._kept[rows[1:]] = False
        self._successor[rows] = lowest
        self._last_used[lowest] = self._last_used[rows].max()
        self.members[np.isin(self.members, rows)] = lowest

    def last_used(self, step: int) -> Ints:
        """Compute the data step in which each remaining model last had members.

        Args:
            step: the present data step.

        Returns:
            The data step for each of `rows`, of shape (remaining rows,): `step` where the row has members.
        """
        return np.where(self.used, step, self._last_used)[self.rows]

    def assignment(self, initial: Callable[[int], Floats32]) -> Assignment | None:
        """Turn the draft into an assignment, the remaining rows renumbered from 0.

        Args:
            initial: returns the number-th initialisation of shape (P,); number 0 is the shared one.

        Returns:
            The assignment; None if nothing changed.
        """
        rows = self.rows
        number = np.full(len(self._kept), -1)  # -1: dropped, also as a successor
        number[rows] = np.arange(len(rows))
        mixing = self._sources[rows]
        extra = initial(0)[None, :] if mixing[:, -1].any() else np.zeros((0, 0), dtype=np.float32)
        members = np.where(self.members >= 0, number[self.members], -1)
        assert (members[self.members >= 0] >= 0).all(), "a client was left in a model that was dropped"
        assignment = Assignment(
            mixing=mixing if len(extra) else mixing[:, :-1],
            extra=extra,
            successor=number[self._successor],
            members=members[:, None],
        )
        same = not assignment.changes_models and np.array_equal(members, self._before)
        return None if same else assignment
