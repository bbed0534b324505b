"""Detectors that watch training: what they remember of each client is a row of columns over all clients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from coordinator.detectors.base import Detector
from emulator.arrays import Bools, Floats, Ints
from emulator.errors import RunError
from emulator.messages import TaskMetric
from emulator.plugins import Settings, returns
from emulator.storage.state_tree import Tree

BLOCK = 1 << 14
"""Clients that advance together: enough that calls of numpy cost little, and few enough for the caches.

NOTE: with twice as many, glibc returns the memory of every intermediate array to the system at once, unless
it is told to keep it; some calls then take twice as long.
"""


class Rows(dict[str, np.ndarray]):
    """What is remembered of k clients, by column: arrays (k,), or (entries, k), to be changed in place.

    They may be views of the columns: another array in the place of one would be lost.
    """

    def __setitem__(self, name: str, value: np.ndarray) -> None:
        if value is not self.get(name):
            raise RunError(
                f"update puts another array in the place of rows[{name!r}], which would be lost; change it "
                f"in place, as in rows[{name!r}][:] = ..."
            )

    def of(self, clients: Ints) -> Rows:
        """Those of some of the clients, by their number; copies."""
        return Rows({name: column[..., clients] for name, column in self.items()})


class Column(NamedTuple):
    """What a detector remembers of each client under a name: a number, or several, which begin as `start`."""

    start: float = 0.0
    dtype: type[np.generic] = np.float64
    entries: int | None = None


class TrainingSettings(Settings):
    """What a detector watches of the training."""

    signal: Literal["errors", "losses"] = Field(
        "errors",
        description="what it watches of each local batch, before its step: the share of samples that are "
        "predicted wrongly, or the mean loss",
        examples=["losses"],
    )


class Columns(Detector):
    """Base of detectors that watch training, a number after the other of each client.

    A subclass says which `columns` it remembers, and in `update` what a number does to them. All
    clients of a call advance together, in blocks; memory is that of the columns times the clients.

    `domain` are the least and the greatest number that it takes; others are clipped, and counted. With
    `starts_anew`, a client that was flagged is forgotten before its next number, as in river's detectors.

    State: the columns of the clients that have had a number, and the counts of clients and clipped numbers.
    """

    watches = "training"
    state_fields = ("_num_clients", "_columns", "_seen", "_clipped")

    domain: ClassVar[tuple[float, float]] = (0.0, np.inf)
    starts_anew: ClassVar[bool] = True
    settings: TrainingSettings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._num_clients = 0
        self._columns: dict[str, np.ndarray] = {}
        self._seen: Bools = np.zeros(0, dtype=bool)
        self._clipped = 0

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, Column]:
        """What is remembered of each client, by name."""

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return frozenset({"batch_errors" if self.settings.signal == "errors" else "batch_losses"})

    @property
    def clipped(self) -> int:
        return self._clipped

    @property
    def bytes_per_client(self) -> int:
        return sum(
            np.dtype(column.dtype).itemsize * (column.entries or 1) for column in self.columns.values()
        )

    def open(self, num_clients: int) -> None:
        self._num_clients = num_clients
        flagged = {"flagged": Column(False, np.bool_)} if self.starts_anew else {}
        for name, column in {**self.columns, **flagged}.items():
            shape = num_clients if column.entries is None else (column.entries, num_clients)
            self._columns[name] = np.full(shape, column.start, dtype=column.dtype)
        self._seen = np.zeros(num_clients, dtype=bool)

    def state(self) -> dict[str, Tree]:
        """The state, in which columns have the clients that were seen, by ascending id."""
        seen = np.flatnonzero(self._seen)
        columns = {name: column[..., seen] for name, column in self._columns.items()}
        return {**super().state(), "_columns": columns, "_seen": seen}

    def restore(self, state: Mapping[str, Tree]) -> None:
        self.open(state["_num_clients"])
        seen = state["_seen"]
        self._seen[seen] = True
        for name, rows in state["_columns"].items():
            if rows.ndim > 1:
                self._widen(name, len(rows))
            self._columns[name][..., seen] = rows
        self._clipped = state["_clipped"]

    def forget(self, clients: Ints) -> None:
        self._seen[clients] = False
        for name, column in self._columns.items():
            column[..., clients] = self.columns[name].start if name in self.columns else False

    def detect(self, clients: Ints, signal: Floats, last: Floats | None) -> Bools:
        flagged = np.zeros(len(clients), dtype=bool)
        for first in range(0, len(clients), BLOCK):
            block = slice(first, first + BLOCK)
            flagged[block] = self._advance(clients[block], signal[block])
        return flagged

    def numbers(self, signal: Floats) -> Floats:
        """(k, m) the numbers that k clients go through, from their batches (k, steps); by default, all."""
        return signal

    @abstractmethod
    @returns("coordinator.checks:updated", writes=True)
    def update(self, rows: Rows, number: Floats) -> Bools:
        """Take in one number of each of k clients.

        Args:
            rows: what is remembered of them, by column, (k,) or (entries, k); to be changed in place, since
                these may be views of the columns.
            number: (k,) within the domain.

        Returns:
            (k,) whether each is flagged now.
        """

    def _widen(self, name: str, entries: int) -> None:
        """Give a column of entries at least so many, of which the new ones begin as the others did."""
        column = self._columns[name]
        if entries > len(column):
            shape, start = (entries - len(column), self._num_clients), self.columns[name].start
            self._columns[name] = np.concatenate([column, np.full(shape, start, dtype=column.dtype)])

    def _advance(self, clients: Ints, signal: Floats) -> Bools:
        """(k,) whether each of `clients` (k,) is flagged at any of its numbers."""
        numbers = self.numbers(signal)
        counts: Ints | None = None
        fewest = most = numbers.shape[1]
        lowest, highest = numbers.min(initial=np.inf), numbers.max(initial=-np.inf)
        if not (self.domain[0] <= lowest and highest <= self.domain[1]):  # nor if one is NaN
            numbers = self._within_domain(numbers)
        if np.isnan(lowest):
            counts = numbers.shape[1] - np.isnan(numbers).sum(axis=1)
            fewest, most = int(counts.min()), int(counts.max())
        ids = _slice_of(clients)
        rows = Rows({name: column[..., ids] for name, column in self._columns.items()})
        flagged = np.zeros(len(clients), dtype=bool)
        for step, number in enumerate(np.ascontiguousarray(numbers.T[:most])):
            if counts is None or step < fewest:
                flagged |= self._take_in(rows, number)
                continue
            some = np.flatnonzero(counts > step)
            of_some = rows.of(some)
            flagged[some] |= self._take_in(of_some, number[some])
            for name, column in of_some.items():
                rows[name][..., some] = column
        if not isinstance(ids, slice):  # else the rows are views
            for name, column in rows.items():
                self._columns[name][..., ids] = column
        self._seen[ids] |= most > 0 if counts is None else counts > 0
        return flagged

    def _take_in(self, rows: Rows, number: Floats) -> Bools:
        if not self.starts_anew:
            return self.update(rows, number)
        again = np.flatnonzero(rows["flagged"])
        if len(again) > 0:
            for name, column in self.columns.items():
                rows[name][..., again] = column.start
        found = self.update(rows, number)
        rows["flagged"][:] = found
        return found

    def _within_domain(self, numbers: Floats) -> Floats:
        least, most = self.domain
        outside = int(np.count_nonzero((numbers < least) | (numbers > most)))
        if outside == 0:
            return numbers
        self._clipped += outside
        return np.clip(numbers, least, most)


def _slice_of(clients: Ints) -> Ints | slice:
    """`clients` (k,) as a slice if they are consecutive: that of a column is a view, and fast to take."""
    first, last = int(clients[0]), int(clients[-1])
    consecutive = last - first == len(clients) - 1 and bool((clients[1:] > clients[:-1]).all())
    return slice(first, last + 1) if consecutive else clients


def running_mean(rows: Rows, count: str, mean: str, number: Floats) -> None:
    """Take one number of each of k clients into the columns of their count and their mean, in place."""
    rows[count] += 1
    change = number - rows[mean]
    change *= 1.0 / rows[count]
    rows[mean] += change
