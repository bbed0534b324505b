"""The table of a trace whose clients all receive the same number of samples at every step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from emulator.arrays import Ints
from traces.arrivals import DTYPES, SPLITS
from traces.images import ImageSet
from traces.tables.base import CHUNK_ROWS, Table
from traces.tables.columns import Columns


class Block(NamedTuple):
    """Writable views of the arrivals of one split at one step: shape (num_clients * size,), by client."""

    label: np.ndarray
    image: np.ndarray
    noise_start: np.ndarray


class EvenTable(Table):
    """A table with `sizes` = (training, test) samples for every client at each of `num_steps` steps.

    The client and arrival of a row follow from its number, so nothing is searched for. Rows are stored in
    order of (split, step, client): samples that arrive together are written together, in one stretch, and a
    step of a run touches only the part of a mapped table that is held at that step, however long the trace
    is.

    Table row = client * `per_client` + position, where the position is that of (split, step, number) among
    the client's rows. The row is stored at `_start[position]` + client * `_stride[position]`.
    """

    def __init__(
        self,
        images: ImageSet,
        num_clients: int,
        num_steps: int,
        sizes: tuple[int, int],
        first_step: int,
        scratch: Path | None,
    ) -> None:
        rows = num_clients * num_steps * sum(sizes)
        layout = {
            "label": (np.min_scalar_type(images.num_labels), rows),
            "image": (np.min_scalar_type(len(images.pixels)), rows),
            "noise_start": (np.dtype(np.int32), rows),
        }
        super().__init__(Columns(layout, scratch), num_clients, first_step, first_step + num_steps - 1)
        self._sizes = sizes
        self._num_steps = num_steps
        self._splits_at = (0, num_steps * sizes[0])  # the position at which each split begins
        self.per_client = num_steps * sum(sizes)
        self._stride = np.repeat(sizes, [num_steps * size for size in sizes])
        number = np.concatenate([np.tile(np.arange(size), num_steps) for size in sizes])
        self._start = (np.arange(self.per_client) - number) * num_clients + number

    def block(self, split: int, window: int) -> Block:
        """The arrivals of `split`, an index into SPLITS, at the `window`-th step, counted from 0."""
        span = self._span(split, window)
        return Block(*(self._columns[name][span] for name in Block._fields))

    @property
    def is_even(self) -> bool:
        return True

    def ranges(self, ids: Ints, split: int, since: int | Ints, until: int) -> tuple[Ints, Ints]:
        size, start = self._sizes[split], ids * self.per_client + self._splits_at[split]
        last = min(max(until - self.first_step, 0), self._num_steps)
        first = np.clip(since - self.first_step, 0, last)
        return start + first * size, start + last * size

    def arrival(self, rows: Ints) -> Ints:
        steps = np.arange(self.first_step, self.last_step + 1)
        at_position = np.concatenate([np.repeat(steps, size) for size in self._sizes])
        return at_position.take(rows % self.per_client)

    def trained_at(self, step: int) -> Iterator[tuple[Ints, np.ndarray]]:
        size, split = self._sizes[0], 0
        label = self._columns["label"][self._span(split, step - self.first_step)]
        clients = -(-CHUNK_ROWS // size)
        for first in range(0, self.num_clients, clients):
            last = min(first + clients, self.num_clients)
            yield np.repeat(np.arange(first, last), size), label[first * size : last * size]

    def most_held(self, steps: int) -> int:
        return min(steps, self._num_steps) * self._sizes[0]

    def column(self, name: str, first: int, last: int) -> np.ndarray:
        clients = last - first
        steps = range(self.first_step, self.last_step + 1)
        whole = np.empty((clients, self.per_client), dtype=DTYPES[name])
        if name == "client":
            whole[:] = np.arange(first, last)[:, None]
        elif name == "split":
            whole[:] = np.repeat(range(len(SPLITS)), [self._num_steps * size for size in self._sizes])
        elif name == "arrival":
            whole[:] = np.concatenate([np.repeat(steps, size) for size in self._sizes])
        else:
            for split, size in enumerate(self._sizes):
                for window in range(self._num_steps):
                    position = self._splits_at[split] + window * size
                    stored = self._columns[name][self._span(split, window)]
                    whole[:, position : position + size] = stored[first * size : last * size].reshape(
                        clients, size
                    )
        return whole.ravel()

    def _span(self, split: int, window: int) -> slice:
        """The storage slice of the samples of `split` that arrive at the `window`-th step, counted from 0."""
        size = self._sizes[split]
        start = (self._splits_at[split] + window * size) * self.num_clients
        return slice(start, start + size * self.num_clients)

    def _stored(self, rows: Ints) -> Ints:
        # NOTE: numpy divides by a scalar several times faster than it takes remainders.
        client = rows // self.per_client
        position = rows - client * self.per_client
        stored: Ints = self._start.take(position)
        stored += client * self._stride.take(position)
        return stored
