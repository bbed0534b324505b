"""Rounds of a fixed duration: what is back by then is aggregated, the rest is abandoned."""

from __future__ import annotations

from pydantic import Field

from coordinator.pacing.base import CohortSize, Pacing
from emulator.arrays import Bools, Floats, Ints
from emulator.deprecated import keep_old_names
from emulator.numbers import Duration
from emulator.plugins import Settings


class FixedSettings(Settings):
    """How long a round lasts."""

    duration_s: Duration = Field(description="virtual seconds from dispatch to the server step")


class Fixed(Pacing):
    """A cohort goes out, over-committed. `duration_s` later what is back makes the round's server step, and
    the rest is abandoned. A round never ends sooner, even when every visit is back.
    """

    Settings = FixedSettings
    settings: FixedSettings

    def __init__(self, settings: FixedSettings, cohort: CohortSize) -> None:
        super().__init__(settings, cohort)
        self.deadline_s = settings.duration_s

    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        return elapsed_s >= self.settings.duration_s

    def absorbs(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        return self.full(quota, out, back, elapsed_s)

    def closes(self, absorbed: int, elapsed_s: float) -> bool:
        return elapsed_s >= self.settings.duration_s


keep_old_names(__name__)
