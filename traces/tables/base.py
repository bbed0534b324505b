"""Base class of a trace's table: the meaning of a row, however rows are stored.

Rows are sorted by (client, split, arrival), so the samples of one split that a client holds at any step are
one slice [first, last) of the table. Samples are identified by row numbers; the storage order is private to
the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

import numpy as np

from emulator.arrays import Ints
from traces.arrivals import DTYPES, Arrivals
from traces.tables.columns import Columns

CHUNK_ROWS: Final = 2**18
"""Rows per chunk where many are processed: enough for speed, few enough for a processor's cache."""


class Table(ABC):
    """The rows of a trace: `label`, `image` and `noise_start`, by client, split and data step of arrival.

    Arrivals lie at data steps `first_step` (<= 0) to `last_step`.
    """

    def __init__(self, columns: Columns, num_clients: int, first_step: int, last_step: int) -> None:
        self._columns = columns
        self.num_clients = num_clients
        self.first_step = first_step
        self.last_step = last_step

    @property
    def columns(self) -> Columns:
        """The storage of the columns: `label`, `image`, `noise_start`, and others that the table needs."""
        return self._columns

    def __len__(self) -> int:
        return len(self._columns["label"])

    def take(self, name: str, rows: Ints) -> np.ndarray:
        """(n,) the values of `label`, `image` or `noise_start` in these rows."""
        # NOTE: `take` gathers twice as fast as indexing.
        return self._columns[name].take(self._stored(rows))

    def stored(self, name: str) -> np.ndarray:
        """(rows,) `label`, `image` or `noise_start` in storage order; ValueError for flipped labels."""
        return self._columns[name]

    def seal(self) -> None:
        """Make the table read-only."""
        self._columns.seal()

    def drop_pages(self) -> None:
        """Release the resident memory that mapped columns have taken; see `Columns`."""
        self._columns.drop_pages()

    def arrivals(self) -> Arrivals:
        """All columns, in the order of the table, in memory."""
        return Arrivals(**{name: self.column(name, 0, self.num_clients) for name in DTYPES})

    @property
    def is_even(self) -> bool:
        """Whether all clients receive equally many samples of a split at each step."""
        return False

    @abstractmethod
    def ranges(self, ids: Ints, split: int, since: int | Ints, until: int) -> tuple[Ints, Ints]:
        """(n,) first and (n,) last: rows [first, last) of each client arrived in steps [since, until).

        They are rows of `split`, an index into SPLITS. `since` is one step for all, or one for each of `ids`.
        The ranges are empty unless `since` < `until`.
        """

    @abstractmethod
    def newest(self, ids: Ints, split: int, step: int) -> Ints:
        """(n,) the step of each client's last arrivals of `split` up to `step`; `step` + 1 without any."""

    @abstractmethod
    def trained_at(self, step: int) -> Iterator[tuple[Ints, np.ndarray]]:
        """The training samples that arrive at `step`, in chunks: (k,) clients, ascending, and (k,) labels."""

    @abstractmethod
    def most_held(self, steps: int) -> int:
        """Upper bound of a client's training samples at any step, if each is kept for `steps` steps."""

    @abstractmethod
    def column(self, name: str, first: int, last: int) -> np.ndarray:
        """The column of `Arrivals` of that name, for the rows of clients [first, last)."""

    @abstractmethod
    def _stored(self, rows: Ints) -> Ints:
        """(n,) the storage positions of these rows."""
