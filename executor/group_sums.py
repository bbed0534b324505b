"""Weighted sums of a wave's updates: the part of one task group, as ranks send it, and the total.

In one process, each group is added up as soon as those before it are, and let go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition

import numpy as np

from emulator.arrays import Floats, Floats32, Ints, add_weighted_sums, weighted_sums


@dataclass(frozen=True)
class GroupWeights:
    """The weights (k, n) of k sums over the n updates of a wave, split by task group.

    `models[g]`: the rows of `weights` that are not all zero in group g. `of_group[g]`: these rows, restricted
    to the group's updates; a group without such rows is left out.
    """

    weights: Floats
    models: Sequence[Ints]
    of_group: Mapping[int, Floats]

    @classmethod
    def over(cls, weights: Floats, groups: Sequence[Ints]) -> GroupWeights:
        parts = [weights[:, members] for members in groups]
        models = [np.flatnonzero(part.any(axis=1)) for part in parts]
        of_group = {number: parts[number][rows] for number, rows in enumerate(models) if len(rows)}
        return cls(weights, models, of_group)

    def among(self, groups: Sequence[int]) -> list[int]:
        """The members of `groups` in which any weight is not zero, in the given order."""
        return [number for number in groups if number in self.of_group]

    def total(self, packed: Mapping[int, Floats | Floats32], num_parameters: int) -> Floats:
        """(k, P) the sums over the whole wave, added group by group in ascending order.

        `packed[g]`: the result of `summed` for group g.
        """
        sums = np.zeros((len(self.weights), num_parameters))
        for number, weights in self.of_group.items():
            sums[self.models[number]] += unfolded(packed[number], weights)
        return sums


class RunningSums:
    """Adds up the updates of a wave by `weights` (k, n), group after group, as they are trained.

    Groups come in any order, each at once or in parts; the sums are those of `ArrayUpdates.weighted_sum`, to
    the bit. At most `ahead` groups wait for those before them; who brings another one waits, too.

    Attributes:
        total: (k, Q) the sums so far.
        failed: Whether an update was not usable, or training failed: nothing is added any more.
    """

    def __init__(self, weights: Floats, groups: Sequence[Ints], num_parameters: int, ahead: int) -> None:
        self.total = np.zeros((len(weights), num_parameters))
        self.failed = False
        self._weights, self._groups, self._ahead = weights, groups, ahead
        self._waiting: dict[int, dict[int, Floats32]] = {}  # by group the updates of its tasks
        self._next = 0
        self._changed = Condition()

    def put(self, number: int, members: Ints, rows: Floats32) -> None:
        """Take the updates (m, Q) of some tasks (m,) of a group, which nobody else may change."""
        # Whoever brings a group also adds those that wait for it: if that fails, they are lost.
        with self.failing(), self._changed:
            self._changed.wait_for(lambda: self.failed or number <= self._next + self._ahead)
            if self.failed:
                return
            self._waiting.setdefault(number, {}).update(zip(members.tolist(), rows, strict=True))
            while self._is_complete():
                self._add(self._waiting.pop(self._next))
                self._next += 1
            self._changed.notify_all()

    def fail(self) -> None:
        """Let go all that waits; whoever waits for a turn goes on."""
        with self._changed:
            self.failed = True
            self._waiting.clear()
            self._changed.notify_all()

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Context that calls `fail` if an exception ends it."""
        try:
            yield
        except BaseException:
            self.fail()
            raise

    def _is_complete(self) -> bool:
        """Whether the updates of all tasks of the next group are here."""
        here = self._next < len(self._groups) and self._next in self._waiting
        return here and len(self._waiting[self._next]) == len(self._groups[self._next])

    def _add(self, by_task: Mapping[int, Floats32]) -> None:
        tasks = sorted(by_task)
        rows = [by_task[task] for task in tasks]
        add_weighted_sums(
            self.total, self._weights[:, tasks], rows[0][None] if len(rows) == 1 else np.stack(rows)
        )


def sends_rows(weights: Floats) -> bool:
    """Whether a group's updates of non-zero weight take at most as many bytes as their k sums.

    `weights` (k, n): the group's. Updates are float32, sums float64.
    """
    return 4 * int(weights.any(axis=0).sum()) <= 8 * len(weights)


def sent_rows(weights: Floats) -> int:
    """The number of rows of the array that `summed` returns for these `weights` (k, n)."""
    return int(weights.any(axis=0).sum()) if sends_rows(weights) else len(weights)


def summed(weights: Floats, rows: Floats32) -> Floats | Floats32:
    """A group's contribution to the sums `weights` (k, n) @ `rows` (n, P), in the smaller of two forms.

    Either the sums (k, P), or the rows of non-zero weight, from which `unfolded` computes the sums.
    """
    return rows[np.flatnonzero(weights.any(axis=0))] if sends_rows(weights) else weighted_sums(weights, rows)


def unfolded(packed: Floats | Floats32, weights: Floats) -> Floats:
    """(k, P) the sums by `weights` (k, n), from `packed`, the result of `summed` for the same weights."""
    if not sends_rows(weights):
        return packed.astype(np.float64, copy=False)
    return weighted_sums(weights[:, weights.any(axis=0)], packed.astype(np.float32, copy=False))
