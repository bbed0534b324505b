"""What crosses borders: work, sample ranges, tasks, updates, plans, scores, evaluations and triggers.

N clients, M models, P parameters, n rows of the message at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, Protocol

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints, weighted_sums
from emulator.deprecated import OldSampleRanges, OldUpdates

BYTES_PER_PARAMETER = 4
BYTES_PER_REPORTED_NUMBER = 4


@dataclass(frozen=True)
class Work:
    """What clients spend: the only input of the latency model and of the two ledgers. All of shape (n,)."""

    download_bytes: Floats
    upload_bytes: Floats
    forward_samples: Floats
    trained_samples: Floats

    @classmethod
    def of(cls, rows: int, **columns: float) -> Work:
        """So many clients that all spend the same; what is not named is 0."""
        names = ("download_bytes", "upload_bytes", "forward_samples", "trained_samples")
        return cls(*(np.full(rows, columns.get(name, 0.0)) for name in names))


class Outcome(IntEnum):
    """How a visit ended; OUT while it has not."""

    OUT = 0
    COMPLETED = 1
    ABANDONED = 2  # over-commitment or deadline
    DROPPED = 3  # went offline


@dataclass(frozen=True)
class SampleRanges(OldSampleRanges):
    """Slices of the trace table, as CSR over the rows of a request.

    `offsets` (rows + 1,) delimits each row's ranges; range j holds the table rows [first[j], last[j]), and
    `weight[j]` is the relative chance of each of its samples. A training batch never crosses a range, so that
    samples are mixed where one range holds them all. `bootstrap`: each range stands for as many samples drawn
    from it with replacement, once per (client, model, step).
    """

    offsets: Ints
    first: Ints
    last: Ints
    weight: Floats
    bootstrap: bool = False

    @classmethod
    def one_each(cls, first: Ints, last: Ints) -> SampleRanges:
        """One range per row, all samples alike."""
        return cls(np.arange(len(first) + 1, dtype=np.int64), first, last, np.ones(len(first)))

    @classmethod
    def joined(cls, parts: Sequence[SampleRanges], weights: Floats | None = None) -> SampleRanges:
        """Each row with the ranges it has in every part, part after part, without the empty ones.

        All `parts` have the same rows, with one range each. `weights` (parts,) replaces their weights.
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
        return len(self.offsets) - 1

    def counts(self) -> Ints:
        """(rows,) samples in each row's ranges."""
        total = np.concatenate(([0], np.cumsum(self.last - self.first)))
        return (total[self.offsets[1:]] - total[self.offsets[:-1]]).astype(np.int64)

    def take(self, rows: Ints) -> SampleRanges:
        """The ranges of `rows`, in that order."""
        sizes = np.diff(self.offsets)[rows]
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        ranges = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return SampleRanges(
            offsets, self.first[ranges], self.last[ranges], self.weight[ranges], self.bootstrap
        )

    def rows(self, index: int) -> Ints:
        """The table rows that row `index` of the request names, in table order."""
        ranges = range(int(self.offsets[index]), int(self.offsets[index + 1]))
        spans = [np.arange(self.first[j], self.last[j], dtype=np.int64) for j in ranges]
        return np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class StateSpec:
    """One named slot of what a local rule remembers of a (client, model) pair between its tasks.

    It starts at zero, and is forgotten when the client's data changes.
    """

    shape: Literal["parameters", "scalar"]


@dataclass(frozen=True)
class TrainTasks:
    """What is to be trained, frozen at dispatch; sorted by (client, model). Columns of shape (n,).

    `model` is the bank's id; `settings` holds `learning_rate`, `local_steps` and `batch_size`; `state` what
    the solver remembers of each pair, (n, P) or (n, 1) by its `StateSpec`; `round` keys the batches' random
    streams, the data `step` those of bootstraps.

    `tampering` is what becomes of each update before it arrives, in columns that are left out where they
    would change nothing: it is multiplied by `scale`; noise of `noise` times its norm is added; where `nan`
    or `bits` is 1, some of its numbers are lost, or have a bit flipped.
    """

    client: Ints
    model: Ints
    visit: Ints
    samples: SampleRanges
    settings: Mapping[str, Floats]
    round: int
    step: int = 0
    state: Mapping[str, Floats32] = field(default_factory=dict)
    tampering: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.client)

    def take(self, rows: Ints) -> TrainTasks:
        """The tasks of `rows`, in that order."""
        return TrainTasks(
            self.client[rows],
            self.model[rows],
            self.visit[rows],
            self.samples.take(rows),
            {name: column[rows] for name, column in self.settings.items()},
            self.round,
            self.step,
            {name: column[rows] for name, column in self.state.items()},
            {name: column[rows] for name, column in self.tampering.items()},
        )


class Updates(Protocol):
    """What came back, a row per task; parameter rows may live elsewhere: they are reached through verbs.

    Rows belong to groups, the task groups they were trained in: sums are taken within a group first, where
    its rows are, so that they come out the same to the bit wherever that is.
    """

    @property
    def client(self) -> Ints: ...
    @property
    def model(self) -> Ints: ...
    @property
    def num_samples(self) -> Ints: ...
    @property
    def num_steps(self) -> Ints: ...
    @property
    def metrics(self) -> Mapping[str, Floats]: ...

    def __len__(self) -> int: ...

    @property
    def state(self) -> Mapping[str, Floats32]:
        """What the solver remembers of each pair from now on, laid out as `TrainTasks.state`."""
        ...

    @property
    def finite(self) -> Bools:
        """(n,) whether every number that came back of the task is finite."""
        ...

    def take(self, rows: Ints) -> Updates:
        """Those of `rows`, ascending."""
        ...

    def weighted_sum(self, weights: Floats) -> Floats:
        """`weights` (k, n) times the updates (deltas): (k, P), summed in ascending row order within each
        group, and then over the groups."""
        ...

    def gram(self) -> Floats:
        """(n, n) inner products of the updates (deltas): their cosines."""
        ...

    def norms(self) -> Floats:
        """(n,) the Euclidean norm of each update (delta)."""
        ...

    def rows(self, columns: slice) -> Floats32:
        """(n, c) these columns of the updates (deltas), c of the P parameters."""
        ...


@dataclass(frozen=True)
class ArrayUpdates(OldUpdates):
    """Updates whose rows are here, in memory: `delta` (n, P); `group` (n,) of each row, None: all in one."""

    client: Ints
    model: Ints
    num_samples: Ints
    num_steps: Ints
    delta: Floats32
    metrics: Mapping[str, Floats] = field(default_factory=dict)
    state: Mapping[str, Floats32] = field(default_factory=dict)
    group: Ints | None = None

    def __len__(self) -> int:
        return len(self.client)

    @property
    def finite(self) -> Bools:
        columns = [self.delta, *self.state.values()]
        finite: Bools = np.logical_and.reduce([np.isfinite(column).all(axis=1) for column in columns])
        return finite

    def take(self, rows: Ints) -> ArrayUpdates:
        return ArrayUpdates(
            self.client[rows],
            self.model[rows],
            self.num_samples[rows],
            self.num_steps[rows],
            self.delta[rows],
            {name: column[rows] for name, column in self.metrics.items()},
            {name: column[rows] for name, column in self.state.items()},
            None if self.group is None else self.group[rows],
        )

    def weighted_sum(self, weights: Floats) -> Floats:
        if self.group is None:
            return weighted_sums(weights, self.delta)
        sums = np.zeros((len(weights), self.delta.shape[1]))
        for group in np.unique(self.group):
            rows = np.flatnonzero(self.group == group)
            sums += weighted_sums(weights[:, rows], self.delta[rows])
        return sums

    def gram(self) -> Floats:
        rows = self.delta.astype(np.float64)
        # Not a matrix product, which BLAS may reorder.
        return np.array([(rows * row).sum(axis=1) for row in rows]).reshape(len(self), len(self))

    def norms(self) -> Floats:
        squares = [float(np.square(row, dtype=np.float64).sum()) for row in self.delta]
        return np.sqrt(np.array(squares, dtype=np.float64))

    def rows(self, columns: slice) -> Floats32:
        return self.delta[:, columns]


Combine = Literal["probabilities", "votes"]


@dataclass(frozen=True)
class InferencePlan:
    """Which models answer for each client. `models` (N, width) rows of the bank, -1 pads.

    `weights` (N, width), 0 where padded; rows sum to 1. `combine`: a weighted mean of the models'
    `probabilities`, or a weighted count of their `votes` (each model's most likely label).
    """

    models: Ints
    weights: Floats
    combine: Combine = "probabilities"

    @classmethod
    def alike(cls, models: Ints) -> InferencePlan:
        """All of a client's `models` (N, width) count alike."""
        used = models >= 0
        return cls(models, used / np.maximum(used.sum(axis=1, keepdims=True), 1))

    def take(self, clients: Ints) -> InferencePlan:
        """What answers for these clients, in their order."""
        return InferencePlan(self.models[clients], self.weights[clients], self.combine)

    def first(self) -> Ints:
        """(N,) the model of largest weight, the leftmost of equals; -1 for a client that none serves."""
        rows = np.arange(len(self.models))
        best: Ints = self.models[rows, np.where(self.models >= 0, self.weights, -1.0).argmax(axis=1)]
        return best


Metric = Literal["correct", "loss", "true_class_error", "confusion"]


@dataclass(frozen=True)
class Scores:
    """How m models do on each of n requests: sums over its samples, and how many there were.

    A metric that was not asked for is None. Shapes (n, m), but for `counts` (n,) and `confusion`
    (n, m, L, L): how often label i (axis 2) was taken for label j (axis 3). `true_class_error` sums
    (1 - p)^2 with p the probability given to the true label.
    """

    counts: Ints
    correct: Floats | None = None
    loss: Floats | None = None
    true_class_error: Floats | None = None
    confusion: Floats | None = None

    def accuracy(self) -> Floats:
        """(n, m) shares of samples that each model gets right; NaN for a request without samples."""
        assert self.correct is not None
        with np.errstate(invalid="ignore"):
            shares: Floats = self.correct / self.counts[:, None]
        return shares


@dataclass(frozen=True)
class Evaluation:
    """Every client with what serves it, on its own test samples. (N,) each; NaN without samples.

    `loss` is the cross-entropy of the plan's probabilities; for votes, the weighted mean of its models' own.
    """

    accuracy: Floats
    loss: Floats


@dataclass(frozen=True)
class Trigger:
    """What a clusterer compared when it was asked whether everybody is to be clustered anew.

    Distances are in the clusterer's own metric. It fires when `shift` reaches `threshold` x `mean_distance`.
    """

    shift: float  # of the centre that moved furthest
    mean_distance: float | None  # between two centres; None: there is one centre
    threshold: float | None  # None: it never fires
    clusters: int  # centres that were compared, before anybody is clustered anew
    fired: bool
