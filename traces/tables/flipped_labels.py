"""The table of a trace in which some clients' training labels are flipped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emulator.arrays import Bools, Ints
from traces.arrivals import SPLITS
from traces.tables.base import News, Table


class FlippedLabels(Table):
    """`table`, but some clients' training samples have label `num_labels` - 1 - y instead of y.

    `clients` are ascending. Test samples are unchanged. The storage is that of `table`; labels are flipped
    when they are read.
    """

    def __init__(self, table: Table, clients: Ints, num_labels: int) -> None:
        super().__init__(table.columns, table.num_clients, table.first_step, table.last_step)
        self.clients = clients
        self.table = table
        self._top = num_labels - 1
        self._flips = np.zeros(table.num_clients, dtype=np.bool_)
        self._flips[clients] = True
        # All training rows of a client are a few ranges; sorted, a row's range is found by its start.
        first, last = table.training_rows(clients)
        order = np.argsort(first)
        self._first, self._last = first[order], last[order]

    def __len__(self) -> int:
        return len(self.table)

    def take(self, name: str, rows: Ints) -> np.ndarray:
        values = self.table.take(name, rows)
        return self._flipped(values, self._is_flipped(rows)) if name == "label" else values

    def stored(self, name: str) -> np.ndarray:
        if name == "label":
            raise ValueError("labels are stored as they were before they were flipped; take them row by row")
        return self.table.stored(name)

    def feature_changes(self, rows: Ints) -> tuple[Ints, Ints] | None:
        return self.table.feature_changes(rows)

    def digested(self) -> Iterator[np.ndarray]:
        return self.table.digested()

    @property
    def num_samples(self) -> int:
        return self.table.num_samples

    @property
    def replaces(self) -> bool:
        return self.table.replaces

    @property
    def is_even(self) -> bool:
        return self.table.is_even

    def ranges(self, ids: Ints, split: int, since: int | Ints, until: int) -> tuple[Ints, Ints]:
        return self.table.ranges(ids, split, since, until)

    def held(self, ids: Ints, split: int, step: int, retain_steps: int) -> tuple[Ints, Ints]:
        return self.table.held(ids, split, step, retain_steps)

    def arrived(self, ids: Ints, since: int, until: int, step: int, retain_steps: int) -> tuple[Ints, Ints]:
        return self.table.arrived(ids, since, until, step, retain_steps)

    def arrival(self, rows: Ints) -> Ints:
        return self.table.arrival(rows)

    @property
    def expires(self) -> bool:
        return self.table.expires

    def expiry(self, rows: Ints) -> Ints:
        return self.table.expiry(rows)

    def born(self, rows: Ints) -> Ints:
        return self.table.born(rows)

    def training_rows(self, ids: Ints) -> tuple[Ints, Ints]:
        return self.table.training_rows(ids)

    def news(self, before: int | None, step: int, retain_steps: int) -> Iterator[News]:
        for client, label, sign in self.table.news(before, step, retain_steps):
            yield News(client, self._flipped(label, self._flips[client]), sign)

    def trained_at(self, step: int) -> Iterator[tuple[Ints, np.ndarray]]:
        for client, label in self.table.trained_at(step):
            yield client, self._flipped(label, self._flips[client])

    def most_held(self, steps: int) -> int:
        return self.table.most_held(steps)

    def column(self, name: str, first: int, last: int) -> np.ndarray:
        values = self.table.column(name, first, last)
        if name != "label":
            return values
        client = self.table.column("client", first, last)
        is_train = self.table.column("split", first, last) == SPLITS.index("train")
        return self._flipped(values, self._flips[client] & is_train)

    def _flipped(self, labels: np.ndarray, flipped: Bools) -> np.ndarray:
        turned = np.where(flipped, self._top - labels, labels)
        return turned.astype(labels.dtype, copy=False)

    def _is_flipped(self, rows: Ints) -> Bools:
        if len(self._first) == 0:
            return np.zeros(len(rows), dtype=np.bool_)
        index = np.searchsorted(self._first, rows, side="right") - 1
        flipped: Bools = (index >= 0) & (rows < self._last[index])
        return flipped

    def _stored(self, rows: Ints) -> Ints:
        return self.table._stored(rows)
