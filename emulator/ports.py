"""What the coordinator and the emulation need of the packages around them, as Protocols.

N clients; ids are arrays of client ids, shape (n,); answers follow the ids row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, Protocol

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.events import Event
from emulator.in_flight import NO_ENDS, VisitEnds
from emulator.messages import (
    Evaluation,
    InferencePlan,
    Metric,
    SampleRanges,
    Scores,
    StateSpec,
    TrainTasks,
    Updates,
)
from emulator.storage.runlog import RoundRecord
from emulator.storage.state_tree import Tree

Split = Literal["train", "test"]


class FleetColumns(Protocol):
    """How fast each client's device is; all columns of shape (N,)."""

    @property
    def seconds_per_sample(self) -> Floats: ...
    @property
    def download_bytes_per_s(self) -> Floats: ...
    @property
    def upload_bytes_per_s(self) -> Floats: ...
    @property
    def latency_s(self) -> Floats: ...


class Availability(Protocol):
    """Who is online when: pure functions of the absolute virtual time, half-open intervals [start, end)."""

    @property
    def facts(self) -> Mapping[str, int]:
        """What a reader of a run should know of it, such as how many intervals were dropped."""
        ...

    def online(self, ids: Ints, time_s: float) -> Bools:
        """(n,) whether each client is online at `time_s`."""
        ...

    def next_offline_s(self, ids: Ints, time_s: float) -> Floats:
        """(n,) the first instant strictly later than `time_s` at which the client turns offline, or inf."""
        ...

    def next_online_s(self, ids: Ints, time_s: float) -> Floats:
        """(n,) the first instant strictly later than `time_s` at which the client turns online, or inf."""
        ...


class SampleStream(Protocol):
    """Which labelled samples each client holds at the present data step."""

    @property
    def num_clients(self) -> int: ...
    @property
    def num_labels(self) -> int: ...
    @property
    def step(self) -> int: ...

    def advance_to_round(self, round_: int) -> Ints:
        """Move to the data step of `round_`; ids, ascending, of the clients whose data changed on the way.

        The first call names every client.
        """
        ...

    def held(self, ids: Ints, split: Split) -> SampleRanges:
        """What each client holds now in `split`: one range of the table each."""
        ...

    def arrived(self, ids: Ints, first_step: int, last_step: int) -> SampleRanges:
        """Training samples held now that arrived in those data steps, both included: one range each.

        What a client owned from the start arrived at or before step 0.
        """
        ...

    @property
    def concepts(self) -> Ints | None:
        """(N,) the concept of each client's newest training samples: the truth, if the trace knows it."""
        ...

    @property
    def test_concepts(self) -> Ints | None:
        """(N,) the concept of each client's test samples; where it is another, the client is in a drift."""
        ...

    def label_histograms(self, ids: Ints) -> Floats:
        """(n, num_labels) each client's held training labels, as shares that sum to 1."""
        ...


class SampleReader(Protocol):
    """The samples themselves, by table row."""

    @property
    def sample_shape(self) -> tuple[int, ...]: ...
    @property
    def num_labels(self) -> int: ...

    def features(self, rows: Ints) -> Floats32:
        """(n, *sample_shape)."""
        ...

    def labels(self, rows: Ints) -> Ints:
        """(n,)"""
        ...


@dataclass(frozen=True)
class Segment:
    """Where one named tensor lies in the vector of parameters: [first, last), of `shape`.

    What is not `trainable` travels, copies and initialises with the model, but no training changes it.
    """

    first: int
    last: int
    shape: tuple[int, ...]
    trainable: bool = True


class Executor(Protocol):
    """Trains and scores; only the coordinator and its view know it."""

    @property
    def layout(self) -> Mapping[str, Segment]:
        """The tensors of the model by name, in the order of the vector of parameters."""
        ...

    @property
    def state(self) -> Mapping[str, StateSpec]:
        """What the solver remembers of each (client, model) pair from task to task."""
        ...

    @property
    def num_parameters(self) -> int: ...

    def initial(self, number: int) -> Floats32:
        """(P,) the number-th initialisation of this seed; 0 is the one all methods share."""
        ...

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> Updates:
        """Train every task from its row, `start` (n,), of `models` (M, P).

        `weights` (k, n), where they are known, is the weights that `Updates.weighted_sum` will be called
        with.
        """
        ...

    def score(self, models: Floats32, samples: SampleRanges, metrics: frozenset[Metric]) -> Scores:
        """Score each of n requests for `samples` with every one of `models` (m, P)."""
        ...

    def evaluate(self, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
        """Score each client's test `samples` with what `plan` says of `models` (M, P)."""
        ...


Meter = Callable[[str], AbstractContextManager[None]]
"""Counts the wall time of what is done within, by a name; its owner has the clock."""


def unmeasured(what: str) -> AbstractContextManager[None]:
    """The meter that counts nothing."""
    return nullcontext()


@dataclass(frozen=True)
class Reaction:
    """What the coordinator answers: what happens next, which visits go out, and what is to be remembered."""

    events: Sequence[tuple[float, Event]] = ()
    visits: VisitEnds = NO_ENDS
    record: RoundRecord | None = None


class Coordinator(Protocol):
    """A state machine over events and the ends of visits; it holds no clock, and does no I/O.

    Between any two calls its `state` can be taken, and a fresh one goes on from it after `restore`.
    """

    @property
    def finished(self) -> bool: ...

    def state(self) -> Tree: ...

    def restore(self, state: Tree) -> None: ...

    def start(self) -> Reaction: ...

    def handle(self, event: Event, now_s: float) -> Reaction: ...

    def visits_ended(self, ends: VisitEnds) -> tuple[int, Reaction]:
        """Visits end, in their order, with no event in between: how many of them it took, and its answer.

        It takes one at least, and stops at the first after which something new can happen: the rest comes
        again, with what its answer sent out in between.
        """
        ...
