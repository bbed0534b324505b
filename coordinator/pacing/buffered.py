"""Buffered asynchronous training: slots that are filled as they become free, and a step per full buffer."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from coordinator.pacing.base import CohortSize, Pacing, Push
from coordinator.view import RunFacts
from emulator.arrays import Bools, Floats, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count, CountOrZero, Duration
from emulator.plugins import Settings


class BufferedSettings(Settings):
    """The size of the buffer, the number of visits that are out at once, and what becomes of late ones."""

    buffer: Count | None = Field(
        None,
        description="updates that make a server step, over all lanes; 1 is asynchronous; if omitted, "
        "round.participants",
        examples=[1],
    )
    concurrency: Count | None = Field(
        None,
        description="slots: visits that are out at once, over all lanes; if omitted, round.participants "
        "times round.over_commit",
        examples=[13],
    )
    refill: Count = Field(1, description="slots that must be free, over all lanes, before any is filled")
    timeout_s: Duration | None = Field(
        None,
        description="virtual seconds after which a visit is abandoned, and it is noticed that a client is "
        "gone; without it, that is noticed at once",
        examples=[600],
    )
    max_staleness: CountOrZero | None = Field(
        None,
        description="a visit that comes back after more steps of its lane is abandoned, and charged, which "
        "starves slow clients; without it, none is",
        examples=[5],
    )
    push: Push = Field(
        "none",
        description="who is sent each new version of the model, in bytes, without delay: `active`, the "
        "clients that are training, too (FedConD); `online`, all that are online, who do not "
        "download it again (ASO-Fed)",
        examples=["active"],
    )


class Buffered(Pacing):
    """Keeps `concurrency` visits out, and makes a server step whenever `buffer` of them are back.

    A slot is free as soon as its visit has ended, and is filled at that instant by an idle client: one whose
    last update was absorbed, or lost. The update of a slow client arrives, and the steps that its lane has
    made meanwhile are its staleness: a visit is abandoned if it is out for longer than `timeout_s` or comes
    back with more than `max_staleness`, if there are such, if its model ceases to exist, or as the run ends.
    A round closes when `round.participants` updates were absorbed: with the default buffer and one lane it is
    one server step.

    Slots are shared over the lanes as a quota is, and a lane never has more of them than clients. Of K slots
    in all, a lane with k makes its own steps, of ceil(k x buffer / K) updates; of fewer only if all clients
    of the lane wait for its step.

    Source: FedBuff, Nguyen et al. 2022, "Federated Learning with Buffered Asynchronous Aggregation",
    algorithm 1, where there is one lane. With a buffer of 1: Xie, Koyejo and Gupta 2019, "Asynchronous
    Federated Optimization".

    Four slots, of which the smaller lane has one, and a step for every two updates:

    >>> buffered = Buffered(BufferedSettings(buffer=2, concurrency=4), CohortSize(participants=2))
    >>> sizes = np.array([20, 10])
    >>> slots = buffered.quota(sizes)
    >>> out, back = np.array([[3, 1], [2, 1], [1, 1]]), np.array([[0, 0], [1, 0], [2, 0]])
    >>> slots, buffered.opens(slots, sizes, out, back).tolist()
    (array([3, 1]), [[0, 0], [1, 0], [2, 0]])
    >>> buffered.absorbs(slots, out, back, elapsed_s=np.zeros((3, 1))).tolist()
    [[False, False], [False, False], [True, False]]
    """

    Settings = BufferedSettings
    settings: BufferedSettings
    cancels: ClassVar[bool] = False
    whole_rounds: ClassVar[bool] = False

    def __init__(self, settings: BufferedSettings, cohort: CohortSize) -> None:
        """A pacing for cohorts of the given size, from which buffer and slots follow if they are not set.

        Raises:
            ConfigurationError: more slots must be free than there are.
        """
        super().__init__(settings, cohort)
        self._buffer = settings.buffer or cohort.participants
        self._slots = settings.concurrency or cohort.over_committed(cohort.participants)
        self.timeout_s, self.max_staleness = settings.timeout_s, settings.max_staleness
        self.push = settings.push
        if settings.refill > self._slots:
            raise ConfigurationError(
                f"pacing.refill = {settings.refill}: must be at most the slots, pacing.concurrency = "
                f"{self._slots}"
            )

    @property
    def buffer(self) -> int:
        """Updates that make a server step, over all lanes."""
        return self._buffer

    @property
    def concurrency(self) -> int:
        """The slots, over all lanes."""
        return self._slots

    def check_run(self, run: RunFacts) -> None:
        """Reject more slots, or a larger buffer, than there are clients."""
        for name, number in (("buffer", self._buffer), ("concurrency", self._slots)):
            if number > run.num_clients:
                raise ConfigurationError(
                    f"pacing.{name} = {number}: more than the {run.num_clients} clients of the trace"
                )

    def quota(self, sizes: Ints) -> Ints:
        """The slots of each lane: in proportion to its clients, at least one, and at most all of them.

        Args:
            sizes: (lanes,) clients in each lane that have something to train.

        Returns:
            (lanes,) numbers of slots.
        """
        return np.minimum(self._shared(self._slots, sizes), sizes)

    def opens(self, quota: Ints, sizes: Ints, out: Ints, back: Ints) -> Ints:
        """The free slots of each lane, once enough are free over all lanes.

        Args:
            quota: (lanes,) the slots of each lane.
            sizes: (lanes,) clients in each lane that have something to train.
            out: (n, lanes) visits that are out at each of n instants.
            back: (n, lanes) visits that are back, and that no server step has absorbed.

        Returns:
            (n, lanes) numbers of visits.
        """
        free = np.maximum(quota - out, 0)
        enough = free.sum(axis=-1, keepdims=True) >= min(self.settings.refill, int(quota.sum()))
        return np.where(enough, free, 0)

    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        return np.zeros((len(out), 1), dtype=bool)

    def absorbs(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        enough: Bools = back >= np.maximum(-(-quota * self._buffer // self._slots), 1)
        return enough
