"""The protocol of pacing: when to dispatch and when to absorb. Pure rules over counts per lane."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from coordinator.view import Part
from emulator.arrays import Bools, Ints
from emulator.proportions import exact


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
    """Base of pacings; built with its own frozen parameters and the cohort's size. Arrays are (lanes,)."""

    @property
    @abstractmethod
    def deadline_s(self) -> float | None:
        """Virtual seconds after dispatch at which what is still out is abandoned."""

    @abstractmethod
    def quota(self, sizes: Ints) -> Ints:
        """Visits each lane is to absorb, for lanes of `sizes` clients."""

    @abstractmethod
    def wanted(self, quota: Ints) -> Ints:
        """Visits to open now."""

    @abstractmethod
    def full(self, quota: Ints, back: Ints) -> Bools:
        """Lanes that have all they need with `back` (..., lanes) visits returned, as (..., lanes) flags: what
        is still out there is abandoned."""
