"""Counts of labels by client and window, as sparse rows: what all figures on a trace are computed from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.ports import Split
from traces.arrivals import SPLITS
from traces.tables.base import CHUNK_ROWS

if TYPE_CHECKING:
    from traces.trace import Trace


@dataclass(frozen=True)
class Observations:
    """How often each label was observed of each client in each window.

    The rows are the counts above 0, sorted by client, window and label; no two rows have all three in common.
    So their number is bounded by the samples, however many clients, windows and labels there are. Make them
    with `counted`.

    Attributes:
        client: (rows,) in 0 to num_clients - 1.
        window: (rows,) in 0 to num_windows - 1.
        label: (rows,) in 0 to num_labels - 1.
        count: (rows,) above 0.
        num_clients: the number of clients, with those that were never observed.
        num_windows: the number of windows, with those in which nobody was observed.
        num_labels: the number of labels.
        first_step: the data step of window 0.
        client_names: the names of the clients, if they have any; otherwise empty.
        label_names: the names of the first labels, if they have any; otherwise empty.
    """

    client: Ints
    window: Ints
    label: Ints
    count: Floats
    num_clients: int
    num_windows: int
    num_labels: int
    first_step: int = 0
    client_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()


def counted(
    client: Ints,
    window: Ints,
    label: Ints,
    count: Floats | None = None,
    *,
    shape: tuple[int, int, int],
    first_step: int = 0,
    client_names: tuple[str, ...] = (),
    label_names: tuple[str, ...] = (),
) -> Observations:
    """Count rows in any order: equal ones are added up, and those that come to 0 are left out.

    Args:
        client: of shape (rows,).
        window: of shape (rows,), from 0.
        label: of shape (rows,).
        count: of shape (rows,), at least 0; None: every row counts once.
        shape: the numbers of clients, windows and labels; their product is below 2^63.
        first_step: see `Observations`, as for the names.
        client_names: the names of all clients, or none.
        label_names: the names of the first labels, or none.

    Returns:
        The counts.

    >>> rows = counted(np.array([1, 0, 1]), np.array([0, 2, 0]), np.array([3, 1, 3]), shape=(2, 3, 4))
    >>> rows.client.tolist(), rows.window.tolist(), rows.label.tolist(), rows.count.tolist()
    ([0, 1], [2, 0], [1, 3], [1.0, 2.0])
    """
    _, num_windows, num_labels = shape
    keys, inverse = np.unique((client * num_windows + window) * num_labels + label, return_inverse=True)
    counts = np.bincount(inverse, weights=count, minlength=len(keys)).astype(np.float64)
    keys, counts = keys[counts > 0], counts[counts > 0]
    cell = keys // num_labels
    return Observations(
        cell // num_windows,
        cell % num_windows,
        keys % num_labels,
        counts,
        *shape,
        first_step=first_step,
        client_names=client_names,
        label_names=label_names,
    )


def trace_observations(trace: Trace, split: Split) -> Observations:
    """The samples of one split of a trace; a window is a data step of arrival.

    The table is read a few clients at a time, so that memory is taken for counts only.
    """
    table = trace.table
    parts = list(_counted_keys(trace, SPLITS.index(split)))
    keys = np.concatenate([key for key, _ in parts]) if parts else np.zeros(0, dtype=np.int64)
    count = np.concatenate([number for _, number in parts]) if parts else np.zeros(0)
    windows = table.last_step - table.first_step + 1
    cell = keys // trace.num_labels
    return Observations(
        cell // windows,
        cell % windows,
        keys % trace.num_labels,
        count,
        trace.num_clients,
        windows,
        trace.num_labels,
        first_step=table.first_step,
        label_names=trace.label_names,
    )


def _counted_keys(trace: Trace, split: int) -> Iterator[tuple[Ints, Floats]]:
    """Ascending (k,) keys of the (client, window, label) of samples of `split`, and their (k,) counts."""
    table, clients = trace.table, trace.num_clients
    windows = table.last_step - table.first_step + 1
    chunk = max(1, CHUNK_ROWS * clients // max(1, len(table)))
    for first in range(0, clients, chunk):
        last = min(first + chunk, clients)
        of_split = np.flatnonzero(table.column("split", first, last) == split)
        client, window, label = (
            table.column(name, first, last)[of_split].astype(np.int64)
            for name in ("client", "arrival", "label")
        )
        keys, count = np.unique(
            (client * windows + window - table.first_step) * trace.num_labels + label, return_counts=True
        )
        table.drop_pages()
        yield keys, count.astype(np.float64)
