"""The table of a trace: what a row is, however the rows are stored.

The rows are sorted by (client, split, arrival), so what a client holds of one split at any step is one slice
[first, last) of the table. Row numbers name samples; where a sample is stored is the table's own affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

import numpy as np

from emulator.arrays import Ints
from traces.tables.columns import Columns

CHUNK_ROWS: Final = 2**18
"""Rows that are looked at together where many are: enough for speed, few enough for a processor's cache."""


class Table(ABC):
    """Columns `label`, `image` and `noise_start` for each row; client, split and arrival follow from the row.

    Arrivals lie at data steps `first_step` (<= 0) to `last_step`.
    """

    def __init__(self, columns: Columns, num_clients: int, first_step: int, last_step: int) -> None:
        self._columns = columns
        self.num_clients = num_clients
        self.first_step = first_step
        self.last_step = last_step

    @property
    def columns(self) -> Columns:
        """Where `label`, `image` and `noise_start` lie, in the order in which they are stored."""
        return self._columns

    def __len__(self) -> int:
        return len(self._columns["label"])

    def take(self, name: str, rows: Ints) -> np.ndarray:
        """(n,) what `label`, `image` or `noise_start` is in these rows."""
        # NOTE: `take` gathers twice as fast as an index does.
        return self._columns[name].take(self._stored(rows))

    def stored(self, name: str) -> np.ndarray:
        """(rows,) `label`, `image` or `noise_start` in the order in which it is stored."""
        return self._columns[name]

    def seal(self) -> None:
        """From here on the table is only read."""
        self._columns.seal()

    def drop_pages(self) -> None:
        """Let go of the resident memory that reading mapped columns has taken; see `Columns`."""
        self._columns.drop_pages()

    @abstractmethod
    def ranges(self, ids: Ints, split: int, since: int, until: int) -> tuple[Ints, Ints]:
        """(n,) first and (n,) last: rows [first, last) are each client's arrivals in steps [since, until)."""

    @abstractmethod
    def trained_at(self, step: int) -> Iterator[tuple[Ints, np.ndarray]]:
        """The training samples that arrive at `step`, in chunks: (k,) clients, ascending, and (k,) labels."""

    @abstractmethod
    def most_held(self, steps: int) -> int:
        """No client ever holds more training samples than that, if they are kept for so many steps."""

    @abstractmethod
    def column(self, name: str, first: int, last: int) -> np.ndarray:
        """The column of `Arrivals` of that name, for the rows of clients [first, last)."""

    @abstractmethod
    def _stored(self, rows: Ints) -> Ints:
        """(n,) where these rows are stored."""
