"""Who holds samples, and when: what a run asks of a trace before it begins, without features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from emulator.arrays import Ints
from emulator.ports import Split
from traces.arrivals import SPLITS
from traces.tables.base import Table
from traces.tables.flipped_labels import FlippedLabels
from traces.trace import growing_parts


class Holders(Protocol):
    """What is known of the clients of a trace that hold samples at each data step; a `Trace` knows all."""

    @property
    def num_clients(self) -> int:
        """The number of clients."""
        ...

    @property
    def rounds_per_step(self) -> int:
        """The number of rounds between two data steps."""
        ...

    @property
    def concepts(self) -> Ints | None:
        """The true concepts, of shape (steps + 1, num_clients); None if they are not known."""
        ...

    def anybody_holds(self, ids: Ints, splits: Sequence[Split], step: int) -> bool:
        """Find out whether some client is known to hold samples of all given splits.

        Args:
            ids: client ids of shape (n,).
            splits: the splits, at least one.
            step: the data step.

        Returns:
            Whether one of these clients is known to hold at least one sample of each split.
        """
        ...


class CertainHolders:
    """Clients that hold samples of both splits however the test samples of their rows are drawn.

    For traces in which every 1 / share-th row of each client and label is a test sample, from a random start
    on (`traces.held_out`): of any n of these rows in a row n * share are test samples, rounded up or down. So
    a client with a label of which n * share and n * (1 - share) are above 1 holds both.

    Args:
        table: the rows of the trace of one seed, of which only the splits differ from seed to seed.
        retain_steps: data steps for which a sample is held, of both splits.
        rounds_per_step: the number of rounds between two data steps.
        share: the share of test samples, in [0, 1].
    """

    concepts: Ints | None = None

    def __init__(self, table: Table, retain_steps: int, rounds_per_step: int, share: float) -> None:
        # Whose labels are flipped differs from seed to seed too.
        self._table = table.table if isinstance(table, FlippedLabels) else table
        self._retain_steps = retain_steps
        self.num_clients = table.num_clients
        self.rounds_per_step = rounds_per_step
        rarer = min(share, 1 - share)
        self._needed = np.inf if rarer == 0 else (1 + 1e-9) / rarer  # beyond rounding

    def anybody_holds(self, ids: Ints, splits: Sequence[Split], step: int) -> bool:
        """Whether one of `ids` (n,) is certain to hold samples of both splits at `step`."""
        return any(self._is_certain(some, step) for some in growing_parts(ids))

    def _is_certain(self, ids: Ints, step: int) -> bool:
        clients, labels = [], []
        for split in range(len(SPLITS)):
            first, last = self._table.ranges(ids, split, step - self._retain_steps + 1, step + 1)
            sizes = last - first
            rows = np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
            clients.append(np.repeat(np.arange(len(ids)), sizes))
            labels.append(self._table.take("label", rows).astype(np.int64))
        label = np.concatenate(labels)
        cell = np.concatenate(clients) * (label.max(initial=0) + 1) + label
        return bool(np.unique(cell, return_counts=True)[1].max(initial=0) >= self._needed)
