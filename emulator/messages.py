"""Messages between packages: work, sample ranges, tasks, updates, plans, scores, evaluations and triggers.

In array shapes, N is the number of clients, M of models, P of parameters, and n of rows of the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal, Protocol, get_args, get_type_hints

import numpy as np

from emulator.arrays import NO_IDS, Bools, Floats, Floats32, Ints, add_weighted_sums, weighted_sums
from emulator.errors import RunError

BYTES_PER_PARAMETER = 4
BYTES_PER_REPORTED_NUMBER = 4


@dataclass(frozen=True)
class Work:
    """What n clients or visits transfer and compute: the input of the latency model and of the ledger.

    Columns of shape (n,). `forward_samples` are only predicted (a forward pass), `trained_samples` are
    trained on (forward and backward), counted once for each use.
    """

    download_bytes: Floats
    upload_bytes: Floats
    forward_samples: Floats
    trained_samples: Floats

    @classmethod
    def of(cls, rows: int, **columns: float | Floats) -> Work:
        """The same work for every row, or that of some columns.

        Args:
            rows: number of rows.
            columns: value of each column by its name, or its values (rows,); columns that are not given are
                0.
        """
        names = ("download_bytes", "upload_bytes", "forward_samples", "trained_samples")
        return cls(*(np.full(rows, columns.get(name, 0.0)) for name in names))

    def take(self, rows: Ints) -> Work:
        """The work of the given rows, in that order."""
        return Work(
            self.download_bytes[rows],
            self.upload_bytes[rows],
            self.forward_samples[rows],
            self.trained_samples[rows],
        )

    def plus(self, other: Work, rows: Ints) -> Work:
        """The work with that of `other` (m,) added to the given rows (m,), which may be repeated."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Work(*(own + np.bincount(rows, added, len(own)) for own, added in pairs))


class Outcome(IntEnum):
    """How a visit ended; OUT while it is in flight."""

    OUT = 0
    COMPLETED = 1
    ABANDONED = 2  # over-commitment, deadline, time-out, or too stale
    DROPPED = 3  # the client went offline or crashed


# NOTE: plain numbers, since looking up a member takes as long as comparing a hundred outcomes.
OUT, COMPLETED, ABANDONED, DROPPED = map(int, Outcome)


@dataclass(frozen=True)
class EndedVisits:
    """Visits that are over, in columns (n,), by ascending client, then visit id.

    `lane` is the lane that each client was selected from, or the one that continues it after a re-clustering.
    `start_s` and `end_s` are instants of virtual time: a visit starts at its dispatch. No `outcome` is OUT.
    `staleness` is the number of server steps that the lane has made since, before the one that takes it.
    """

    visit: Ints
    client: Ints
    lane: Ints
    start_s: Floats
    end_s: Floats
    outcome: Ints
    staleness: Ints

    def clients_with(self, outcome: int) -> Ints:
        """The clients, in order, whose visit had this outcome, one of `Outcome`."""
        ended: Bools = self.outcome == outcome
        return self.client[ended]


@dataclass(frozen=True)
class VisitRows:
    """The ended visits that a server step hands over, for the log of visits: columns (n,), by client.

    A visit spends `requests_s`, `download_s`, `compute_s` and `upload_s` seconds, as planned at its dispatch,
    in this order, unless it ends before. Bytes are those that crossed the wire until it ended; the payload is
    without resent packets, both ways together. `dispatch` is the number of the dispatch that each began with;
    it and `staleness` are None where a round has one dispatch and one server step.
    """

    round: int
    visit: Ints
    client: Ints
    lane: Ints
    num_models: Ints  # models that each visit trains
    models: Ints  # (sum of `num_models`,) their cluster labels, visit after visit
    dispatched_s: Floats
    requests_s: Floats
    download_s: Floats
    compute_s: Floats
    upload_s: Floats
    end_s: Floats
    outcome: Ints  # as `Outcome`
    crashed: Bools
    download_bytes: Floats
    upload_bytes: Floats
    payload_bytes: Floats
    dispatch: Ints | None = None
    staleness: Ints | None = None


@dataclass(frozen=True)
class SampleRanges:
    """Ranges of rows of the trace table for each row of a request, in CSR form.

    `offsets` (rows + 1,) delimits each row's ranges; range j is the table rows [first[j], last[j]), and
    `weight[j]` is the relative probability of each of its samples. A training batch never crosses ranges, so
    only samples of the same range are mixed in a batch. With `bootstrap`, each range stands for the same
    number of samples drawn from it with replacement, once per (client, model, step).
    """

    offsets: Ints
    first: Ints
    last: Ints
    weight: Floats
    bootstrap: bool = False

    @classmethod
    def one_each(cls, first: Ints, last: Ints) -> SampleRanges:
        """One range per row, all samples with weight 1.

        Args:
            first: array of shape (rows,), the first table row of each range.
            last: array of shape (rows,), one past the last table row of each range.
        """
        return cls(np.arange(len(first) + 1, dtype=np.int64), first, last, np.ones(len(first)))

    @classmethod
    def joined(cls, parts: Sequence[SampleRanges], weights: Floats | None = None) -> SampleRanges:
        """One request in which each row has its ranges in all `parts`, in their order, but no empty ones.

        Args:
            parts: at least one, all with the same rows and one range per row.
            weights: array of shape (parts,) that replaces the weights of each part's ranges.
        """
        first = np.stack([part.first for part in parts], axis=1)  # (rows, parts)
        last = np.stack([part.last for part in parts], axis=1)
        weight = np.stack([part.weight for part in parts], axis=1)
        if weights is not None:
            weight = np.broadcast_to(weights, weight.shape)
        filled = last > first
        offsets = np.concatenate(([0], np.cumsum(filled.sum(axis=1)))).astype(np.int64)
        return cls(offsets, first[filled], last[filled], weight[filled])

    def __len__(self) -> int:
        """Number of rows of the request."""
        return len(self.offsets) - 1

    def counts(self) -> Ints:
        """(rows,) the number of samples in each row's ranges."""
        total = np.zeros(len(self.last) + 1, dtype=np.int64)
        (self.last - self.first).cumsum(out=total[1:])
        bounds = total[self.offsets]
        return bounds[1:] - bounds[:-1]

    def shifted(self, by: Ints) -> SampleRanges:
        """The ranges, moved on by so many table rows: `by` (rows,) for each row of the request."""
        if not by.any():
            return self
        each = np.repeat(by, self.offsets[1:] - self.offsets[:-1])
        return replace(self, first=self.first + each, last=self.last + each)

    def take(self, rows: Ints) -> SampleRanges:
        """The ranges of the given rows, in that order; a row may be repeated."""
        sizes = (self.offsets[1:] - self.offsets[:-1])[rows]
        if (sizes == 1).all():  # as in most runs
            ranges = self.offsets[rows]
            return SampleRanges(
                np.arange(len(rows) + 1, dtype=np.int64),
                self.first[ranges],
                self.last[ranges],
                self.weight[ranges],
                self.bootstrap,
            )
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        ranges = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return SampleRanges(
            offsets, self.first[ranges], self.last[ranges], self.weight[ranges], self.bootstrap
        )

    def rows(self, index: int) -> Ints:
        """(k,) the table rows of all k samples of row `index` of the request, range after range."""
        ranges = range(int(self.offsets[index]), int(self.offsets[index + 1]))
        spans = [np.arange(self.first[j], self.last[j], dtype=np.int64) for j in ranges]
        return np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)


Lifetime = Literal["data", "model", "run"]
"""Until when a client remembers something: see `StateSpec`."""


@dataclass(frozen=True)
class StateSpec:
    """One named variable that a local rule keeps between tasks: a slot.

    `shape` is that of one row: (Q,) for "parameters", without statistics of batch norm; (1,) for "scalar";
    for "columns" those of the P numbers of a model that are in `columns` [first, last). `until` says whose
    row it is, and when it ends: "data", that of a (client, model) pair, when the client's data change or the
    model is replaced; "model", that of such a pair, when the model is replaced or the client moves away from
    it, but for a visit that is out at that time, which writes it once more; "run", that of a client, whatever
    its model, never. In every case a client that ceases to hold data loses its rows. A new row begins with
    zeros, or, for `start` "received", with the parameters that the task starts from.
    """

    shape: Literal["parameters", "scalar", "columns"]
    until: Lifetime = "data"
    start: Literal["zeros", "received"] = "zeros"
    columns: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        choices = {name: get_args(kind) for name, kind in get_type_hints(StateSpec).items()}
        for name, allowed in choices.items():
            if name != "columns" and getattr(self, name) not in allowed:
                raise ValueError(f"{name} = {getattr(self, name)!r} of a slot; choices: {', '.join(allowed)}")
        if self.start == "received" and self.shape == "scalar":
            raise ValueError(f"a slot of shape {self.shape!r} cannot begin with the received parameters")

    def width(self, num_parameters: int) -> int:
        """The numbers of one row, for models of `num_parameters` parameters, without statistics."""
        if self.shape == "columns":
            return sum(last - first for first, last in self.columns)
        return num_parameters if self.shape == "parameters" else 1

    def begun(self, received: Floats32, num_parameters: int) -> Floats32:
        """(n, width) the rows with which tasks begin that start from `received` (n, P)."""
        if self.start == "zeros":
            return np.zeros((len(received), self.width(num_parameters)), dtype=np.float32)
        columns = self.columns or ((0, num_parameters),)
        return np.concatenate([received[:, first:last] for first, last in columns], axis=1)


@dataclass(frozen=True)
class StepForm:
    """What a solver's step is in the gradient g, at the distance x from the parameters that a task received.

    `v <- momentum v + g + pull x`, then `x <- x - learning_rate v`, from v = x = 0 on.
    """

    pull: float = 0.0
    momentum: float = 0.0

    def norms(self, num_steps: Ints, learning_rate: Floats) -> Floats:
        """The displacement of each of n tasks under a constant gradient of 1, over its learning rate.

        The number of steps, for plain descent. With the momentum rho alone, for K steps,
        `(K - rho (1 - rho^K) / (1 - rho)) / (1 - rho)`; with the pull mu alone, at the rate eta,
        `(1 - (1 - eta mu)^K) / (eta mu)`.

        Args:
            num_steps: (n,) of each task.
            learning_rate: (n,) of each task.

        Returns:
            (n,) NaN for a task without steps.

        >>> StepForm(momentum=0.5).norms(np.array([0, 1, 2]), np.full(3, 0.1)).tolist()
        [nan, 1.0, 2.5]
        """
        moved, velocity = np.zeros(len(num_steps)), np.zeros(len(num_steps))
        for step in range(int(num_steps.max(initial=0))):
            velocity = self.momentum * velocity + 1 - self.pull * learning_rate * moved
            moved = np.where(num_steps > step, moved + velocity, moved)
        return np.where(num_steps > 0, moved, np.nan)


@dataclass(frozen=True)
class OutputMix:
    """How a client mixes the logits of its own model with those of the model that serves it.

    Those of its own count `share`, plus the number in the slot `change`, if there is one.
    """

    share: float
    change: str | None = None

    def shares(self, state: Mapping[str, Floats32], clients: int) -> Floats:
        """(clients,) the share of each client's own model, by its rows of the slots."""
        changes = np.zeros(clients) if self.change is None else state[self.change][:, 0]
        return np.clip(self.share + changes.astype(np.float64), 0, 1)


@dataclass(frozen=True)
class SolverFacts:
    """All that the coordinator knows of a solver, joined over its rules.

    `state` has the slots by name, and `personal` names those of which the parameters that a client uses
    itself are made; none if it uses the served model, and with `mixes` it uses both. `receives` names the
    arrays of its aggregator that are sent along with each model, as large as it. Besides the update of each
    task `uploads` whole models are sent up. Of a model `unsent` numbers stay with the client, and are sent
    neither way, and `statistics`, its last ones, are those of batch norm, which no rule and no aggregator
    sees. The `base` numbers of its frozen parameters are in no model: each client downloads them once. Each
    step takes `gradients` gradients of its batch. `settings` are the numbers that rules read from a task's
    settings, if these have them, such as "adam.beta1", with what each is if they have not; if it
    `reads_samples`, tasks have `relative_samples`. `shares` are those that its aggregator must have, too,
    such as "feddyn.alpha". `form` is that of its steps, None if they have none.

    If it `stops`, the steps of a task are known only once it is trained: tasks have `local_epochs` among
    their settings, the most that they take, and `epochs` is what the rule itself sets that to, if it does.
    """

    state: Mapping[str, StateSpec] = field(default_factory=dict)
    personal: frozenset[str] = frozenset()
    mixes: OutputMix | None = None
    receives: frozenset[str] = frozenset()
    uploads: int = 0
    unsent: int = 0
    statistics: int = 0
    base: int = 0
    gradients: int = 1
    settings: Mapping[str, float] = field(default_factory=dict)
    reads_samples: bool = False
    stops: bool = False
    epochs: int | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    form: StepForm | None = None

    def state_width(self, num_parameters: int) -> int:
        """The numbers that all slots of a row have together, for models of `num_parameters` numbers."""
        return sum(spec.width(num_parameters - self.statistics) for spec in self.state.values())


TaskMetric = Literal["batch_errors", "batch_losses", "loss_before", "loss_squared", "step_norm"]
"""A column of `Updates.metrics` that is computed only if asked for, NaN for a task without steps.

`loss_before`: the mean loss of the task's first batch, at the model as received. `loss_squared`: the mean of
the squared losses of the samples of its last batch, taken before its step. `batch_losses` and `batch_errors`,
of shape (n, steps): the mean loss of each of the task's batches in order, and the share of its samples for
which another label is likelier, both before the step; NaN behind a task's last step. Like `loss`, all are of
the model's predictions alone: what a local rule adds, such as FedProx's pull, is not in them.

`step_norm`: what the task's steps move the model by, over the learning rate, if each gradient is 1
(`StepForm.norms`): their number, for plain descent. NaN with a solver whose steps have no such form.
"""

TASK_METRICS: tuple[TaskMetric, ...] = get_args(TaskMetric)

STOPPED_METRICS = ("epochs", "held_out", "trained_samples", "forward_samples")
"""Columns of `Updates.metrics` of tasks of `local_epochs`, whose solver stops.

The epochs that each task took; the samples that it held out; the samples that it trained on, each counted
once for each use; and those that it predicted to decide when to stop.
"""

BATCH_METRICS: frozenset[TaskMetric] = frozenset({"batch_losses", "batch_errors"})
"""Those with a number for each batch."""

LOSS_METRICS: frozenset[TaskMetric] = frozenset(TASK_METRICS) - {"step_norm"}
"""Those that are computed from the losses of batches, during training."""


def empty_metric(name: str, tasks: int, steps: int) -> Floats:
    """A column of `Updates.metrics` full of NaN, for tasks of at most so many steps.

    >>> empty_metric("batch_losses", 2, 3).shape, empty_metric("loss", 2, 3).shape
    ((2, 3), (2,))
    """
    return np.full((tasks, steps) if name in BATCH_METRICS else tasks, np.nan)


FurtherAccuracy = Literal["trained", "pooled"]
"""Accuracies that are measured on request: see `trained_accuracy` and `pooled_accuracy` of `RoundRecord`."""


@dataclass(frozen=True)
class TrainTasks:
    """Training tasks, frozen at dispatch and sorted by (client, model); columns of shape (n,).

    `model` is the bank's id of the model at dispatch, `visit` the id of the visit that the task is part of.
    `settings` holds `learning_rate`, `local_steps` and `batch_size`, and the numbers of rules that a schedule
    decides; `relative_samples`, the client's over their mean, if the solver reads it; and `local_epochs`, if
    the solver decides after each epoch whether to stop: then `local_steps` is not read.
    `state` is the solver's state of each task, (n, P) or (n, 1) by its `StateSpec`; a slot that is left out
    begins as its `start` says.
    `broadcast` has, by name, an array (M, P) with a row for each of the models that tasks start from; one
    that is left out is zero. `dispatch`, the number of the dispatch, is in the key of the
    batches' random streams; in tasks that are not of a dispatch it is the round. The data `step` is in those
    of bootstraps and of the cut of fixed batches.

    `tampering` describes what happens to each update before it arrives; a column without effect is left out.
    An update is multiplied by `scale`; noise of `noise` times its norm is added; where `nan` or `bits` is 1,
    some of its numbers become NaN, or have a bit flipped.

    `measure` has the metrics to compute besides the loss.
    """

    client: Ints
    model: Ints
    visit: Ints
    samples: SampleRanges
    settings: Mapping[str, Floats]
    dispatch: Ints
    step: Ints
    state: Mapping[str, Floats32] = field(default_factory=dict)
    tampering: Mapping[str, Floats] = field(default_factory=dict)
    measure: frozenset[TaskMetric] = frozenset()
    broadcast: Mapping[str, Floats32] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of tasks."""
        return len(self.client)

    def take(self, rows: Ints) -> TrainTasks:
        """The tasks of the given rows, in that order."""
        return TrainTasks(
            self.client[rows],
            self.model[rows],
            self.visit[rows],
            self.samples.take(rows),
            {name: column[rows] for name, column in self.settings.items()},
            self.dispatch[rows],
            self.step[rows],
            {name: column[rows] for name, column in self.state.items()},
            {name: column[rows] for name, column in self.tampering.items()},
            self.measure,
            self.broadcast,
        )


class Updates(Protocol):
    """The results of training, one row per task.

    The updates (deltas) are of the Q parameters alone; statistics of batch norm come beside them. They
    may be on other ranks, and are reached only through the methods. Sums are taken
    within each task group first and then over the groups, so that the number of ranks does not change a bit
    of them.
    """

    @property
    def client(self) -> Ints:
        """(n,) client ids."""
        ...

    @property
    def model(self) -> Ints:
        """(n,) the bank's ids of the models that were trained."""
        ...

    @property
    def num_samples(self) -> Ints:
        """(n,) the number of samples each task could train on."""
        ...

    @property
    def num_steps(self) -> Ints:
        """(n,) the number of local steps taken."""
        ...

    @property
    def staleness(self) -> Ints:
        """(n,) server steps of the lane between each task's dispatch and the step that absorbs its update."""
        ...

    @property
    def metrics(self) -> Mapping[str, Floats]:
        """Columns by name: the training `loss` (n,), and those that `TrainTasks.measure` asked for.

        A solver that stops adds `STOPPED_METRICS`. Those of batches have shape (n, steps), for the largest
        number of steps of a task of the wave.
        """
        ...

    def __len__(self) -> int:
        """Number of tasks."""
        ...

    @property
    def state(self) -> Mapping[str, Floats32]:
        """The solver's new state of each task, with a column (n, Q) or (n, 1) for each slot."""
        ...

    @property
    def finite(self) -> Bools:
        """(n,) whether all numbers of the task's update are finite."""
        ...

    @property
    def statistics(self) -> Floats32:
        """(n, S) the statistics of batch norm in each trained model, themselves; S = 0 without batch norm."""
        ...

    def take(self, rows: Ints) -> Updates:
        """Select rows.

        Args:
            rows: ascending row numbers.
        """
        ...

    def absorbed(self, model: Ints, staleness: Ints) -> Updates:
        """The same updates as a later server step absorbs them.

        Args:
            model: array of shape (n,), the bank's present ids of the models that they are absorbed into.
            staleness: array of shape (n,); 0 until it is given.
        """
        ...

    def weighted_sum(self, weights: Floats) -> Floats:
        """`weights` times the updates (deltas).

        Summed in ascending row order within each group, then over the groups.

        Args:
            weights: array of shape (k, n).

        Returns:
            Array of shape (k, Q), in float64.
        """
        ...

    def gram(self) -> Floats:
        """(n, n) the inner products of the updates (deltas), from which their cosines follow."""
        ...

    def norms(self) -> Floats:
        """(n,) the Euclidean norm of each update (delta)."""
        ...

    def project(self, vectors: Floats | Floats32) -> Floats:
        """The inner products of the updates (deltas) with some vectors.

        Args:
            vectors: array of shape (r, Q).

        Returns:
            Array of shape (n, r), in float64.
        """
        ...

    def rows(self, columns: slice) -> Floats32:
        """Some parameters of all n updates (deltas), as an array of shape (n, c).

        Args:
            columns: slice of the Q parameters, which selects c of them.
        """
        ...


@dataclass(frozen=True)
class ArrayUpdates:
    """Updates that are all in this process's memory.

    `delta` (n, Q) holds the updates; `group` (n,) the task group of each row, or None for a single group.
    """

    client: Ints
    model: Ints
    num_samples: Ints
    num_steps: Ints
    delta: Floats32
    metrics: Mapping[str, Floats] = field(default_factory=dict)
    state: Mapping[str, Floats32] = field(default_factory=dict)
    group: Ints | None = None
    late: Ints | None = None  # staleness; None: all 0
    of_batch_norm: Floats32 | None = None  # statistics (n, S); None: none

    @property
    def statistics(self) -> Floats32:
        """(n, S) see `Updates.statistics`."""
        return self.delta[:, :0] if self.of_batch_norm is None else self.of_batch_norm

    @property
    def staleness(self) -> Ints:
        """(n,) see `Updates.staleness`."""
        return np.zeros(len(self), dtype=np.int64) if self.late is None else self.late

    def absorbed(self, model: Ints, staleness: Ints) -> ArrayUpdates:
        """The same updates, absorbed later; see `Updates.absorbed`."""
        return replace(self, model=model, late=staleness)

    def __len__(self) -> int:
        """Number of tasks."""
        return len(self.client)

    @property
    def finite(self) -> Bools:
        """(n,) whether all numbers of the row's `delta` and of its statistics are finite."""
        finite = np.isfinite(self.delta).all(axis=1)
        return np.array(finite & np.isfinite(self.statistics).all(axis=1))

    def take(self, rows: Ints) -> ArrayUpdates:
        """The given rows; see `Updates.take`."""
        return replace(self, **{name: _taken(column, rows) for name, column in vars(self).items()})

    def weighted_sum(self, weights: Floats) -> Floats:
        """`weights` (k, n) times the updates; see `Updates.weighted_sum`."""
        if self.group is None:
            return weighted_sums(weights, self.delta)
        sums = np.zeros((len(weights), self.delta.shape[1]))
        for group in np.unique(self.group):
            rows = np.flatnonzero(self.group == group)
            add_weighted_sums(sums, weights[:, rows], self.delta, rows)
        return sums

    def gram(self) -> Floats:
        """(n, n) the inner products of the updates."""
        rows = self.delta.astype(np.float64)
        # Not a matrix product, which BLAS may reorder.
        return np.array([(rows * row).sum(axis=1) for row in rows]).reshape(len(self), len(self))

    def norms(self) -> Floats:
        """(n,) the Euclidean norm of each update."""
        squares = [float(np.square(row, dtype=np.float64).sum()) for row in self.delta]
        return np.sqrt(np.array(squares, dtype=np.float64))

    def project(self, vectors: Floats | Floats32) -> Floats:
        """(n, r) the inner products of the updates with `vectors` (r, Q)."""
        # Contiguous, so that the order of the sums does not depend on how the vectors lie in memory.
        wide = np.ascontiguousarray(vectors, dtype=np.float64)
        # Not a matrix product, as in `gram`.
        products = [(wide * row).sum(axis=1) for row in self.delta]
        return np.array(products, dtype=np.float64).reshape(len(self), len(wide))

    def rows(self, columns: slice) -> Floats32:
        """(n, c) some columns of the updates, as a view."""
        return self.delta[:, columns]


def _taken(column: Any, rows: Ints) -> Any:
    """The rows of a column, or of columns by name; anything else as it is."""
    if isinstance(column, Mapping):
        return {name: _taken(held, rows) for name, held in column.items()}
    return column[rows] if isinstance(column, np.ndarray) else column


@dataclass(frozen=True)
class OfWave(ArrayUpdates):
    """Updates that are elsewhere, or were let go; `delta` is (n, 0).

    Row i is row `place[i]` of a wave of `size`. `known` are weights (k, size), and the sums (k, Q) by them,
    that were taken as the wave was trained; None: no sums were.
    """

    place: Ints = field(default_factory=lambda: NO_IDS)
    size: int = 0
    known: tuple[Floats, Floats] | None = None

    def over_wave(self, weights: Floats) -> Floats:
        """(k, size) weights (k, n) as those of the whole wave, 0 for all others."""
        spread = np.zeros((len(weights), self.size))
        spread[:, self.place] = weights
        return spread

    def known_sum(self, weights: Floats) -> Floats | None:
        """The sums by `weights` (k, n), if they are those that were taken; else None."""
        if self.known is None or not np.array_equal(self.over_wave(weights), self.known[0]):
            return None
        return self.known[1].copy()


@dataclass(frozen=True)
class SummedUpdates(OfWave):
    """Updates, all finite, that were let go once they were added up by weights known before."""

    def weighted_sum(self, weights: Floats) -> Floats:
        """The sums that were taken; `weights` (k, n) must be those that were known before."""
        sums = self.known_sum(weights)
        return self._refuse() if sums is None else sums

    def _refuse(self, *asked: Any, **named: Any) -> Any:
        """RunError: all that needs the updates themselves is refused."""
        raise RunError(
            "updates were let go once they were added up by Aggregator.weights, and a part reads them again: "
            "it must not declare reads_updates = False"
        )

    gram = norms = project = rows = _refuse


def trained_models(updates: Updates, received: Floats32) -> Floats32:
    """(n, P) the models that n tasks have made of those that they `received` (n, P); with ranks an exchange.

    >>> one = np.ones(1, dtype=np.int64)
    >>> made = ArrayUpdates(one, one, one, one, np.float32([[2]]), of_batch_norm=np.float32([[0.5]]))
    >>> trained_models(made, np.float32([[1, 9]])).tolist()
    [[3.0, 0.5]]
    """
    deltas = updates.rows(slice(None))
    if updates.statistics.shape[1] == 0:
        return received + deltas
    return np.hstack([received[:, : deltas.shape[1]] + deltas, updates.statistics])


Combine = Literal["probabilities", "votes", "logits"]


@dataclass(frozen=True)
class InferencePlan:
    """Which models serve each client, and how their predictions are combined.

    `models` (N, width) are rows of the bank, padded with -1. `weights` (N, width) are 0 where padded, and
    each row sums to 1, or to 0 for a client without a model. `combine` is a weighted mean of the models'
    `probabilities` or of their `logits`, or a weighted count of their `votes` (each model's most likely
    label).

    A client may read a model in its own way. `outputs` (N, width, L) is the output that it reads as each
    label, and `offsets` (N, width, L) is then added to these logits; None leaves them as they are. What
    results is renormalised before models are combined.

    `is_own`: client i is served by row i of as many models as there are clients, and reads it as it is.
    """

    models: Ints
    weights: Floats
    combine: Combine = "probabilities"
    outputs: Ints | None = None
    offsets: Floats | None = None
    is_own: bool = False

    @classmethod
    def alike(cls, models: Ints) -> InferencePlan:
        """A plan in which all models of a client have the same weight.

        Args:
            models: array of shape (N, width), padded with -1.
        """
        used = models >= 0
        return cls(models, used / np.maximum(used.sum(axis=1, keepdims=True), 1))

    @classmethod
    def own(cls, num_clients: int) -> InferencePlan:
        """A plan in which each client is served by a model of its own: client i by row i.

        Args:
            num_clients: N, and the number of models.
        """
        return replace(cls.alike(np.arange(num_clients)[:, None]), is_own=True)

    def take(self, clients: Ints) -> InferencePlan:
        """The plan of the given clients only, in their order."""
        return InferencePlan(
            self.models[clients],
            self.weights[clients],
            self.combine,
            None if self.outputs is None else self.outputs[clients],
            None if self.offsets is None else self.offsets[clients],
        )

    @property
    def used(self) -> Bools:
        """(N, width) where `models` names a model, instead of padding, and its weight is above 0."""
        used: Bools = (self.models >= 0) & (self.weights > 0)
        return used

    def among(self, holding: Bools) -> InferencePlan:
        """The plan in which models serve only the clients that hold data, `holding` (N,)."""
        if holding.all():
            return self
        rows = holding[:, None]
        models, weights = np.where(rows, self.models, -1), np.where(rows, self.weights, 0.0)
        return replace(self, models=models, weights=weights)

    def first(self) -> Ints:
        """(N,) each client's model of largest weight, the leftmost of equals; -1 for one without a model."""
        rows = np.arange(len(self.models))
        best: Ints = self.models[rows, np.where(self.models >= 0, self.weights, -1.0).argmax(axis=1)]
        return best


@dataclass(frozen=True)
class KeptModels:
    """The models of a run at its end.

    `labels` (M,) are the clusters of `models` (M, P), which mean something only if they are `common`, and no
    client trains alone. `served` (N, width) has the labels of the models that serve each client, padded with
    -1, and `weights` (N, width) their weights as predictions are combined. The `clients` (n,) use tensors of
    their `own`, by name (n, size), in place of those of the model that serves them; None: there are some, and
    they do not fit. Where clients use both models by their logits, `shares` (n,) are those of their own.
    """

    labels: Ints
    models: Floats32
    served: Ints
    weights: Floats
    combine: Combine = "probabilities"
    common: bool = True
    clients: Ints = field(default_factory=lambda: NO_IDS)
    own: Mapping[str, Floats32] | None = field(default_factory=dict)
    shares: Floats | None = None


Metric = Literal["correct", "loss", "true_class_error", "confusion", "log_probabilities"]

METRICS_BY_LABEL: frozenset[Metric] = frozenset({"confusion", "log_probabilities"})
"""Metrics that are matrices of labels by labels."""


@dataclass(frozen=True)
class Scores:
    """Scores of m models on each of n requests: sums over the request's samples, and their number.

    A metric that was not requested is None. Shapes are (n, m), except `counts` (n,) and `confusion`
    (n, m, L, L): how often label i (axis 2) was predicted as label j (axis 3). `true_class_error` is the sum
    of (1 - p)^2, where p is the predicted probability of the true label. `log_probabilities` (n, m, L, L) are
    sums, over the samples of label i (axis 2), of the logarithm of the probability of label j (axis 3).
    """

    counts: Ints
    correct: Floats | None = None
    loss: Floats | None = None
    true_class_error: Floats | None = None
    confusion: Floats | None = None
    log_probabilities: Floats | None = None

    def accuracy(self) -> Floats:
        """(n, m) the share of samples each model predicts correctly; NaN for a request without samples."""
        assert self.correct is not None
        with np.errstate(invalid="ignore"):
            shares: Floats = self.correct / self.counts[:, None]
        return shares


@dataclass(frozen=True)
class Evaluation:
    """Each client's metrics on its own test samples with the models that serve it.

    Columns are of shape (n,), with NaN for a client without samples or without a model. `loss` is the
    cross-entropy of the combined probabilities; for votes, the weighted mean of the models' cross-entropies.
    """

    accuracy: Floats
    loss: Floats


@dataclass(frozen=True)
class Trigger:
    """The distances that a clusterer compared to decide whether to re-cluster all clients.

    Distances are in the clusterer's metric. With several centres it re-clusters if `shift` reaches
    `threshold` x `mean_distance` (`threshold` squared, if distances are); with one, if clients' reports
    differ at all. It never does if `threshold` is None.
    """

    shift: float  # distance of the centre that moved farthest
    mean_distance: float | None  # between two centres; None if there is only one
    threshold: float | None  # None if it never fires
    clusters: int  # number of centres before any re-clustering
    fired: bool

    def compared(self, *, are_squared: bool) -> dict[str, float | None]:
        """The distance that was `measured`, and the `limit` from which it fires; None if there is no limit.

        `are_squared`: whether the clusterer's distances are squared, and so the threshold with them.

        >>> trigger = Trigger(shift=1.0, mean_distance=8.0, threshold=0.5, clusters=2, fired=False)
        >>> trigger.compared(are_squared=False), trigger.compared(are_squared=True)
        ({'measured': 1.0, 'limit': 4.0}, {'measured': 1.0, 'limit': 2.0})
        """
        if self.threshold is None or self.mean_distance is None:
            return {"measured": self.shift, "limit": None}
        share = self.threshold**2 if are_squared else self.threshold
        return {"measured": self.shift, "limit": share * self.mean_distance}


@dataclass(frozen=True)
class PairwiseTrigger:
    """The same, for a clusterer that re-clusters all clients if `largest_distance` is above `delta`."""

    largest_distance: float | None  # between two clients of one cluster; None if no cluster has two
    delta: float  # the limit at this drift
    clusters: int  # number of centres before any re-clustering
    fired: bool

    def compared(self, *, are_squared: bool) -> dict[str, float | None]:
        """The distance that was `measured`, and the `limit` above which it fires; see `Trigger.compared`."""
        return {"measured": self.largest_distance, "limit": self.delta}


@dataclass(frozen=True)
class NamedNumbers:
    """The same, for a trigger with quantities of its own: at most 16 numbers by name, in all rounds of a run.

    A name is of at most 32 lower-case letters, digits and underscores, the first of them a letter. Its number
    is finite, or a list with a finite one for each of the `clusters`; a quantity that is undefined is left
    out. The log refuses anything else.
    """

    numbers: Mapping[str, float | list[float]]
    clusters: int  # number of centres before any re-clustering
    fired: bool

    def compared(self, *, are_squared: bool) -> Mapping[str, float | list[float]]:
        """All numbers, as the trigger named them; see `Trigger.compared`."""
        return self.numbers


AnyTrigger = Trigger | PairwiseTrigger | NamedNumbers
"""What a trigger logs; each says by `compared` which numbers it compared, by the names of lines to draw."""
