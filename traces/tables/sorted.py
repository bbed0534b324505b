"""The table of a trace whose samples arrive in any number, at any step: sorted rows of a source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from traces.arrivals import DTYPES, SPLITS, Arrivals
from traces.tables.base import CHUNK_ROWS, Table
from traces.tables.columns import Columns


class SortedTable(Table):
    """Arrivals in any order, sorted and stored as table rows.

    The start of each (client, split) is kept in memory, and its arrivals at a step are found by binary
    search. The clients and labels of training samples are stored a second time, in order of arrival.

    `last_step` is that of the last arrivals, unless a later one is given.
    """

    def __init__(
        self, arrivals: Arrivals, num_clients: int, scratch: Path | None, last_step: int = 0
    ) -> None:
        rows = len(arrivals.client)
        order: Ints | slice = slice(None)
        if not is_in_order(arrivals):
            order = np.lexsort((arrivals.arrival, arrivals.split, arrivals.client))
        sizes = _sizes(arrivals, num_clients)
        self._offsets = np.concatenate(([0], np.cumsum(sizes)))  # (2 * num_clients + 1,)
        self._most = sizes.reshape(num_clients, len(SPLITS))[:, 0].max(initial=0)
        self._passes = int(sizes.max(initial=0)).bit_length()
        num_trained = int(sizes[::2].sum())
        names = ("label", "image", "noise_start", "arrival")
        layout = {name: (getattr(arrivals, name).dtype, rows) for name in names}
        for name in ("client", "label"):  # of training samples, in order of arrival
            layout[f"trained {name}"] = (getattr(arrivals, name).dtype, num_trained)
        in_order = {name: getattr(arrivals, name) for name in names} if isinstance(order, slice) else {}
        columns = Columns(layout, scratch, in_order)
        if not isinstance(order, slice):
            for name in names:
                columns[name][:] = getattr(arrivals, name)[order]
        first_step = int(arrivals.arrival.min(initial=0))
        super().__init__(columns, num_clients, first_step, int(arrivals.arrival.max(initial=last_step)))
        step_at = np.zeros(self.last_step - first_step + 2, dtype=np.int64)
        for _, _, step in _trained(arrivals, order):
            step_at[1:] += np.bincount(step - first_step, minlength=len(step_at) - 1)
        self._steps_at = np.cumsum(step_at)  # of training samples in order of arrival
        free = self._steps_at.copy()
        for client, label, step in _trained(arrivals, order):
            place, free = _places(step - first_step, free)
            columns["trained client"][place] = client
            columns["trained label"][place] = label

    def ranges(self, ids: Ints, split: int, since: int | Ints, until: int) -> tuple[Ints, Ints]:
        slot = ids * len(SPLITS) + split
        return self._first_from(slot, np.minimum(since, until)), self._first_from(slot, until)

    def arrival(self, rows: Ints) -> Ints:
        return self._columns["arrival"].take(rows).astype(np.int64)

    def trained_at(self, step: int) -> Iterator[tuple[Ints, np.ndarray]]:
        start, stop = self._steps_at[step - self.first_step : step - self.first_step + 2].tolist()
        for first in range(start, stop, CHUNK_ROWS):
            chunk = slice(first, min(first + CHUNK_ROWS, stop))
            client = self._columns["trained client"][chunk].astype(np.int64)
            yield client, self._columns["trained label"][chunk]

    def most_held(self, steps: int) -> int:
        return int(self._most)

    def column(self, name: str, first: int, last: int) -> np.ndarray:
        sizes = np.diff(self._offsets[first * len(SPLITS) : last * len(SPLITS) + 1])
        clients = np.arange(first, last, dtype=DTYPES["client"])
        splits = np.arange(len(SPLITS), dtype=DTYPES["split"])
        if name == "client":
            return np.repeat(np.repeat(clients, len(SPLITS)), sizes)
        if name == "split":
            return np.repeat(np.tile(splits, len(clients)), sizes)
        rows = slice(self._offsets[first * len(SPLITS)], self._offsets[last * len(SPLITS)])
        return self._columns[name][rows].astype(DTYPES[name], copy=False)

    def _first_from(self, slot: Ints, step: int | Ints) -> Ints:
        """(n,) the first row of each (client, split) that arrives at `step` or later.

        It is the end of the (client, split) if no sample arrives then. `slot` (n,) is 2 * client + split;
        `step` is one for all, or of shape (n,).
        """
        ends = self._offsets[slot], self._offsets[slot + 1]
        return first_from(self._columns["arrival"], *ends, step, self._passes)

    def _stored(self, rows: Ints) -> Ints:
        return rows


def first_from(column: np.ndarray, low: Ints, high: Ints, least: int | Ints, passes: int) -> Ints:
    """(n,) the first row of each range [low, high) with a value of at least `least`; `high` if none has.

    `column` (rows,) ascends within each range; `least` is one for all, or (n,). `passes` is at least the
    binary logarithm of the longest range, rounded up.
    """
    for _ in range(passes):
        middle = (low + high) // 2  # once a search has ended, it may be the table's end
        below = (low < high) & (column.take(middle, mode="clip") < least)
        low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
    return low


def are_in_order(*columns: np.ndarray) -> bool:
    """Whether rows are in ascending order of `columns` (n,), the first one first, and need not be sorted.

    >>> are_in_order(np.array([0, 0, 1]), np.array([3, 4, 2])), are_in_order(np.array([4, 3]))
    (True, False)
    """
    for first in range(0, len(columns[0]) - 1, CHUNK_ROWS):
        last = min(first + CHUNK_ROWS, len(columns[0]) - 1)
        ascends = np.zeros(0, dtype=np.bool_)  # whether a row comes after the one before it, or with it
        for column in reversed(columns):
            before, after = column[first:last], column[first + 1 : last + 1]
            ascends = (before < after) | ((before == after) & ascends) if len(ascends) else before <= after
        if not ascends.all():
            return False
    return True


def is_in_order(arrivals: Arrivals) -> bool:
    """Whether rows are in the order of a table, (client, split, arrival), and need not be sorted."""
    return are_in_order(arrivals.client, arrivals.split, arrivals.arrival)


def _sizes(arrivals: Arrivals, num_clients: int) -> Ints:
    """(2 * num_clients,) the number of rows of each (client, split)."""
    sizes = np.zeros(num_clients * len(SPLITS), dtype=np.int64)
    for first in range(0, len(arrivals.client), CHUNK_ROWS):
        chunk = slice(first, first + CHUNK_ROWS)
        slot = arrivals.client[chunk].astype(np.int64) * len(SPLITS) + arrivals.split[chunk]
        sizes += np.bincount(slot, minlength=len(sizes))
    return sizes


def _trained(arrivals: Arrivals, order: Ints | slice) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The clients, labels and steps of the training samples, in the order of the table, in chunks."""
    for first in range(0, len(arrivals.client), CHUNK_ROWS):
        chunk: Ints | slice = slice(first, first + CHUNK_ROWS)
        if not isinstance(order, slice):
            chunk = order[chunk]
        is_train = arrivals.split[chunk] == SPLITS.index("train")
        yield (
            arrivals.client[chunk][is_train],
            arrivals.label[chunk][is_train],
            arrivals.arrival[chunk][is_train].astype(np.int64),
        )


def _places(step: Ints, free: Ints) -> tuple[Ints, Ints]:
    """A chunk of a counting sort: the place (n,) of each sample, and the first free place of each step.

    `step` (n,) are the steps of the samples, from 0; `free` (steps + 1,) the first free places before.
    """
    # NOTE: numpy sorts short integers in a single pass, several times faster.
    order = np.argsort(step.astype(np.min_scalar_type(len(free))), kind="stable")
    counts = np.bincount(step, minlength=len(free))
    number = np.arange(len(step)) - np.repeat(np.cumsum(counts) - counts, counts)  # within the step
    place = np.empty(len(step), dtype=np.int64)
    place[order] = free[step[order]] + number
    return place, free + counts
