"""The columns that cross borders: work, sample ranges, tasks, updates and evaluations.

N clients, M models, P parameters, n rows of the message at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import numpy as np

from emulator.arrays import Floats, Floats32, Ints, weighted_sums

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
    ABSORBED = 1
    ABANDONED = 2  # over-commitment or deadline
    DROPPED = 3  # went offline


@dataclass(frozen=True)
class SampleRanges:
    """Slices of the trace table, as CSR over the rows of a request.

    `offsets` (rows + 1,) delimits each row's ranges; range j holds the table rows [first[j], last[j]).
    """

    offsets: Ints
    first: Ints
    last: Ints

    @classmethod
    def one_each(cls, first: Ints, last: Ints) -> SampleRanges:
        """One range per row."""
        return cls(np.arange(len(first) + 1, dtype=np.int64), first, last)

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
        return SampleRanges(offsets, self.first[ranges], self.last[ranges])

    def rows(self, index: int) -> Ints:
        """The table rows that row `index` of the request names, in table order."""
        ranges = range(int(self.offsets[index]), int(self.offsets[index + 1]))
        spans = [np.arange(self.first[j], self.last[j], dtype=np.int64) for j in ranges]
        return np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class TrainTasks:
    """What is to be trained, frozen at dispatch; sorted by (client, model). Columns of shape (n,).

    `model` is the bank's id, and (model, version) names one content for ever; `settings` holds
    `learning_rate`, `local_steps` and `batch_size`; `round` keys the batches' random streams.
    """

    client: Ints
    model: Ints
    version: Ints
    visit: Ints
    samples: SampleRanges
    settings: Mapping[str, Floats]
    round: int

    def __len__(self) -> int:
        return len(self.client)

    def take(self, rows: Ints) -> TrainTasks:
        """The tasks of `rows`, in that order."""
        return TrainTasks(
            self.client[rows],
            self.model[rows],
            self.version[rows],
            self.visit[rows],
            self.samples.take(rows),
            {name: column[rows] for name, column in self.settings.items()},
            self.round,
        )


class Updates(Protocol):
    """What came back, a row per task; parameter rows may live elsewhere: they are reached through verbs."""

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

    def mix(self, weights: Floats) -> Floats:
        """`weights` (k, n) times the updates (deltas): (k, P), summed in ascending row order."""
        ...


@dataclass(frozen=True)
class ArrayUpdates:
    """Updates whose rows are here, in memory: `delta` (n, P)."""

    client: Ints
    model: Ints
    num_samples: Ints
    num_steps: Ints
    delta: Floats32
    metrics: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.client)

    def mix(self, weights: Floats) -> Floats:
        return weighted_sums(weights, self.delta)


@dataclass(frozen=True)
class Evaluation:
    """Every client with the model that serves it, on its own test samples. (N,) each; NaN without samples."""

    accuracy: Floats
    loss: Floats
