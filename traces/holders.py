"""Who holds samples, and when: what a run asks of a trace before it begins, without features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from emulator.arrays import Ints
from emulator.ports import Split
from traces.arrivals import SPLITS, TestOn
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
    def client_names(self) -> tuple[str, ...] | Ints | None:
        """The names of the clients; None if they have no other than their ids."""
        ...

    @property
    def rounds_per_step(self) -> int:
        """The number of rounds between two data steps."""
        ...

    @property
    def concepts(self) -> Ints | None:
        """The true concepts, of shape (steps + 1, num_clients); None if they are not known."""
        ...

    @property
    def test_on(self) -> TestOn:
        """Whether clients are tested on the samples that they hold, or on those that arrive next."""
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


def names_of(clients: Holders) -> Sequence[str]:
    """The names of all clients as texts: their numbers, where a trace has no names."""
    names = clients.client_names
    if isinstance(names, tuple):
        return names
    return list(map(str, range(clients.num_clients) if names is None else names.tolist()))


class CertainHolders:
    """Clients that hold samples of both splits however the test samples of their rows are drawn.

    For traces in which every 1 / share-th row of each client and label is a test sample, from a random start
    on (`traces.held_out`): of any n of these rows in a row n * share are test samples, rounded up or down. So
    a client with a label of which n * share and n * (1 - share) are above 1 holds both. With `test_on` =
    "next", n * share must be above 1 for a label's arrivals of the next step.

    Args:
        table: the rows of the trace of one seed, of which only the splits differ from seed to seed.
        retain_steps: data steps for which a sample is held, of both splits.
        rounds_per_step: the number of rounds between two data steps.
        share: the share of test samples, in [0, 1].
        test_on: "next" if clients are tested on the test samples that arrive at the next step.
        client_names: the names of the clients, as of a trace.
    """

    concepts: Ints | None = None

    def __init__(
        self,
        table: Table,
        retain_steps: int,
        rounds_per_step: int,
        share: float,
        test_on: TestOn = "present",
        client_names: tuple[str, ...] | Ints | None = None,
    ) -> None:
        # Whose labels are flipped differs from seed to seed too.
        self._table = table.table if isinstance(table, FlippedLabels) else table
        self._retain_steps = retain_steps
        self.num_clients = table.num_clients
        self.rounds_per_step = rounds_per_step
        self.test_on: TestOn = test_on
        self.client_names = client_names
        # Of so many rows of a label one is of the split, beyond rounding.
        self._needed = [np.inf if part == 0 else (1 + 1e-9) / part for part in (1 - share, share)]

    def anybody_holds(self, ids: Ints, splits: Sequence[Split], step: int) -> bool:
        """Whether one of `ids` (n,) is certain to hold samples of both splits at `step`."""
        return any(self._is_certain(some, step) for some in growing_parts(ids))

    def _is_certain(self, ids: Ints, step: int) -> bool:
        held = tested = self._most_of_a_label(ids, step - self._retain_steps + 1, step)
        if self.test_on == "next":
            tested = self._most_of_a_label(ids, step + 1, step + 1)
        of_train, of_test = self._needed
        return bool(((held >= of_train) & (tested >= of_test)).any())

    def _most_of_a_label(self, ids: Ints, first_step: int, last_step: int) -> Ints:
        """(n,) the rows of the label of which a client has most, among those that arrive in these steps."""
        clients, labels = [], []
        for split in range(len(SPLITS)):
            first, last = self._table.ranges(ids, split, first_step, last_step + 1)
            sizes = last - first
            rows = np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
            clients.append(np.repeat(np.arange(len(ids)), sizes))
            labels.append(self._table.take("label", rows).astype(np.int64))
        label = np.concatenate(labels)
        num_labels = label.max(initial=0) + 1
        cell, counts = np.unique(np.concatenate(clients) * num_labels + label, return_counts=True)
        most = np.zeros(len(ids), dtype=np.int64)
        np.maximum.at(most, cell // num_labels, counts)
        return most
