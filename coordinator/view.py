"""The base of all parts of a method, and the one window through which a part sees facts and asks clients
requests.

A part holds no clock, and never meets the executor. Facts are free; whatever is asked of clients is
charged in virtual time and bytes.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from coordinator.assignment import Assignment
from emulator.arrays import NO_IDS, Bools, Floats, Floats32, Ints
from emulator.deprecated import keep_old_names
from emulator.messages import Metric, SampleRanges, Scores, Trigger, Updates
from emulator.plugins import Configured
from emulator.ports import Segment
from emulator.seeding import RandomStreams, generators
from emulator.storage.stateful import Stateful


class Part(Configured, Stateful, ABC):
    """Base of parts; built with its own frozen settings.

    `oracle` declares that it follows the truth: only such a part is told the true concepts, `View.concepts`.
    """

    oracle: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Its class, for errors."""
        return type(self).__name__


@dataclass(frozen=True)
class ClaimedBy:
    """The samples that the memory holds of a client for one model, a row of the bank."""

    model: int


Samples = Literal["arrived"] | ClaimedBy
"""What a request is about: a client's newest arrivals, or what it trains a model on."""


@dataclass(frozen=True)
class ScoreResponse:
    """What came back of a request: a row of `scores` for each of `clients`, which are those online."""

    clients: Ints
    scores: Scores


class ScoreRequest(Protocol):
    """How clients are asked to score models."""

    def __call__(
        self,
        clients: Ints,
        models: Ints,
        samples: Samples,
        metrics: frozenset[Metric] = ...,
        limit: int | None = ...,
    ) -> ScoreResponse:
        """Each client of `clients` (ascending) scores every row of `models` on its own `samples`.

        At most `limit` samples over all clients, shared in proportion to what each holds, and drawn. Offline
        clients are missing from the answer. Charged: the models down that the client does not hold already,
        a forward pass of each, and the sums up.
        """
        ...


@dataclass(frozen=True)
class View:
    """What is true at one moment of a run. N clients, M models, P parameters, D numbers in a report."""

    round: int
    step: int  # data step
    num_clients: int
    num_labels: int
    streams: RandomStreams
    assignment: Assignment | None  # None before the first
    models: Floats32  # (M, P)
    model_ids: Ints  # (M,)
    layout: Mapping[str, Segment]  # where each tensor of a model lies
    reports: Floats  # (N, D) last reported representation, NaN = never reported
    drift: Mapping[str, Bools]  # detector name -> (N,) since the clusterer was last asked
    changed: Ints  # ids of clients with new data that are heard now: empty but when data arrived
    participants: Ints  # ids picked this round; empty until then
    updates: Updates | None  # what came back this round; None until then
    truth: Callable[[], Ints | None]  # what `concepts` gives
    initial: Callable[[int], Floats32]  # (P,) the number-th initialisation of this seed; 0 is the shared one
    held: Callable[[Ints], SampleRanges]  # training samples each client holds now
    arrived: Callable[[Ints, int, int], SampleRanges]  # of these, what arrived in data steps [first, last]
    claimed: Callable[[], Ints]  # (M,) samples that the memory holds for each model, over all clients
    score: ScoreRequest  # a request to clients
    log_trigger: Callable[[Trigger], None]  # says in the log why everybody was, or was not, clustered anew

    @property
    def concepts(self) -> Ints | None:
        """(N,) the true concept of each client's newest samples; None where the trace does not know it.

        RunError for a part that does not declare itself an oracle.
        """
        return self.truth()

    @property
    def drifted(self) -> Ints:
        """Ids, ascending, of the clients that some detector found drifted."""
        found = [flags for flags in self.drift.values() if flags.any()]
        return np.flatnonzero(np.logical_or.reduce(found)) if found else NO_IDS

    @property
    def members(self) -> Ints:
        """(N, width) the present members; there must be an assignment."""
        assert self.assignment is not None
        return self.assignment.members

    def rng(self, purpose: str, *key: int) -> np.random.Generator:
        """A stream of this part's own: keyed by the purpose, the round and `key`."""
        return self.streams.generator(purpose, self.round, *key)

    def rngs(self, purpose: str, key: Ints) -> Iterator[np.random.Generator]:
        """The streams `rng(purpose, k)` for each k of `key` (n,), in turn: each is good until the next is
        asked for. Cheaper than as many calls."""
        return generators(self.streams.keys(purpose, self.round, key))


keep_old_names(__name__)
