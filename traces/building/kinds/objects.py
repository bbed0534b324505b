"""Objects cut out of the frames of videos: those that are large enough, arriving interval by interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import InputError
from emulator.numbers import Count, Number
from traces.building.images import EncodedImageSettings
from traces.building.rows import Rows, interval_of

MinBox = Annotated[
    float,
    Number(ge=0, le=1e5),
    Field(description="leave out objects whose box is not wider and higher than that"),
]
OwnedIntervals = Annotated[Count, Field(description="intervals that clients have from the start")]


class ObjectSettings(EncodedImageSettings):
    """The sizes of objects, and the intervals in which they arrive."""

    min_box: MinBox = 0
    intervals: Count = Field(10, description="cut each client's frames into that many intervals of time")
    owned_steps: OwnedIntervals = 1

    def large(self, rows: Rows) -> Rows:
        """The objects whose box is large enough."""
        assert rows.box is not None
        sides = rows.box[:, 2:] - rows.box[:, :2]
        return rows.take(np.flatnonzero((sides > self.min_box).all(axis=1)))

    def arriving(self, rows: Rows, rank: Ints, size: Ints) -> Rows:
        """The objects in a client's frame `rank` (n,) of `size` (n,), which arrive with its interval.

        Raises InputError if there are more intervals at the start than there are.
        """
        refuse_owned(self.owned_steps, "intervals", self.intervals)
        at = interval_of(rank, size, self.intervals) - (self.owned_steps - 1)
        return replace(rows, when="step", at=at)


def refuse_owned(owned: int, option: str, parts: int) -> None:
    """Raise InputError if clients have more parts from the start than the option of that name makes."""
    if owned > parts:
        raise InputError(f"--owned-steps {owned}: must be at most --{option} {parts}")


def ranks(group: Ints, *keys: np.ndarray) -> tuple[Ints, Ints]:
    """The rank of the keys of each row among the different ones of its group, and the number of these.

    Args:
        group: (n,) the group of each row, from 0 on.
        keys: columns (n,) to sort by, the first one first.

    >>> ranks(np.array([0, 0, 0, 1]), np.array([7, 9, 7, 3]))
    (array([0, 1, 0, 0]), array([2, 2, 2, 1]))
    """
    order = np.lexsort((*keys[::-1], group))
    differs = np.logical_or.reduce([np.diff(column[order], prepend=-1) != 0 for column in (group, *keys)])
    differs[:1] = True
    sizes = np.bincount(group[order][differs])
    rank = np.empty(len(group), np.int64)
    rank[order] = np.cumsum(differs) - 1
    return rank - (np.cumsum(sizes) - sizes)[group], sizes[group]
