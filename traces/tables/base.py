"""Base class of a trace's table: the meaning of a row, however rows are stored.

Rows are sorted by (client, split, arrival), so the samples of one split that a client holds at any step are
one slice [first, last) of the table. Samples are identified by row numbers; the storage order is private to
the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from emulator.arrays import Ints
from traces.arrivals import DTYPES, SPLITS, Arrivals
from traces.tables.columns import Columns

TRAIN = SPLITS.index("train")

NEVER: Final = 2**31 - 1
"""A data step after every other."""

CHUNK_ROWS: Final = 2**18
"""Rows per chunk where many are processed: enough for speed, few enough for a processor's cache."""


class News(NamedTuple):
    """Training samples that clients hold no longer, or hold since: (k,) clients and (k,) labels.

    `sign` is 1 for those that they hold now and did not, -1 for those that they held and do not, and 0 for
    those that came and went in between.
    """

    client: Ints
    label: np.ndarray
    sign: int


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

    @property
    def num_samples(self) -> int:
        """The number of samples; a row that is sent anew has none of its own."""
        return len(self)

    def take(self, name: str, rows: Ints) -> np.ndarray:
        """(n,) the values of `label`, `image` or `noise_start` in these rows."""
        # NOTE: `take` gathers twice as fast as indexing.
        return self._columns[name].take(self._stored(rows))

    def stored(self, name: str) -> np.ndarray:
        """(rows,) `label`, `image` or `noise_start` in storage order; ValueError for flipped labels."""
        return self._columns[name]

    def feature_changes(self, rows: Ints) -> tuple[Ints, Ints] | None:
        """(n,) what is done to the features of these rows, and (n,) a random number of the sample of each.

        0 is nothing; see `traces.changes.features`. The random numbers are in [0, 2^32). None: no feature
        changes.
        """
        return None

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
    def expires(self) -> bool:
        """Whether rows carry the data step from which on they are held no longer."""
        return False

    def expiry(self, rows: Ints) -> Ints:
        """(n,) the data steps from which on these rows are held no longer, if the table `expires`.

        `NEVER` if they are held to the end. ValueError if the table does not expire: rows are then held for
        as many steps as its user says.
        """
        raise ValueError("rows of this table carry no expiry")

    def born(self, rows: Ints) -> Ints:
        """(n,) the data steps at which the samples of these rows arrived first: before a row sent anew."""
        return self.arrival(rows)

    def digested(self) -> Iterator[np.ndarray]:
        """What a digest reads beyond the columns of `Arrivals`; nothing, unless samples change."""
        return iter(())

    @property
    def replaces(self) -> bool:
        """Whether all that arrives after the start replaces what was held, as where static data change."""
        return False

    @property
    def is_even(self) -> bool:
        """Whether all clients receive equally many samples of a split at each step."""
        return False

    def held(self, ids: Ints, split: int, step: int, retain_steps: int) -> tuple[Ints, Ints]:
        """(n,) first and (n,) last: rows [first, last) are what each client holds of `split` at `step`.

        A sample is held for `retain_steps` data steps.
        """
        return self.ranges(ids, split, step - retain_steps + 1, step + 1)

    def arrived(self, ids: Ints, since: int, until: int, step: int, retain_steps: int) -> tuple[Ints, Ints]:
        """(n,) first and (n,) last: the training rows [first, last) that arrived in steps [since, until).

        Only those that the client holds at `step`, each for `retain_steps` data steps.
        """
        return self.ranges(ids, TRAIN, max(since, step - retain_steps + 1), min(until, step + 1))

    def news(self, before: int | None, step: int, retain_steps: int) -> Iterator[News]:
        """How what clients hold for training differs between two data steps, in chunks.

        Args:
            before: the earlier step; None: nobody held anything.
            step: the later step.
            retain_steps: data steps for which a sample is held.
        """
        # Held before: (before - retain, before]; held now: (step - retain, step]. If whole windows are
        # skipped, samples that arrived and expired in between are held at neither step.
        old = step - retain_steps if before is None else before
        spans = [(max(old, step - retain_steps), step, 1)]
        if before is not None:
            spans = [
                (old - retain_steps, min(old, step - retain_steps), -1),
                (old, step - retain_steps, 0),
                *spans,
            ]
        for after, until, sign in spans:
            for arriving in range(max(after + 1, self.first_step), min(until, self.last_step) + 1):
                for client, label in self.trained_at(arriving):
                    yield News(client, label, sign)

    def news_of(self, clients: Ints, first: Ints, last: Ints, sign: int) -> Iterator[News]:
        """The samples of `clients` (n,) in the ranges of rows [first, last), (n,), in chunks."""
        some = last > first
        clients, first, last = clients[some], first[some], last[some]
        for chunk in chunks_of_ranges(first, last):
            rows = rows_of_ranges(first[chunk], last[chunk])
            yield News(np.repeat(clients[chunk], (last - first)[chunk]), self.take("label", rows), sign)

    @abstractmethod
    def ranges(self, ids: Ints, split: int, since: int | Ints, until: int) -> tuple[Ints, Ints]:
        """(n,) first and (n,) last: rows [first, last) of each client arrived in steps [since, until).

        They are rows of `split`, an index into SPLITS. `since` is one step for all, or one for each of `ids`.
        The ranges are empty unless `since` < `until`.
        """

    def training_rows(self, ids: Ints) -> tuple[Ints, Ints]:
        """(k,) first and (k,) last: ranges [first, last) of all training rows of the clients `ids`."""
        return self.ranges(ids, TRAIN, self.first_step, self.last_step + 1)

    @abstractmethod
    def arrival(self, rows: Ints) -> Ints:
        """(n,) the data steps at which these rows arrive."""

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


def rows_of_ranges(first: Ints, last: Ints) -> Ints:
    """The rows of all ranges [first, last), arrays of shape (n,), one range after the other.

    >>> rows_of_ranges(np.array([5, 0]), np.array([7, 1])).tolist()
    [5, 6, 0]
    """
    sizes = last - first
    rows: Ints = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    return rows


def chunks_of_ranges(first: Ints, last: Ints) -> Iterator[slice]:
    """Consecutive ranges [first, last) that together have about CHUNK_ROWS rows."""
    ends = np.cumsum(last - first)
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + CHUNK_ROWS, side="right")))
        yield slice(start, stop)
        start = stop
