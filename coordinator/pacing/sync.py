"""Synchronous rounds: a cohort is sent out, and the round ends when all its lanes have closed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coordinator.pacing.base import CohortSize, Pacing
from emulator.arrays import Bools, Floats, Ints
from emulator.deprecated import keep_old_names
from emulator.numbers import Duration
from emulator.plugins import Settings


class SyncSettings(Settings):
    """The conditions under which a round ends."""

    close: Literal["lane", "pooled"] = Field(
        "lane", description="each lane closes on its own quota, or all lanes together on the participants"
    )
    deadline_s: Duration | None = Field(
        None, description="virtual seconds after dispatch; without it, a round waits for its quota"
    )


class Sync(Pacing):
    """Closes a lane when its quota is back, and the round when no visit is out any more.

    An over-committed cohort is sent out. A lane that has its quota back abandons its other visits (with
    `close = "pooled"` all lanes together, when the sum of their quotas is back); at the deadline every lane
    does. The visits that are back then make the round's one server step, even if they are fewer than the
    quota: a visit that drops out is not replaced.

    >>> import numpy as np
    >>> sync = Sync(SyncSettings(), CohortSize(participants=3, over_commit=1.5))
    >>> sizes = np.array([20, 10])
    >>> quota = sync.quota(sizes)
    >>> quota, sync.opens(quota, sizes, out=sizes * 0, back=sizes * 0)
    (array([2, 1]), array([3, 2]))
    >>> sync.full(quota, out=np.array([[2, 1]]), back=np.array([[1, 1]]), elapsed_s=np.array([[9.0]]))
    array([[False,  True]])
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
