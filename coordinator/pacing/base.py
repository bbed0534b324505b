"""The protocol of pacing: when visits are opened, when they are abandoned, and when a round closes. Pure
rules over counts per lane.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from coordinator.view import Part
from emulator.arrays import Bools, Floats, Ints
from emulator.plugins import Settings
from emulator.proportions import exact, largest_remainder


@dataclass(frozen=True)
class CohortSize:
    """How many visits a round wants. `rounding` of an over-committed lane: up, or down as FedScale does.

    Up is in exact decimals, so that 50 x 1.1 is 55. Down is FedScale's `int(over_commit * M)` to the letter:
    100 x 1.15 is 114 there, since the product falls short of 115 in floating point.
    """

    participants: int
    over_commit: float = 1.0
    rounding: Literal["up", "down"] = "up"

    def over_committed(self, quota: int) -> int:
        """`over_commit` x `quota`, rounded."""
        if self.rounding == "down":
            return int(self.over_commit * quota)
        return math.ceil(exact(self.over_commit) * quota)


class Pacing(Part):
    """Base of pacings; built with its own frozen settings and the cohort's size.

    It holds no clock and counts nothing: each method is a pure function of what it is given. Columns are
    (lanes,). `full` and `absorbs` are asked about several instants at once, one a row: `out` and `back` are
    (n, lanes), `elapsed_s` is (n, 1), and the answer is bool, (n, lanes) or, for all lanes alike, (n, 1).

    `out`: visits that are out; `back`: visits that have returned since the last server step; `elapsed_s`:
    virtual seconds since the visits were sent out.

    `cancels` says whether what is still out in a full lane is abandoned. `deadline_s` is the elapsed time at
    which `full` and `absorbs` are asked again, though no visit ends; None: at no time. What arrives at that
    very instant has arrived before it.

    This version has one dispatch and one server step a round: a pacing that asks for another is refused by
    name, with a RunError.
    """

    cancels: ClassVar[bool] = True
    deadline_s: float | None = None

    def __init__(self, settings: Settings, cohort: CohortSize) -> None:
        super().__init__(settings)
        self.cohort = cohort

    def quota(self, sizes: Ints) -> Ints:
        """Visits each lane is to have absorbed, for lanes of `sizes` clients.

        By default participants are shared over the lanes in proportion to their clients, by largest
        remainder, and at least one each as long as there are enough.
        """
        quota = largest_remainder(self.cohort.participants, sizes)
        # A cluster that no quota falls to would never be trained again: it takes one of the largest quota.
        for lane in np.flatnonzero((quota == 0) & (sizes > 0)):
            if quota.max() > 1:
                quota[quota.argmax()] -= 1
                quota[lane] = 1
        return quota

    def opens(self, quota: Ints, sizes: Ints, out: Ints, back: Ints) -> Ints:
        """Visits to open now. By default the over-committed quota while no visit is out or back."""
        if out.any() or back.any():
            return np.zeros_like(quota)
        return np.array([self.cohort.over_committed(int(count)) for count in quota], dtype=np.int64)

    @abstractmethod
    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        """Lanes that wait for nothing more."""

    @abstractmethod
    def absorbs(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        """Lanes whose returned visits make a server step now."""

    def closes(self, absorbed: int, elapsed_s: float) -> bool:
        """Whether the round is over, after a server step, with `absorbed` visits absorbed in it.

        In this version a round has one step, and any answer but True ends the run: a pacing whose step may
        come with fewer than `participants` back, as after a drop-out, overrides it.
        """
        return absorbed >= self.cohort.participants
