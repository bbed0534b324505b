"""Label shares over time of single clients, and how far each client is from its own start.

As in `label_shift`, a cell is a client in a window, and counts as observed with at least `min_samples`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.errors import InputError
from traces.inspection.label_shift import observed_cells
from traces.inspection.observations import Observations
from traces.inspection.presence import samples_of_clients

MOST_NAMED = 10
"""Most clients that a message names."""


class ClientShares(NamedTuple):
    """The label shares of one client in its observed windows.

    Attributes:
        client: the client.
        windows: (n,) its observed windows, ascending.
        shares: (n, num_labels) the shares of its labels in each of them, which add up to 1.
    """

    client: int
    windows: Ints
    shares: Floats


def shares_over_time(observations: Observations, client: int, min_samples: int) -> ClientShares:
    """The label shares of a client in each of its observed windows.

    Client 0 has twice label 0 in window 1, and both labels in window 3:

    >>> from traces.inspection.observations import counted
    >>> rows = np.array([[0, 1, 0], [0, 1, 0], [0, 3, 0], [0, 3, 1]])  # client, window, label
    >>> shares_over_time(counted(*rows.T, shape=(1, 4, 2)), client=0, min_samples=1)
    ClientShares(client=0, windows=array([1, 3]), shares=array([[1. , 0. ],
           [0.5, 0.5]]))
    """
    cells = observed_cells(of_clients(observations, np.array([client])), min_samples)
    shares = np.zeros((len(cells.client), observations.num_labels))
    shares[cells.cell_of, cells.label] = cells.share
    return ClientShares(client, cells.window, shares)


def distance_from_start(observations: Observations, clients: Ints, min_samples: int) -> Floats:
    """How far clients are from their first observed window, in every window.

    Args:
        observations: the counts of labels.
        clients: some clients, ascending, of shape (n,).
        min_samples: observations that a cell needs, at least 1.

    Returns:
        The L1 distance of label shares, 0 to 2, of shape (n, num_windows); NaN for a cell that is not
        observed.

    >>> from traces.inspection.observations import counted
    >>> rows = np.array([[0, 1, 0], [0, 1, 0], [0, 3, 0], [0, 3, 1]])  # client, window, label
    >>> distance_from_start(counted(*rows.T, shape=(2, 4, 2)), np.array([0, 1]), min_samples=1)
    array([[nan,  0., nan,  1.],
           [nan, nan, nan, nan]])
    """
    cells = observed_cells(of_clients(observations, clients), min_samples)
    labels, size = observations.num_labels, len(cells.client)
    distances = np.full((len(clients), observations.num_windows), np.nan)
    if size == 0:
        return distances
    is_first = np.concatenate(([True], cells.client[1:] != cells.client[:-1]))
    of_start = is_first[cells.cell_of]
    # Rows are in order of client and label, as each client has one first cell.
    keys = cells.client[cells.cell_of] * labels + cells.label
    start_keys, start_shares = keys[of_start], cells.share[of_start]
    place = np.minimum(np.searchsorted(start_keys, keys), len(start_keys) - 1)
    start = np.where(start_keys[place] == keys, start_shares[place], 0.0)
    # Labels that a cell lacks count with their share of the start. All of these add up to 1, and those of
    # the cell's own labels are subtracted.
    of_own = np.abs(cells.share - start) - start
    distance = np.maximum(1 + np.bincount(cells.cell_of, weights=of_own, minlength=size), 0.0)
    distance[is_first] = 0.0
    distances[np.searchsorted(clients, cells.client), cells.window] = distance
    return distances


def of_clients(observations: Observations, clients: Ints) -> Observations:
    """The counts of `clients` (n,), ascending, under their own numbers; the others have none."""
    first, last = (np.searchsorted(observations.client, clients, side=side) for side in ("left", "right"))
    sizes = last - first
    rows = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    columns = ("client", "window", "label", "count")
    return replace(observations, **{name: getattr(observations, name)[rows] for name in columns})


def of_different_size(observations: Observations, most: int, min_samples: int) -> list[int]:
    """At most `most` clients with an observed window, from the largest to the smallest, evenly spaced.

    The size of a client is the number of its samples; equal ones go by number.
    """
    seen = np.unique(observed_cells(observations, min_samples).client)
    size = samples_of_clients(observations)[seen]
    in_order = seen[np.lexsort((seen, -size))]
    places = np.unique(np.linspace(0, len(in_order) - 1, min(most, len(in_order))).round().astype(np.int64))
    return [int(client) for client in in_order[places]]


def chosen_clients(observations: Observations, names: Sequence[str]) -> list[int]:
    """The clients that a user named, by their names, or by their numbers if they have no names.

    Raises:
        InputError: there is no such client.
    """
    known = observations.client_names or tuple(map(str, range(observations.num_clients)))
    place = {name: client for client, name in enumerate(known)}
    for name in names:
        if name not in place:
            shown = ", ".join(known[:MOST_NAMED]) + (", ..." if len(known) > MOST_NAMED else "")
            raise InputError(f"--clients: there is no client {name!r}; there are {len(known)}: {shown}")
    return [place[name] for name in dict.fromkeys(names)]
