"""Rounds of a fixed duration: visits back by then are aggregated, the others abandoned."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coordinator.pacing.base import CohortSize, Pacing
from emulator.arrays import Bools, Floats, Ints
from emulator.numbers import Duration
from emulator.plugins import Settings


class FixedSettings(Settings):
    """The duration of a round."""

    duration_s: Duration = Field(
        description="virtual seconds from dispatch to the server step", examples=[600]
    )


class Fixed(Pacing):
    """Closes each round `duration_s` after dispatch, and never earlier.

    An over-committed cohort is sent out. After `duration_s` virtual seconds the visits that are back make the
    round's server step, and the others are abandoned. A round does not end earlier even if every visit is
    back.

    Source: ours.

    >>> import numpy as np
    >>> fixed = Fixed(FixedSettings(duration_s=60), CohortSize(participants=3))
    >>> elapsed_s = np.array([[59.0], [60.0]])
    >>> fixed.absorbs(np.array([3]), np.array([[2], [1]]), np.array([[1], [2]]), elapsed_s)
    array([[False],
           [ True]])
    """

    Settings = FixedSettings
    settings: FixedSettings

    def __init__(self, settings: FixedSettings, cohort: CohortSize) -> None:
        super().__init__(settings, cohort)
        self.deadline_s = settings.duration_s

    @property
    def full_sees(self) -> Literal["sums"]:
        """The time alone."""
        return "sums"

    @property
    def absorbs_sees(self) -> Literal["sums"]:
        """The time alone."""
        return "sums"

    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        return elapsed_s >= self.settings.duration_s

    def absorbs(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        return self.full(quota, out, back, elapsed_s)

    def closes(self, absorbed: int, elapsed_s: float) -> bool:
        return elapsed_s >= self.settings.duration_s
