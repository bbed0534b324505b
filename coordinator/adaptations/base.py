"""The protocol of adaptations: how a client uses the models that the clusterer's `serve` gave it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from coordinator.view import Part
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import InferencePlan, Work
from emulator.plugins import returns


@dataclass(frozen=True)
class Trained:
    """The models of n clients after local training, `models` (n, P), and the solver's `state` of each."""

    models: Floats32
    state: Mapping[str, Floats32]


class TrainOwn(Protocol):
    """Signature of the training of models by their clients alone."""

    def __call__(
        self,
        models: Floats32,
        start: Ints,
        steps: Ints,
        learning_rate: float | None = ...,
        state: Mapping[str, Floats32] | None = ...,
        taken: Ints | None = ...,
    ) -> Trained:
        """Train a model for each client of the view on the samples that it holds, with the arm's solver.

        Nobody is charged, and nothing that the federation keeps changes. Schedules have no part in it.

        Args:
            models: (m, P) models to start from.
            start: (n,) the row of `models` that each client starts from.
            steps: (n,) local steps of each client, from 0 on.
            learning_rate: of these steps; None: `training.learning_rate`.
            state: the solver's state of each client, columns (n, P) or (n, 1); None: as before any step.
            taken: (n,) steps that each model has taken before. Batches then follow from these, and the first
                steps of a longer training are those of a shorter one. None: they follow from the round.

        Returns:
            The models, and the state after the steps. If a model's training diverged, they are those before.

        Raises:
            RunError: one diverged, and `round.nonfinite_updates` is "stop".
        """
        ...


@dataclass(frozen=True)
class Held:
    """The training samples of k clients: features (s, *shape), labels (s,), and whose each is, in [0, k).

    `rows` (k,) are those of the clients in the view; each of them has samples, and `owner` (s,) is ascending.
    """

    rows: Ints
    features: Floats32
    labels: Ints
    owner: Ints


@dataclass(frozen=True)
class ClientView:
    """n clients, the models that serve them, and what they can do with the training samples that they hold.

    M models, P parameters, L labels. Every client holds training samples and is served by a model, except in
    `data_changes`. As clients are sent out a row is a task: one client may have several, each of one model.
    """

    clients: Ints  # (n,) ids, ascending
    plan: InferencePlan  # (n, width) which models serve them
    models: Floats32  # (M, P)
    num_labels: int
    step: int  # data step
    rounds: int  # rounds so far: those that have closed, and the one that closes now
    new_data: Bools  # (n,) whose training samples changed since `work` was last asked
    evaluated: bool  # whether clients were evaluated in that round
    local_steps: Ints  # (n,) of a visit of each client
    batch_size: int  # of these steps
    steps_per_client: Floats  # (n,) local steps that a federation takes per round and client
    # (n,) steps of each client -> (n,) the samples that they train on, each once for each use
    samples: Callable[[Ints], Floats]
    num_samples: Ints  # (n,) training samples that each client holds
    scored: Ints  # (S,) ids, ascending, of the clients that are ever evaluated
    # () -> (n, L) training samples of each label that each client holds; not in `data_changes`.
    label_counts: Callable[[], Floats]
    # () -> (M, L) the mean shares of labels among the clients that each model serves, as they last reported
    # them to the coordinator; uniform for a model without any. Only with `needs_label_shares`.
    reported_shares: Callable[[], Floats]
    # () -> (n, width, L, L) sums, over the training samples of label i that each client holds, of the
    # log-probabilities that the models of its plan give to output j (last axis); zeros without a model.
    log_probabilities: Callable[[], Floats]
    # (T, K) the numbers of T ways -> (n, width, T) sums of the loss of each model of the plan over the
    # training samples that each client holds, read in each way; zeros without a model. Only if it `reads`.
    losses: Callable[[Floats], Floats]
    # () -> the training samples that the clients hold, read plain, those of some clients at a time. Only if
    # it `reads`, or `hears`.
    held: Callable[[], Iterator[Held]]
    train: TrainOwn
    initial: Callable[[int], Floats32]  # number -> (P,) that initialisation of this seed; 0 is the shared one


@dataclass(frozen=True)
class Served:
    """The models (m, P) with which n clients predict, and the plan (n, width) of these.

    `ways` (n, width, K) are the numbers of the way in which each client has its features read for each model,
    NaN for as they are; None: all are. What `plan.outputs` does to a model's outputs, a label's way does to
    labels: label l is read as `outputs[l]`.
    """

    models: Floats32
    plan: InferencePlan
    ways: Floats | None = None

    def take(self, rows: Ints) -> Served:
        """What serves some of the clients, by row numbers; all models stay."""
        ways = self.ways
        if ways is not None:
            ways = ways[rows]
        return Served(self.models, self.plan.take(rows), ways)


class Adaptation(Part):
    """Base of adaptations, built with its own frozen settings.

    An adaptation changes what is evaluated, and what is trained only if it `trains`: then the ways that it
    chooses, of features (`Served.ways`) and of labels (`InferencePlan.outputs`), are those in which samples
    are read as clients train and score, too. It is asked for some clients at a time, and what it returns for
    one must not depend on the others.

    Attributes:
        reads: whether it has features read in ways of its own, by `read`.
        serves_one: whether each client must be served by a single model.
        federates: whether the federation trains models at all; if not, rounds are opened, selected and timed
            as ever, but nobody trains or transfers a model in them.
        keeps_models: whether it keeps a model, and the solver's state, for each client that is scored.
    """

    chance: ClassVar[str] = 'draw from self.streams.generator("my purpose", view.rounds, client)'
    reads: ClassVar[bool] = False
    serves_one: ClassVar[bool] = False
    federates: ClassVar[bool] = True
    keeps_models: bool = False

    @property
    def needs_label_shares(self) -> bool:
        """Whether the coordinator must hold the clients' shares of labels.

        An arm whose clients do not report these anyway has them report at each change of their data.
        """
        return False

    @property
    def trains(self) -> bool:
        """Whether samples are read in the ways that it chooses in training and scores, too.

        It is then asked at each dispatch, and for each request, with the models that the clients receive, and
        may change neither models nor offsets.
        """
        return False

    @property
    def hears(self) -> bool:
        """Whether it is asked at each dispatch, to hear of the participants what `sent_out` takes note of."""
        return self.trains

    def check_features(self, shape: tuple[int, ...], *, integers: bool) -> None:
        """Reject samples that the adaptation cannot read, before anything runs.

        Args:
            shape: the shape of a sample's features.
            integers: whether they are whole numbers, such as tokens.

        Raises:
            ConfigurationError: it cannot read these samples.
        """

    def check(self, num_labels: int) -> None:
        """Reject a trace that the adaptation cannot work with, before anything runs.

        Args:
            num_labels: L, the number of labels.

        Raises:
            ConfigurationError: it cannot work with this trace.
        """

    @abstractmethod
    @returns("coordinator.checks:adapted")
    def adapt(self, view: ClientView) -> Served:
        """What serves each client instead of the models of its plan.

        Args:
            view: the clients, which are about to be evaluated.

        Returns:
            Models, and a plan with a row for each client of the view.
        """

    @returns("coordinator.checks:read")
    def read(self, features: Floats32, ways: Floats) -> Floats32:
        """Samples as they are read in ways: a pure function, only if it `reads`.

        Args:
            features: (s, *shape) the features of samples, plain.
            ways: (s, K) the numbers of the way of each; NaN: as they are. K is 0 before any way is chosen.

        Returns:
            Array of shape (s, *shape), or of another that is the same at all calls. Those of one sample
            depend on no other.
        """
        return features

    @returns("coordinator.checks:choosing_work")
    def sent_out(self, view: ClientView, served: Served) -> Work | None:
        """Take note of what participants report as they are sent out, if it `hears`.

        Args:
            view: a row for each of their tasks.
            served: what `adapt` returned for it.

        Returns:
            What reporting costs, as `choosing_work`.
        """
        return None

    @returns("coordinator.checks:choosing_work")
    def choosing_work(self, view: ClientView) -> Work | None:
        """What the choice of ways costs participants at a dispatch, and those that respond to a request.

        Args:
            view: a row for each task, or for each client that responds.

        Returns:
            Columns of shape (n,), with the bytes of what is compared; None, by default: nothing.
        """
        return None

    @returns("coordinator.checks:adapting_work")
    def work(self, view: ClientView) -> Work | None:
        """What adapting costs its clients in the round that closes now.

        It is asked once a round: whose data changed since then is `view.new_data`, and whether clients were
        evaluated in it `view.evaluated`.

        Args:
            view: all clients that hold training samples, scored or not; its plan has their models only in
                rounds in which data changed, or clients were evaluated.

        Returns:
            Columns of shape (n,); None, by default, if it costs nothing.
        """
        return None

    def data_changes(self, view: ClientView) -> None:
        """Take note that the training samples of some scored clients change, before these are replaced.

        Args:
            view: these clients, with what they still hold, which may be nothing; no model serves them.
        """
