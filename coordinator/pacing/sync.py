"""Synchronous rounds: a cohort is sent out, and the round ends when all its lanes have closed."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from coordinator.pacing.base import CohortSize, Pacing
from coordinator.view import RunFacts
from emulator.arrays import Bools, Floats, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count, Duration, Number
from emulator.plugins import Settings


class SyncSettings(Settings):
    """How participants are shared over the lanes, and the conditions under which a round ends."""

    share: Literal["clients", "equal"] = Field(
        "clients",
        description="participants are shared over lanes in proportion to their clients, at least one each, "
        "or equally: the remainder goes to the largest lanes, and a lane with fewer clients than "
        "its share gives all it has",
        examples=["equal"],
    )
    close: Literal["lane", "pooled"] = Field(
        "lane", description="each lane closes on its own quota, or all lanes together on the participants"
    )
    deadline_s: Duration | None = Field(
        None, description="virtual seconds after dispatch; without it, a round waits for its quota"
    )
    timeout_s: Duration | None = Field(
        None,
        description="virtual seconds after which a visit is abandoned, and it is noticed that a client is "
        "gone; without it, that is noticed at once",
        examples=[600],
    )
    participants: Count | None = Field(
        None,
        description="visits that a round absorbs, if other than round.participants; as many are sent out as "
        "without it, unless over_commit is given",
        examples=[7],
    )
    over_commit: Annotated[float, Number(ge=1, le=1e6)] | None = Field(
        None,
        description="visits sent out for each that a round absorbs, if other than round.over_commit",
        examples=[1.5],
    )


class Sync(Pacing):
    """Closes a lane when its quota is back, and the round when no visit is out any more.

    An over-committed cohort is sent out. A lane that has its quota back abandons its other visits (with
    `close = "pooled"` all lanes together, when the sum of their quotas is back); at the deadline every lane
    does. The visits that are back then make the round's one server step, even if they are fewer than the
    quota: a visit that drops out is not replaced. With `timeout_s` a lane with fewer back than its quota
    waits so long for those that have dropped out, as a coordinator does that hears nothing of them.

    With `share = "equal"` each of K lanes with clients has a quota of M / K, as Fielding has it; the paper
    leaves remainders and smaller lanes open.

    With `participants` the quotas are of that number, and as many visits are sent out as without it: 7 of 13
    are absorbed, and a lane with the quota n sends out 13/7 n, rounded; with `over_commit`, that many times
    n.

    Source: ours, after FedScale's over-committed rounds; equal quotas are of Fielding, algorithm 1.

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
        super().__init__(settings, _absorbing(settings, cohort))
        self.deadline_s, self.timeout_s = settings.deadline_s, settings.timeout_s

    def check_run(self, run: RunFacts) -> None:
        """Reject more participants than there are clients."""
        participants = self.settings.participants or 0
        if participants > run.num_clients:
            raise ConfigurationError(
                f"pacing.participants = {participants}: more than the {run.num_clients} clients of the trace"
            )

    def quota(self, sizes: Ints) -> Ints:
        """The number of visits that each lane is to have absorbed by its server step.

        With `share = "equal"` it is M // K for each of the K lanes with clients, one more for the M % K
        largest of them (of equals, the lowest), and never more than the clients of the lane: what a small
        lane lacks is not given to another.

        Args:
            sizes: (lanes,) clients in each lane that have something to train.

        Returns:
            (lanes,) numbers of visits.
        """
        if self.settings.share == "clients":
            return super().quota(sizes)
        largest_first = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        if len(largest_first) == 0:
            return np.zeros_like(sizes)
        each, remainder = divmod(self.cohort.participants, len(largest_first))
        quota = np.zeros_like(sizes)
        quota[largest_first] = each
        quota[largest_first[:remainder]] += 1
        return np.minimum(quota, sizes)

    @property
    def full_sees(self) -> Literal["lane", "sums"]:
        """All lanes together, or each alone."""
        return "sums" if self.settings.close == "pooled" else "lane"

    @property
    def absorbs_sees(self) -> Literal["sums"]:
        """The number of visits out."""
        return "sums"

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


def _absorbing(settings: SyncSettings, cohort: CohortSize) -> CohortSize:
    """The cohort of the visits that `cohort` sends out from one lane, of which so many are to be absorbed.

    The settings may have another number, or factor. Raises ConfigurationError if more are to be absorbed than
    are sent out.
    """
    participants = settings.participants
    if settings.over_commit is not None:
        return CohortSize(participants or cohort.participants, settings.over_commit, cohort.rounding)
    if participants is None or participants == cohort.participants:
        return cohort
    sent = cohort.over_committed(cohort.participants)
    if participants > sent:
        raise ConfigurationError(
            f"pacing.participants = {participants}: must be at most {sent}, the visits that "
            f"round.participants = {cohort.participants} and round.over_commit send out, unless "
            f"pacing.over_commit is given"
        )
    return CohortSize(participants, Fraction(sent, participants), cohort.rounding)
