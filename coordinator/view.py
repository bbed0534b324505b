"""The one window through which a part sees facts. A part holds no clock, and never meets the executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from coordinator.assignment import Assignment
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import SampleRanges
from emulator.seeding import RandomStreams


@dataclass(frozen=True)
class View:
    """What is true at one moment of a run. N clients, M models, P parameters, D numbers in a report."""

    round: int
    step: int
    num_clients: int
    streams: RandomStreams
    assignment: Assignment | None  # None before the first
    models: Floats32  # (M, P)
    model_ids: Ints  # (M,)
    reports: Floats  # (N, D) last reported representation, NaN = never reported
    drift: Mapping[str, Bools]  # detector name -> (N,) since the clusterer was last asked
    initial: Callable[[int], Floats32]  # (P,) the number-th initialisation of this seed; 0 is the shared one
    held: Callable[[Ints], SampleRanges]  # training samples each client holds now

    @property
    def drifted(self) -> Ints:
        """Ids, ascending, of the clients that some detector found drifted."""
        flags = np.zeros(self.num_clients, dtype=bool)
        for found in self.drift.values():
            flags |= found
        return np.flatnonzero(flags)

    def rng(self, purpose: str, *key: int) -> np.random.Generator:
        """A stream of this part's own: keyed by the purpose, the round and `key`."""
        return self.streams.generator(purpose, self.round, *key)
