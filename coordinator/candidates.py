"""The clients that could take part now, lane by lane, drawn without checking the whole fleet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from emulator.arrays import NO_IDS, Bools, Ints

TRIED_FOR_EACH, SPARE = 6, 16
"""`draw` first tries 6 x the wanted number + 16 clients: usually enough if a fifth of them are online."""

SCANNED_SHARE = 1 / 8
"""If `draw` would have to try more than this share of a lane, it checks the whole lane instead."""

FIRST_BLOCK = 64
"""Clients in the first block of a lane that `holds` checks; each further block is twice as large."""

CHECKED_AT_ONCE = 4096
"""If the lanes have at most this many clients in all, one query checks them all: one per lane costs more."""

LANE_AT_ONCE = 256
"""If lanes have at most this many clients on average, a query that checks a whole lane checks all of them."""


class Candidates:
    """The clients that could take part now, by lane."""

    def __init__(self, ids_by_lane: Sequence[Ints], available: Callable[[Ints], Bools]) -> None:
        """Candidates among the clients of the given lanes; no client is checked yet.

        Args:
            ids_by_lane: the client ids of each lane, ascending.
            available: (n,) ids -> (n,) which of these clients are online. It must be a pure function, since
                a client may be checked at any time and repeatedly.
        """
        self._ids_by_lane = ids_by_lane
        self._available = available
        self._num_clients = sum(map(len, ids_by_lane))
        self._is_small = self._num_clients <= CHECKED_AT_ONCE

    def __len__(self) -> int:
        """The number of lanes."""
        return len(self._ids_by_lane)

    def online(self, clients: Ints) -> Bools:
        """(n,) whether each of these clients (n,) is online."""
        return self._available(clients)

    def ids(self, lane: int) -> Ints:
        """All candidates of one lane; checks every client of it.

        Args:
            lane: index of the lane, in [0, len(self)).

        Returns:
            (n,) ids of the clients that are online, ascending.
        """
        if self._is_small or self._num_clients <= LANE_AT_ONCE * len(self):
            return self._all_ids[lane]
        members = self._ids_by_lane[lane]
        return members[self._available(members)]

    def draw(self, lane: int, count: int, generator: np.random.Generator) -> Ints:
        """A uniform sample of a lane's candidates, without replacement.

        A random trial of the lane's clients is checked, and those that are offline are rejected; if too few
        are left, a larger trial is made. If that would take a large part of the lane, the whole lane is
        checked instead. So in a large lane the number of clients checked depends on `count` and on the share
        of clients that are online, not on the size of the lane.

        Args:
            lane: index of the lane, in [0, len(self)).
            count: the number of candidates wanted.
            generator: the source of randomness.

        Returns:
            (n,) ids in arbitrary order; n is `count`, or the number of candidates if that is smaller.
        """
        members = self._ids_by_lane[lane]
        trial = TRIED_FOR_EACH * count + SPARE
        while not self._is_small and trial <= SCANNED_SHARE * len(members):
            tried = members[generator.choice(len(members), size=trial, replace=False)]
            online = tried[self._available(tried)]
            if len(online) >= count:
                return online[:count]
            # Start over with a larger trial; the sample stays uniform, since only the number of clients
            # found online decides it.
            trial = 2 * trial * count // (len(online) + 1)
        online = self.ids(lane)
        return generator.choice(online, size=min(count, len(online)), replace=False)

    def holds(self, count: int) -> bool:
        """Whether there are at least `count` candidates over all lanes; checks clients until it is known.

        Args:
            count: the number of candidates needed.

        Returns:
            True if at least `count` clients are online.
        """
        if self._is_small:
            return sum(map(len, self._all_ids)) >= count
        missing = count
        for members in self._ids_by_lane:
            first, size = 0, FIRST_BLOCK
            while missing > 0 and first < len(members):
                missing -= int(self._available(members[first : first + size]).sum())
                first, size = first + size, 2 * size
        return missing <= 0

    @cached_property
    def _all_ids(self) -> list[Ints]:
        """The candidates of each lane, ascending."""
        everyone = np.concatenate([NO_IDS, *self._ids_by_lane])
        online = self._available(everyone)
        borders = np.cumsum([len(members) for members in self._ids_by_lane], dtype=np.int64)
        masks = np.split(online, borders)[:-1]
        return [members[mask] for members, mask in zip(self._ids_by_lane, masks, strict=True)]
