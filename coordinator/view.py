"""`Part`, the base of all parts of a method, and `View`, all that a part can see and request of clients.

A part holds no clock and has no access to the executor. Reading facts is free; requests to clients are
charged in virtual time and bytes.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Protocol

import numpy as np

from coordinator.assignment import Assignment
from coordinator.distances import DistanceName
from emulator.arrays import NO_IDS, Bools, Floats, Floats32, Ints
from emulator.errors import ConfigurationError
from emulator.messages import AnyTrigger, Metric, SampleRanges, Scores, TaskMetric, Updates
from emulator.own_parts import is_ours
from emulator.plugins import Configured
from emulator.ports import Segment, num_statistics
from emulator.seeding import RandomStreams, generators
from emulator.storage.stateful import Stateful

NO_MODELS: Floats32 = np.zeros((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run before it begins."""

    num_clients: int
    rounds: int | None  # None with `round.seconds_per_round`: how many there will be is not known
    participants: int  # wanted in each round, over all lanes
    buffer: int | None = None  # updates that a server step of all lanes absorbs; None if a round is one step
    clusters: int | None = None  # if they are the same in the whole run, labelled 0 and on
    layout: Mapping[str, Segment] = field(default_factory=dict)  # the tensors of the model, by name
    representation: str = "label"  # the kind of what clients report
    has_shares: bool = True  # whether reports are shares, which add up to 1
    watching_arrivals: tuple[str, ...] = ()  # names of the arm's detectors that do
    numbers: Mapping[str, float] = field(default_factory=dict)  # that schedules may set, without them
    check_number: Callable[[str, float], None] = lambda name, number: None
    """Raises ConfigurationError unless the local rule that reads such a number takes this one."""

    def refuse_late_round(self, key: str, round_: int) -> None:
        """Reject a setting that names a round which the run may not have.

        Args:
            key: the key of the setting.
            round_: the round that it names, from 0.

        Raises:
            ConfigurationError: there is no such round, or it is not known whether there will be.
        """
        if self.rounds is None and round_ > 0:
            raise ConfigurationError(
                f"{key} = {round_}: with round.seconds_per_round it is not known how many rounds there will "
                f"be; must be 0, or leave out round.seconds_per_round"
            )
        if self.rounds is not None and round_ >= self.rounds:
            raise ConfigurationError(f"{key} = {round_}: must be below round.rounds = {self.rounds}")


class Part(Configured, Stateful, ABC):
    """Base of the parts of a method, such as its clusterer; built with its own frozen settings.

    `oracle` declares that the part uses the truth: only such a part may read the true concepts,
    `View.concepts`, and the true onsets, `View.newest_onset`.

    `needs_whole_rounds` declares that the part is wrong, or undefined, unless each round has one dispatch and
    one server step: it is refused beside a pacing whose `whole_rounds` is False. A part of which only some
    settings need it sets it when it is built.

    `needs_labels` declares that the part reads which labels models tell, or whether they are the right ones:
    it is refused beside an objective other than `labels`. It may be set as the part is built, too.

    `late_modules` names what it imports when it first needs it: a run imports that before its clock starts.

    `chance` says where parts of a kind draw random numbers from. `streams` are the random streams of the run,
    for kinds that are given no other: a run sets them before the first call.
    """

    oracle: ClassVar[bool] = False
    chance: ClassVar[str] = 'draw from a stream of the view, view.rng("my purpose")'
    late_modules: ClassVar[tuple[str, ...]] = ()
    needs_whole_rounds: bool = False
    needs_labels: bool = False
    streams: RandomStreams

    @property
    def reads_updates(self) -> bool:
        """Whether it reads updates themselves: more than sums by `Aggregator.weights`, and columns.

        If no part does, they are let go as they are added up. By default a part of one's own does, and
        ours do not; a class says otherwise by `reads_updates = False`.
        """
        return not is_ours(type(self))

    @property
    def needs_reports(self) -> bool:
        """Whether this part needs clients to report: it may stop to need it in a run, but not begin to."""
        return False

    def check_run(self, run: RunFacts) -> None:
        """Reject a run that the part cannot work with, before it begins.

        Args:
            run: what is known of it.

        Raises:
            ConfigurationError: a setting does not fit the run.
        """

    @property
    def needs(self) -> frozenset[TaskMetric]:
        """The columns of `Updates.metrics` that it reads besides `loss`: executors compute no others."""
        return frozenset()

    def models_changed(self, assignment: Assignment) -> None:
        """Take note that other models exist: what it keeps for each model follows the mixing matrix.

        Called on every part of a method, after the first assignment and each one that changes models, when
        the bank has the new models.

        Args:
            assignment: the assignment that is applied now. The new models are `mixing` @ (the old ones, then
                `extra`), so that a row of `mixing` with a single 1 is a copy; `successor` (M_old,) maps old
                rows to new ones.
        """

    @property
    def name(self) -> str:
        """The name of its class, for error messages."""
        return type(self).__name__


@dataclass(frozen=True)
class ClaimedBy:
    """The samples of each client that the memory holds for one model."""

    model: int  # row of the bank


Samples = Literal["arrived", "held"] | ClaimedBy
"""The samples that a request is about: the newest arrivals, all training samples that a client holds now, or
those that the memory holds for a model."""


@dataclass(frozen=True)
class ScoreResponse:
    """The response to a score request: a row of `scores` for each client that responded."""

    clients: Ints  # (n,) ids, ascending
    scores: Scores


class ScoreRequest(Protocol):
    """Signature of a request to clients to score models."""

    def __call__(
        self,
        clients: Ints,
        models: Ints,
        samples: Samples,
        metrics: frozenset[Metric] = ...,
        limit: int | None = ...,
    ) -> ScoreResponse:
        """Let each of `clients` score all of `models` on its own `samples`.

        Each client that responds is charged: the download of the models that it has not downloaded for
        another request of this round, a forward pass of its samples through every model, and the upload of
        the sums.

        Args:
            clients: (n,) client ids, ascending.
            models: (m,) rows of the bank.
            samples: which of its samples each client scores the models on.
            metrics: the sums to compute; by default `correct` alone.
            limit: the most samples over all clients, shared among them in proportion to the samples that each
                has, and drawn at random; None: all samples.

        Returns:
            The scores of the clients that are online and have samples to score; the others are missing.
        """
        ...


class TrainRequest(Protocol):
    """Signature of a request to clients to train a model that is not in the bank, or not yet."""

    def __call__(self, clients: Ints, start: Floats32, steps: int) -> Updates:
        """Let each of `clients` train `start` on the samples that it holds, as the arm trains locally.

        Each client that responds is charged: the download of one model, the training, and the upload of one
        model. What the solver keeps for a client is neither used nor changed. The clients of a part that
        acts on data or updates delay the visits of the round until the slowest has responded.

        Args:
            clients: (n,) client ids, ascending.
            start: (P,) the parameters to train.
            steps: local steps, at least 1.

        Returns:
            The updates, a row per client that is online, holds training samples, and sent an update that is
            finite; `model` has no meaning.
        """
        ...


@dataclass(frozen=True)
class View:
    """The facts of a run when a part is called, and the requests that the part can make.

    N clients, M models, P parameters, D numbers in a report. `participants` are given to `on_participants`,
    `rows`, schedules, `aggregate` and `on_updates`; in all other calls they are empty.
    """

    round: int
    step: int  # data step
    num_clients: int
    num_labels: int
    streams: RandomStreams
    assignment: Assignment | None  # None before the first
    models: Floats32  # (M, P)
    # (M,) the id of each row's model. A row gets a new id when an assignment changes its content, even if it
    # succeeds another; ids are never reused. Tasks and updates name models by id, all else by row.
    model_ids: Ints
    cluster_labels: Ints  # (M,) the label of each row's cluster, by which logs and reports name it
    layout: Mapping[str, Segment]  # where each tensor of a model lies
    # (N, D) last reported representation, NaN = never reported since the client began to hold data
    reports: Floats
    # (N,) whether a client holds training samples. One that does not is a member of no model, has no report,
    # and is in none of the ids below: whatever a part decides about it is ignored.
    holding: Bools
    distance: DistanceName  # in which such reports are clustered, unless a part's settings name another one
    # Detector name -> (N,) clients it found drifted: in `on_data` and `on_joined` of the detectors that watch
    # representations, in `on_updates` of those that watch training, for schedules of those that watch
    # arrivals, among the participants; empty in all other calls.
    drift: Mapping[str, Bools]
    # Ids of the clients that have checked new data: in `on_data` and `on_joined`; and for schedules those of
    # the participants that score what has arrived. Empty in all other calls.
    changed: Ints
    participants: Ints  # ids selected this round; empty except in the calls named above
    updates: Updates | None  # the updates received this round; None except in `aggregate` and `on_updates`
    truth: Callable[[], Ints | None]  # the implementation of `concepts`
    onset_truth: Callable[[], Ints | None]  # the implementation of `newest_onset`
    initial: Callable[[int], Floats32]  # number -> (P,) that initialisation of this seed; 0 is the shared one
    # Client ids -> the training samples each holds now: one range per client, which may be empty.
    held: Callable[[Ints], SampleRanges]
    arrived: Callable[[Ints, int, int], SampleRanges]  # ids, first, last -> those of data steps [first, last]
    claimed: Callable[[], Ints]  # (M,) samples that the memory holds for each model, over all clients
    score: ScoreRequest  # requests clients to score models
    train: TrainRequest  # requests clients to train a model
    # Ids (n,) -> (n,) virtual seconds of a visit as planned: its models down, local training, its models up.
    # Without requests, schedules, lost packets, jitter and drop-outs.
    expected_s: Callable[[Ints], Floats]
    # Of a task, as are the next two, unless a schedule decides otherwise; None: as many as its epochs have.
    local_steps: int | None
    batch_size: int
    learning_rate: float
    log_trigger: Callable[[AnyTrigger], None]  # logs why a global re-clustering did, or did not, happen
    rebased: bool = False  # in `on_data`: these reports were measured at other models than the earlier ones
    # Ids of the clients that hold data, and did not before the last data step: they come for the first time,
    # or back; and ids of those for which it is the other way around. Empty except in `on_data` and, of the
    # former, `on_joined`; at the first call of `on_data`, too.
    joined: Ints = field(default_factory=lambda: NO_IDS)
    left: Ints = field(default_factory=lambda: NO_IDS)
    # The number, in the run, of this dispatch or server step, for `rng`; None: that of the round, as at its
    # opening.
    moment: int | None = None
    # (n,) server steps from the dispatch of each task to this one, in `Aggregator.weights`; empty in all
    # other calls, and if all are 0.
    staleness: Ints = field(default_factory=lambda: NO_IDS)
    # Slot -> (M, P) the mean over each model's clients of what they remember of it, 0 for those that have
    # not trained it, in `Aggregator.broadcast` and `aggregate`; in all other calls there is none.
    remembered: Mapping[str, Floats] = field(default_factory=dict)
    # (K, P) models that tasks started from, and (n,) for each of `updates` the row of its own among them; in
    # `Aggregator.aggregate`, and empty in all other calls.
    received: Floats32 = field(default_factory=lambda: NO_MODELS)
    started: Ints = field(default_factory=lambda: NO_IDS)

    @property
    def num_parameters(self) -> int:
        """Q: how many of the P numbers of a model are parameters; statistics of batch norm come behind."""
        return int(self.models.shape[1]) - num_statistics(self.layout)

    def of_parameters(self) -> View:
        """The view of an aggregator, which sees no statistics of batch norm: P is Q."""
        size = self.num_parameters
        if size == self.models.shape[1]:
            return self
        layout = {name: part for name, part in self.layout.items() if part.kind == "parameter"}
        models, received = self.models[:, :size], self.received[:, :size]
        return replace(self, models=models, received=received, layout=layout)

    @property
    def concepts(self) -> Ints | None:
        """(N,) the true concept of each client's newest samples; None if the trace has no concepts.

        Raises:
            RunError: the part does not declare `oracle = True`.
        """
        return self.truth()

    @property
    def newest_onset(self) -> Ints | None:
        """(N,) the data step of each client's newest onset so far, 0 where there was none.

        An onset is a data step from 1 on at which a client begins to receive data of another distribution:
        its concept changes, or its drift moves it. A client has one now where this is `step`, and `step` is
        not 0. None if the trace knows neither concepts nor who moves.

        Raises:
            RunError: the part does not declare `oracle = True`.
        """
        return self.onset_truth()

    @property
    def drifted(self) -> Ints:
        """Ids, ascending, of the clients that at least one detector found drifted."""
        drifted = [flags for flags in self.drift.values() if flags.any()]
        return np.flatnonzero(np.logical_or.reduce(drifted)) if drifted else NO_IDS

    @property
    def members(self) -> Ints:
        """(N, width) the members of the assignment in force, `Assignment.members`; there must be one."""
        assert self.assignment is not None
        return self.assignment.members

    @property
    def _number(self) -> int:
        """The number of this moment, which keys its random streams."""
        return self.round if self.moment is None else self.moment

    def rng(self, purpose: str, *key: int) -> np.random.Generator:
        """A random stream keyed by the purpose, the moment and `key`.

        Args:
            purpose: the name of the stream; two draws with the same purpose, moment and key are equal.
            key: further integers, such as a client id.

        Returns:
            A generator at the start of that stream.
        """
        return self.streams.generator(purpose, self._number, *key)

    def rngs(self, purpose: str, key: Ints) -> Iterator[np.random.Generator]:
        """The streams `rng(purpose, k)` for each k of `key`, faster than by n calls of `rng`.

        Args:
            purpose: the name of the streams.
            key: (n,) integers.

        Returns:
            An iterator over n generators, each of which is valid until the iterator advances.
        """
        return generators(self.streams.keys(purpose, self._number, key))
