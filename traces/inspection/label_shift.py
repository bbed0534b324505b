"""How far labels shift: L1 distances between label shares over time, and between clients.

A cell is a client in a window. It counts as observed if it has at least `min_samples` observations, and its
label shares are then those of these observations; all other cells are left out of every figure. The L1
distance of two vectors of shares is the sum of absolute differences, from 0 to 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools, Floats, Ints
from traces.inspection.observations import Observations
from traces.tables.base import CHUNK_ROWS


@dataclass(frozen=True)
class LabelShift:
    """The figures; those without a cell, a pair or a second window to compute them from are None.

    Attributes:
        min_samples: observations that a cell needs to count as observed.
        cells: the number of observed cells.
        windows: the number of windows in which some client was observed.
        pairs: the number of pairs of a client's consecutive observed windows. They need not be adjacent:
            windows in which the client was not observed lie between them, if there are any.
        consecutive_mean: mean over all pairs, of all clients alike, of the L1 distance of the two.
        consecutive_p90: their 90 % quantile, interpolated linearly.
        between_clients: mean over windows (those with an observed cell, each with the same weight) of the
            mean over its observed clients of the L1 distance to their mean. That is the mean of their shares,
            in which each client has the same weight.
        first_to_last: L1 distance of the clients' means in the first and in the last window with an observed
            cell, each over the clients observed in it.
    """

    min_samples: int
    cells: int
    windows: int
    pairs: int
    consecutive_mean: float | None
    consecutive_p90: float | None
    between_clients: float | None
    first_to_last: float | None


class Cells(NamedTuple):
    """The observed cells, in order of client and window, and the label shares of each.

    `client` and `window` are of shape (cells,), the others of shape (rows,).
    """

    client: Ints
    window: Ints
    cell_of: Ints
    label: Ints
    share: Floats


def label_shift(observations: Observations, min_samples: int) -> LabelShift:
    """Compute all figures.

    Args:
        observations: the counts of labels.
        min_samples: observations that a cell needs, at least 1.

    Returns:
        The figures.

    Two clients, of which the second one swaps its labels from window 0 to window 1:

    >>> from traces.inspection.observations import counted
    >>> rows = [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1]]  # client, window, label
    >>> shift = label_shift(counted(*np.array(rows).T, shape=(2, 2, 2)), min_samples=1)
    >>> shift.pairs, shift.consecutive_mean, shift.between_clients, shift.first_to_last
    (2, 1.0, 0.5, 1.0)
    """
    cells = observed_cells(observations, min_samples)
    windows, window_of = np.unique(cells.window, return_inverse=True)
    distances = [_consecutive(some, observations.num_labels) for some in _by_clients(cells)]
    consecutive = np.concatenate(distances) if distances else np.zeros(0)
    between, means = _to_the_mean(cells, window_of, len(windows), observations.num_labels)
    return LabelShift(
        min_samples=min_samples,
        cells=len(cells.client),
        windows=len(windows),
        pairs=len(consecutive),
        consecutive_mean=float(consecutive.mean()) if len(consecutive) else None,
        consecutive_p90=float(np.quantile(consecutive, 0.9)) if len(consecutive) else None,
        between_clients=float(between.mean()) if len(between) else None,
        first_to_last=float(np.abs(means[-1] - means[0]).sum()) if len(windows) > 1 else None,
    )


def observed_windows(observations: Observations, min_samples: int) -> Ints:
    """(num_clients,) the number of windows in which each client has at least `min_samples` observations."""
    cells = observed_cells(observations, min_samples)
    return np.bincount(cells.client, minlength=observations.num_clients).astype(np.int64)


def observed_cells(observations: Observations, min_samples: int) -> Cells:
    """The cells with at least `min_samples` observations."""
    client, window = observations.client, observations.window
    is_first = np.ones(len(client), dtype=np.bool_)
    is_first[1:] = (client[1:] != client[:-1]) | (window[1:] != window[:-1])
    cell_of = np.cumsum(is_first) - 1
    size = np.bincount(cell_of, weights=observations.count)
    is_observed: Bools = size >= min_samples
    rows = is_observed[cell_of] if len(cell_of) else is_first
    first = np.flatnonzero(is_first)[is_observed]
    number = np.cumsum(is_observed) - 1
    return Cells(
        client[first],
        window[first],
        number[cell_of[rows]],
        observations.label[rows],
        observations.count[rows] / size[cell_of[rows]],
    )


def _by_clients(cells: Cells) -> Iterator[Cells]:
    """The cells in parts of some `CHUNK_ROWS` rows, each with all cells of its clients.

    NOTE: so that the memory to sort rows in is that of a part.
    """
    client = cells.client[cells.cell_of]
    begins = np.flatnonzero(np.concatenate(([True], client[1:] != client[:-1]))[: len(client)])
    first = 0
    while first < len(client):
        later = np.searchsorted(begins, first + CHUNK_ROWS)
        last = int(begins[later]) if later < len(begins) else len(client)
        begin, end = int(cells.cell_of[first]), int(cells.cell_of[last - 1]) + 1
        yield Cells(
            cells.client[begin:end],
            cells.window[begin:end],
            cells.cell_of[first:last] - begin,
            cells.label[first:last],
            cells.share[first:last],
        )
        first = last


def _consecutive(cells: Cells, num_labels: int) -> Floats:
    """(pairs,) the L1 distance of each cell and the next one of the same client."""
    is_pair = cells.client[1:] == cells.client[:-1]  # of each cell but the last, and the one after it
    follows = np.concatenate((is_pair, [False]))[: len(cells.client)]
    precedes = np.concatenate(([False], is_pair))[: len(cells.client)]
    before, after = follows[cells.cell_of], precedes[cells.cell_of]
    pair = np.concatenate((cells.cell_of[before], cells.cell_of[after] - 1))
    label = np.concatenate((cells.label[before], cells.label[after]))
    change = np.concatenate((-cells.share[before], cells.share[after]))
    keys, entry = np.unique(pair * num_labels + label, return_inverse=True)
    sizes = np.abs(np.bincount(entry, weights=change, minlength=len(keys)))
    distance = np.bincount(keys // num_labels, weights=sizes, minlength=len(cells.client))
    return distance[follows].astype(np.float64)


def _to_the_mean(cells: Cells, window_of: Ints, num_windows: int, num_labels: int) -> tuple[Floats, Floats]:
    """(windows,) the mean distance of a window's clients to their mean, and (windows, labels) these means.

    `window_of` (cells,) numbers the `num_windows` windows with an observed cell.
    """
    clients = np.bincount(window_of, minlength=num_windows)
    entry = window_of[cells.cell_of] * num_labels + cells.label
    total = np.bincount(entry, weights=cells.share, minlength=num_windows * num_labels)
    means = total.reshape(num_windows, num_labels) / clients[:, None]
    mean = means.ravel()[entry]
    # A client is as far from the mean in a label that it lacks as the mean's share of that label. All shares
    # of the mean add up to 1, and those of its own labels are subtracted.
    of_own = np.abs(cells.share - mean) - mean
    distance = 1 + np.bincount(cells.cell_of, weights=of_own, minlength=len(cells.client))
    of_windows = np.bincount(window_of, weights=np.maximum(distance, 0.0), minlength=num_windows)
    return of_windows / clients, means
