"""Who could take part now, lane by lane: candidates are drawn without looking at everybody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from emulator.arrays import NO_IDS, Bools, Ints
from emulator.deprecated import keep_old_names

TRIED_FOR_EACH, SPARE = 6, 16
"""Clients that are tried for each one wanted, and beyond: mostly enough where a fifth of them is online."""

SCANNED_SHARE = 1 / 8
"""A trial of more than this share of a lane looks at all of it."""

FIRST_BLOCK = 256

ASKED_AT_ONCE = 4096
"""Up to this many candidates are looked up together, once: lane by lane costs more."""


class Candidates:
    """The clients that could take part now.

    `ids_by_lane` has the ids of each lane, ascending; `available` says which of some ids are there (online),
    and is a pure function, so that a client can be asked for at any time and twice.
    """

    def __init__(self, ids_by_lane: Sequence[Ints], available: Callable[[Ints], Bools]) -> None:
        self._ids_by_lane = ids_by_lane
        self._available = available
        self._is_small = sum(map(len, ids_by_lane)) <= ASKED_AT_ONCE

    def __len__(self) -> int:
        """How many lanes there are."""
        return len(self._ids_by_lane)

    def ids(self, lane: int) -> Ints:
        """The ids of one lane, ascending; looks at all its clients."""
        if self._is_small:
            return self._all_ids[lane]
        members = self._ids_by_lane[lane]
        return members[self._available(members)]

    def draw(self, lane: int, count: int, generator: np.random.Generator) -> Ints:
        """`count` of the lane, or all there are: uniform, without replacement, in no order.

        Clients are drawn and those that are not available rejected, until there are enough; where that would
        take a large part of the lane, all of it is looked at instead. So the cost follows `count` and the
        share that is online, not the size of the lane.
        """
        members = self._ids_by_lane[lane]
        trial = TRIED_FOR_EACH * count + SPARE
        while not self._is_small and trial <= SCANNED_SHARE * len(members):
            tried = members[generator.choice(len(members), size=trial, replace=False)]
            found = tried[self._available(tried)]
            if len(found) >= count:
                return found[:count]
            # Started over, with more: nothing in it tells one available client from another.
            trial = 2 * trial * count // (len(found) + 1)
        found = self.ids(lane)
        return generator.choice(found, size=min(count, len(found)), replace=False)

    def holds(self, count: int) -> bool:
        """Whether so many clients are there, over all lanes; looks at no more than it takes to know."""
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
        """The ids of all lanes, ascending in each."""
        everyone = np.concatenate([NO_IDS, *self._ids_by_lane])
        there = self._available(everyone)
        borders = np.cumsum([len(members) for members in self._ids_by_lane], dtype=np.int64)
        masks = np.split(there, borders)[:-1]
        return [members[mask] for members, mask in zip(self._ids_by_lane, masks, strict=True)]


keep_old_names(__name__)
