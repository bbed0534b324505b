"""Priority queue of the visits in flight, ordered by when they end; held in columns, popped in bulk.

Visits that end soon are kept sorted; those that end later are unsorted until their turn comes. A visit is
therefore sorted among its neighbours only, and a push or a pop costs a few array operations, however many
visits are out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.arrays import NO_IDS, Floats, Ints
from emulator.storage.state_tree import Tree, as_tree, from_tree

SORTED_AT_ONCE = 4096
"""Number of visits sorted at once, whenever all sorted ones are popped; an eighth of the rest, if more."""


@dataclass(frozen=True)
class VisitEnds:
    """Ends of visits, in columns of shape (n,).

    `time_s` is when a visit ends, in absolute virtual seconds, and `outcome` how, one of
    `emulator.messages.Outcome`: all of its uploads have arrived, its client is gone, or it timed out.
    """

    time_s: Floats
    client: Ints
    visit: Ints
    outcome: Ints

    @classmethod
    def joined(cls, parts: list[VisitEnds]) -> VisitEnds:
        """The rows of all parts, concatenated in order."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.time_s for part in parts]),
            np.concatenate([part.client for part in parts]),
            np.concatenate([part.visit for part in parts]),
            np.concatenate([part.outcome for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.time_s)

    def take(self, rows: Ints) -> VisitEnds:
        """The given rows, in that order."""
        # NOTE: `take` gathers twice as fast as indexing does.
        return VisitEnds(
            self.time_s.take(rows), self.client.take(rows), self.visit.take(rows), self.outcome.take(rows)
        )

    def part(self, first: int, stop: int | None = None) -> VisitEnds:
        """Rows [first, stop), as views; up to the last one if `stop` is None."""
        rows = slice(first, stop)
        return VisitEnds(self.time_s[rows], self.client[rows], self.visit[rows], self.outcome[rows])

    def in_order(self) -> VisitEnds:
        """Sort the rows by time; at one instant arrivals first, drop-outs last, then by client, visit."""
        order = self.time_s.argsort(kind="stable")
        time_s = self.time_s[order]
        if (time_s[1:] == time_s[:-1]).any():
            # NOTE: only if times are equal, since sorting by four keys takes several times as long as by one.
            order = np.lexsort((self.visit, self.client, self.outcome, self.time_s))
        return self.take(order)


NO_ENDS = VisitEnds(np.zeros(0), NO_IDS, NO_IDS, NO_IDS)


class InFlight:
    """The visits in flight; those that end before `_border_s` are in `_soon`, which is sorted."""

    def __init__(self, ends: VisitEnds = NO_ENDS) -> None:
        self._soon = NO_ENDS
        self._done = 0  # rows of `_soon` already popped
        self._later: list[VisitEnds] = []
        self._border_s = -np.inf
        self._number = 0  # of all visits
        self.push(ends)

    def __len__(self) -> int:
        return self._number

    def push(self, ends: VisitEnds) -> None:
        """Add visits, in any order; ValueError unless all times are finite."""
        number = ends.time_s.size
        if number == 0:
            return
        if not np.isfinite(ends.time_s).all():
            raise ValueError(f"time_s of visits in flight must be finite, and one is {ends.time_s.max()}")
        self._number += number
        if self._number <= SORTED_AT_ONCE:
            # So few are sorted together, whenever the next one is asked for.
            self._later += (
                [self._soon.part(self._done), ends] if self._done < self._soon.time_s.size else [ends]
            )
            self._soon, self._done, self._border_s = NO_ENDS, 0, -np.inf
            return
        soon = ends.time_s < self._border_s
        number = int(np.count_nonzero(soon))
        if number > 0:
            early = ends if number == soon.size else ends.take(soon.nonzero()[0])
            left = self._soon.part(self._done)
            self._soon, self._done = VisitEnds.joined([left, early]).in_order(), 0
        if number < soon.size:
            self._later.append(ends if number == 0 else ends.take((~soon).nonzero()[0]))

    def first(self, until_s: float, most: int | None = None) -> VisitEnds:
        """The next visits to end, at `until_s` or before, in order and at most `most`.

        There may be more of them than are returned, but at least one is returned if there is any. They stay
        in the queue until they are popped.
        """
        self._sort_next()
        stop = int(self._soon.time_s.searchsorted(until_s, side="right"))
        if most is not None:
            stop = min(stop, self._done + most)
        return self._soon.part(self._done, stop)

    def pop(self, count: int) -> None:
        """Remove the first `count` visits, which `first` has returned; IndexError if fewer are sorted."""
        if not 0 <= count <= self._soon.time_s.size - self._done:
            raise IndexError(f"{count} visits cannot be popped: only those that `first` returned can")
        self._done += count
        self._number -= count

    def state(self) -> Tree:
        """All visits in flight, in order."""
        return as_tree(VisitEnds.joined([self._soon.part(self._done), *self._later]).in_order())

    @classmethod
    def from_state(cls, state: Tree) -> InFlight:
        """A queue of the visits in `state`."""
        return cls(from_tree(VisitEnds, state))

    def _sort_next(self) -> None:
        """Sort the next visits, if all sorted ones have been popped."""
        if not self._later or self._done < self._soon.time_s.size:
            return
        later = VisitEnds.joined(self._later)
        count = max(SORTED_AT_ONCE, later.time_s.size // 8)
        if count >= later.time_s.size:
            self._soon, self._done, self._later = later.in_order(), 0, []
            self._border_s = float(np.nextafter(self._soon.time_s[-1], np.inf))
            return
        last_s = np.partition(later.time_s, count - 1)[count - 1]
        # Visits that end at the same instant stay together.
        soon = later.time_s <= last_s
        self._border_s = float(np.nextafter(last_s, np.inf))
        self._later = [] if soon.all() else [later.take((~soon).nonzero()[0])]
        self._soon, self._done = later.take(soon.nonzero()[0]).in_order(), 0
