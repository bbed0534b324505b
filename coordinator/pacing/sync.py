"""Synchronous rounds: a cohort goes out, and the round ends when its slowest lane has closed."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.pacing.base import CohortSize, Pacing
from emulator.arrays import Bools, Ints
from emulator.numbers import Duration
from emulator.plugins import Parameters
from emulator.proportions import largest_remainder


class SyncParameters(Parameters):
    """When a round ends."""

    close: Literal["lane", "pooled"] = Field(
        "lane", description="every lane on its own quota, or all together on the participants"
    )
    deadline_s: Duration | None = Field(
        None, description="virtual seconds after dispatch; without it, a round waits for its quota"
    )


class Sync(Pacing):
    """A cohort goes out, and the round ends when its slowest lane has closed.

    Participants are shared over the lanes in proportion to their clients, by largest remainder, and at least
    one each as long as there are enough.
    """

    Parameters = SyncParameters

    def __init__(self, parameters: SyncParameters, cohort: CohortSize) -> None:
        self.parameters = parameters
        self.cohort = cohort

    @property
    def deadline_s(self) -> float | None:
        return self.parameters.deadline_s

    def quota(self, sizes: Ints) -> Ints:
        quota = largest_remainder(self.cohort.participants, sizes)
        # A cluster that no quota falls to would never be trained again: it takes one of the largest quota.
        for lane in np.flatnonzero((quota == 0) & (sizes > 0)):
            if quota.max() > 1:
                quota[quota.argmax()] -= 1
                quota[lane] = 1
        return quota

    def wanted(self, quota: Ints) -> Ints:
        return np.array([self.cohort.over_committed(int(count)) for count in quota], dtype=np.int64)

    def full(self, quota: Ints, back: Ints) -> Bools:
        if self.parameters.close == "pooled":
            everybody = back.sum(axis=-1, keepdims=True) >= quota.sum()
            return np.broadcast_to(everybody, back.shape)
        return back >= quota
