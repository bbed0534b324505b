"""Ports: the Protocols that join the coordinator, the emulation and the packages around them.

In array shapes, N is the number of clients, M of models and P of parameters. `ids` are client ids, an array
of shape (n,); row i of a result belongs to `ids[i]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.events import Event
from emulator.in_flight import NO_ENDS, VisitEnds
from emulator.messages import (
    Evaluation,
    InferencePlan,
    Metric,
    SampleRanges,
    Scores,
    SolverFacts,
    TrainTasks,
    Updates,
    VisitRows,
)
from emulator.plugins import returns

if TYPE_CHECKING:  # the record of a round is not needed to read a configuration
    from emulator.storage.runlog import RoundRecord
    from emulator.storage.state_tree import Tree

Split = Literal["train", "test"]


class FleetColumns(Protocol):
    """Speeds of each client's device and link; columns of shape (N,)."""

    @property
    def seconds_per_sample(self) -> Floats:
        """(N,) seconds to train on one sample."""
        ...

    @property
    def download_bytes_per_s(self) -> Floats:
        """(N,) download bandwidth."""
        ...

    @property
    def upload_bytes_per_s(self) -> Floats:
        """(N,) upload bandwidth."""
        ...

    @property
    def latency_s(self) -> Floats:
        """(N,) latency of the link, paid once for each transfer."""
        ...


class Availability(Protocol):
    """When clients are online, in half-open intervals [start, end).

    All methods are pure functions of the absolute virtual time.
    """

    @property
    def facts(self) -> Mapping[str, int]:
        """Counts by name for the run's manifest, such as the number of intervals dropped as empty."""
        ...

    @returns("emulator.own.world:online")
    def online(self, ids: Ints, time_s: float) -> Bools:
        """Whether each client is online.

        Args:
            ids: client ids, array of shape (n,).
            time_s: absolute virtual time.

        Returns:
            Array of shape (n,).
        """
        ...

    @returns("emulator.own.world:later")
    def next_offline_s(self, ids: Ints, time_s: float) -> Floats:
        """When each client next goes offline.

        Args:
            ids: client ids, array of shape (n,).
            time_s: absolute virtual time.

        Returns:
            Array of shape (n,): the first instant strictly later than `time_s` at which the client goes
            offline, or inf.
        """
        ...

    @returns("emulator.own.world:later")
    def next_online_s(self, ids: Ints, time_s: float) -> Floats:
        """When each client next comes online.

        Args:
            ids: client ids, array of shape (n,).
            time_s: absolute virtual time.

        Returns:
            Array of shape (n,): the first instant strictly later than `time_s` at which the client comes
            online, or inf.
        """
        ...


class SampleStream(Protocol):
    """A cursor over data steps: the labelled samples that each client holds at the current one.

    `advance_to_round` moves it to a later step.
    """

    @property
    def num_clients(self) -> int:
        """N, the number of clients."""
        ...

    @property
    def num_labels(self) -> int:
        """Number of distinct labels; labels are 0 to `num_labels` - 1."""
        ...

    @property
    def step(self) -> int:
        """The current data step, from 0; -1 before the first `advance_to_round`."""
        ...

    def advance_to_round(self, round_: int) -> Ints:
        """Advance to the data step of a round.

        Args:
            round_: the round, from 0; not of an earlier data step than the current one.

        Returns:
            Ascending ids of the clients whose training samples have changed since the last call; on the first
            call, all.
        """
        ...

    @property
    def holding(self) -> Bools:
        """(N,) whether each client holds training samples now: only such clients take part.

        The array is not changed afterwards. Before the first `advance_to_round` it is False.
        """
        ...

    def held(self, ids: Ints, split: Split) -> SampleRanges:
        """The samples of one split that each client holds at the current data step.

        Args:
            ids: client ids, array of shape (n,).
            split: the training or the test samples.

        Returns:
            One range of table rows per client.
        """
        ...

    def arrived(self, ids: Ints, first_step: int, last_step: int) -> SampleRanges:
        """The training samples that arrived in a range of data steps and that each client still holds.

        Samples that a client had from the start count as arrived at step 0.

        Args:
            ids: client ids, array of shape (n,).
            first_step: the first data step of arrival, included.
            last_step: the last data step of arrival, included.

        Returns:
            One range of table rows per client.
        """
        ...

    @property
    def concepts(self) -> Ints | None:
        """(N,) the true concept of each client's newest training samples; None if not known."""
        ...

    @property
    def test_concepts(self) -> Ints | None:
        """(N,) the true concept of each client's test samples; None if not known.

        Where it differs from `concepts`, the client is in a drift cell.
        """
        ...

    @property
    def newest_onset(self) -> Ints | None:
        """(N,) the data step of each client's newest onset so far, 0 where there was none; None if not known.

        An onset is a data step from 1 on at which a client begins to receive data of another distribution.
        """
        ...

    def label_histograms(self, ids: Ints) -> Floats:
        """The label distribution of the training samples that each client holds now.

        Args:
            ids: client ids, array of shape (n,).

        Returns:
            Array of shape (n, num_labels), with rows that sum to 1, or are 0 for a client without samples.
        """
        ...


@dataclass(frozen=True)
class Tokens:
    """What samples are that are texts: ids of tokens, whole numbers below `vocabulary`.

    `padding`: the id that fills up what is shorter, and is no token; None: there is none.
    """

    vocabulary: int
    padding: int | None = None


class SampleReader(Protocol):
    """Features and labels by table row.

    One whose attribute `tokens` is not None has samples of `Tokens`, (n, T), which models take as whole
    numbers. One with a `num_targets` above 0 is `WithTargets`, too.
    """

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of one sample's features."""
        ...

    @property
    def num_labels(self) -> int:
        """Number of distinct labels."""
        ...

    def features(self, rows: Ints) -> Floats32:
        """(n, *sample_shape) the features of the table rows `rows` (n,)."""
        ...

    def labels(self, rows: Ints) -> Ints:
        """(n,) the labels of the table rows `rows` (n,), in [0, num_labels)."""
        ...

    def sample_keys(self, rows: Ints) -> Ints:
        """(n, 2) which sample each of the table rows `rows` (n,) has: numbers in [0, 2^32).

        A sample that is sent anew, also with another label or other features, keeps its key.
        """
        ...

    def reference_rows(self, per_label: int) -> Ints:
        """Draw training samples that clients hold at step 0, the same at each call, for a reference model.

        Args:
            per_label: the most rows of a label, >= 1; a label with fewer gives all that it has.

        Returns:
            Table rows, ascending.

        Raises:
            InputError: no client holds a training sample.
        """
        ...


class WithTargets(Protocol):
    """Targets of samples beside their label, by table row or by the number of the sample."""

    @property
    def num_targets(self) -> int:
        """K, the number of targets of a sample."""
        ...

    def targets(self, rows: Ints) -> Floats32:
        """(n, K) the targets of some samples (n,)."""
        ...


@dataclass(frozen=True)
class Segment:
    """One named tensor of a model: entries [first, last) of the vector of parameters, of `shape`.

    A tensor that is not `trainable`, such as a mask, is transferred, copied and initialised with the model,
    but no step of local training moves it. Of the kind "statistics" are the running means and variances of
    batch norm, which come behind all parameters: predicting in training moves them, and the federation
    averages them itself.
    """

    first: int
    last: int
    shape: tuple[int, ...]
    trainable: bool = True
    kind: Literal["parameter", "statistics"] = "parameter"


def num_statistics(layout: Mapping[str, Segment]) -> int:
    """S: how many of the P numbers of a model, behind its Q parameters, are statistics of batch norm."""
    return sum(part.last - part.first for part in layout.values() if part.kind == "statistics")


class Executor(Protocol):
    """Trains, scores and evaluates models; only the coordinator and its view know it."""

    @property
    def layout(self) -> Mapping[str, Segment]:
        """The tensors of the model by name, in the order of the vector of parameters."""
        ...

    @property
    def solver(self) -> SolverFacts:
        """What the solver keeps between tasks, receives, sends and computes besides plain training."""
        ...

    @property
    def num_parameters(self) -> int:
        """P, the numbers of a model: its parameters, and behind them the statistics of batch norm."""
        ...

    def initial(self, number: int) -> Floats32:
        """An initial model of this seed.

        Args:
            number: which one, from 0; all methods share number 0.

        Returns:
            Array of shape (P,).
        """
        ...

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> Updates:
        """Train all tasks of a wave.

        Args:
            tasks: n tasks.
            models: array of shape (M, P).
            start: array of shape (n,), the row of `models`, and of `tasks.broadcast`, that each task starts
                from.
            weights: array of shape (k, n), the weights that `Updates.weighted_sum` will be called with if all
                updates are finite; given if they are known beforehand, and nothing else reads the updates.
                Of an executor with an attribute `weights_from`, only with that many numbers in all updates.

        Returns:
            The updates, one row per task in the same order; their `metrics` are the loss and those in
            `tasks.measure`.
        """
        ...

    def score(self, models: Floats32, samples: SampleRanges, metrics: frozenset[Metric]) -> Scores:
        """Score every model on the samples of every request.

        Args:
            models: array of shape (m, P).
            samples: the samples of n requests.
            metrics: the scores to compute; the others are None.

        Returns:
            The scores of the m models on the n requests.
        """
        ...

    def personal(self, received: Floats32, state: Mapping[str, Floats32]) -> Floats32:
        """The parameters that clients use themselves, made of the models that serve them.

        Args:
            received: array of shape (n, P), the model of each client.
            state: the rows of the slots `solver.personal`, (n, P) or (n, 1) each.

        Returns:
            Array of shape (n, P).
        """
        ...

    @property
    def embedding_size(self) -> int:
        """D, the number of inputs of the model's last linear layer; ConfigurationError if it has none."""
        ...

    def embeddings(self, parameters: Floats32, samples: SampleRanges) -> Floats32:
        """The mean embedding of each request's samples: the input of one model's last layer.

        Args:
            parameters: array of shape (P,).
            samples: the samples of n requests.

        Returns:
            Array of shape (n, D), with zeros for a request without samples.
        """
        ...

    def gradients(self, parameters: Floats32, samples: SampleRanges) -> Floats32:
        """The gradient of the mean loss on each request's samples, at one model.

        Args:
            parameters: array of shape (P,).
            samples: the samples of n requests.

        Returns:
            Array of shape (n, P), with zeros for a request without samples and for a tensor that is not
            trainable.
        """
        ...

    def evaluate(self, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
        """Evaluate n clients on their test samples with the models that serve them.

        Args:
            models: array of shape (M, P).
            plan: which rows of `models` serve each of the clients, and how they are combined.
            samples: the test samples of the same clients, in the same order.

        Returns:
            The accuracy and the loss of each client.
        """
        ...


Meter = Callable[[str], AbstractContextManager[None]]
"""A function of a name that returns a context manager, which adds the wall time spent in it to that name."""


def unmeasured(what: str) -> AbstractContextManager[None]:
    """A meter that measures nothing.

    Args:
        what: the name, which is ignored.
    """
    return nullcontext()


@dataclass(frozen=True)
class Reaction:
    """What the coordinator returns to the main loop.

    `events` are to be scheduled, each at an absolute virtual time; `visits` have been sent out; `record`, if
    there is one, is to be logged, and so are the visits in `ended`, before it.
    """

    events: Sequence[tuple[float, Event]] = ()
    visits: VisitEnds = NO_ENDS
    record: RoundRecord | None = None
    ended: Sequence[VisitRows] = ()


class Coordinator(Protocol):
    """A state machine over events and the ends of visits; it has no clock and does no I/O.

    Its `state` can be taken between any two calls, and a new coordinator resumes from it with `restore`.
    """

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        ...

    def state(self) -> Tree:
        """Everything its further behaviour depends on, except configuration and world."""
        ...

    def restore(self, state: Tree) -> None:
        """Resume from a state.

        Args:
            state: what `state` returned in a run of the same configuration in the same world.
        """
        ...

    def start(self) -> Reaction:
        """Begin the run, at virtual time 0; returns the first reaction."""
        ...

    def handle(self, event: Event, now_s: float) -> Reaction:
        """Process one event.

        Args:
            event: the event.
            now_s: the current virtual time.
        """
        ...

    def visits_ended(self, ends: VisitEnds) -> tuple[int, Reaction]:
        """Process the ends of visits, in order, up to the first one to which the coordinator reacts.

        The rest is passed again later, together with the ends of visits that the reaction has sent out.

        Args:
            ends: at least one, in order, with no event in between.

        Returns:
            The number of `ends` processed, at least one, and the reaction, which may be empty.
        """
        ...
