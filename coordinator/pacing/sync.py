"""Synchronous rounds: a cohort goes out, and the round ends when its slowest lane has closed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coordinator.pacing.base import CohortSize, Pacing
from emulator.arrays import Bools, Floats, Ints
from emulator.deprecated import keep_old_names
from emulator.numbers import Duration
from emulator.plugins import Settings


class SyncSettings(Settings):
    """When a round ends."""

    close: Literal["lane", "pooled"] = Field(
        "lane", description="every lane on its own quota, or all together on the participants"
    )
    deadline_s: Duration | None = Field(
        None, description="virtual seconds after dispatch; without it, a round waits for its quota"
    )


class Sync(Pacing):
    """A cohort goes out, over-committed; a lane that has its quota back abandons its others, a deadline
    abandons all, and the round ends when nothing is out any more.

    However few came back, they make the round's one server step: a visit that drops out is not replaced.
    """

    Settings = SyncSettings
    settings: SyncSettings

    def __init__(self, settings: SyncSettings, cohort: CohortSize) -> None:
        super().__init__(settings, cohort)
        self.deadline_s = settings.deadline_s

    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        if self.settings.close == "pooled":
            enough: Bools = back.sum(axis=-1, keepdims=True) >= quota.sum()
        else:
            enough = back >= quota
        return enough if self.deadline_s is None else enough | (elapsed_s >= self.deadline_s)

    def absorbs(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        nothing_out: Bools = out.sum(axis=-1, keepdims=True) == 0
        return nothing_out

    def closes(self, absorbed: int, elapsed_s: float) -> bool:
        return True


keep_old_names(__name__)
