"""How many samples arrive, and when clients join and leave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from emulator.arrays import Floats, Ints
from traces.inspection.observations import Observations


class Presence(NamedTuple):
    """When each client receives samples, arrays of shape (num_clients,).

    `first` and `last` are windows, -1 for a client that never receives any; `gaps` is the number of windows
    between them in which it receives none.
    """

    first: Ints
    last: Ints
    gaps: Ints


class Arrivals(NamedTuple):
    """The arrivals of each window, arrays of shape (num_windows,).

    `samples` arrive in the window, for `clients` of them; for `joining` clients they are the first that they
    ever receive, for `leaving` ones the last.
    """

    samples: Floats
    clients: Ints
    joining: Ints
    leaving: Ints


def presence(observations: Observations) -> Presence:
    """The first window, the last window and the gaps of each client.

    Client 0 receives samples in windows 1 and 3, client 1 never:

    >>> from traces.inspection.observations import counted
    >>> rows = counted(np.array([0, 0]), np.array([1, 3]), np.array([0, 0]), shape=(2, 5, 1))
    >>> [column.tolist() for column in presence(rows)]
    [[1, -1], [3, -1], [1, 0]]
    """
    client, window = _cells(observations)
    ids, start, received = np.unique(client, return_index=True, return_counts=True)
    first, last, gaps = (np.full(observations.num_clients, fill) for fill in (-1, -1, 0))
    first[ids] = window[start]  # the cells of a client are in order of windows
    last[ids] = window[start + received - 1]
    gaps[ids] = last[ids] - first[ids] + 1 - received
    return Presence(first, last, gaps)


def arrivals(observations: Observations) -> Arrivals:
    """The samples and clients of each window."""
    _, window = _cells(observations)
    when, windows = presence(observations), observations.num_windows
    return Arrivals(
        np.bincount(observations.window, weights=observations.count, minlength=windows).astype(np.float64),
        np.bincount(window, minlength=windows),
        np.bincount(when.first[when.first >= 0], minlength=windows),
        np.bincount(when.last[when.last >= 0], minlength=windows),
    )


def samples_of_clients(observations: Observations) -> Floats:
    """(num_clients,) the samples that each client receives in all windows together."""
    clients = observations.num_clients
    totals = np.bincount(observations.client, weights=observations.count, minlength=clients)
    return totals.astype(np.float64)


def samples_of_labels(observations: Observations) -> Floats:
    """(num_labels,) the samples of each label, of all clients and windows together."""
    labels = observations.num_labels
    totals = np.bincount(observations.label, weights=observations.count, minlength=labels)
    return totals.astype(np.float64)


def _cells(observations: Observations) -> tuple[Ints, Ints]:
    """(cells,) clients and (cells,) windows with samples, in order of client and window."""
    windows = observations.num_windows
    cells = np.unique(observations.client * windows + observations.window)
    return cells // windows, cells % windows
