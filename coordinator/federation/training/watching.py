"""Watching the training: what detectors on the clients find in the batches of absorbed updates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coordinator.detectors import Detector
from coordinator.federation.training.trained import Trained
from emulator.arrays import Bools, Floats, Ints


def watch_training(
    detectors: Mapping[str, Detector], trained: Trained, num_clients: int
) -> tuple[Ints, dict[str, Bools]]:
    """Evaluate `detectors`, which watch training, on the batches of the updates that are absorbed.

    Clients that have ceased to hold data meanwhile, if only for a while, are not watched: they begin anew.
    Returns the ids (n,), ascending, of the clients whose training says something about the data that they
    hold now, since it was on these; and by the name of each detector (N,) which of `num_clients` clients it
    flags, also others that trained.
    """
    if not trained.stayed.all():
        trained = trained.take(np.flatnonzero(trained.stayed))
    updates = trained.updates
    clients = np.unique(updates.client[updates.num_steps > 0])
    earlier = updates.client[~trained.bound]
    flags = {}
    for name, detector in detectors.items():
        (metric,) = detector.needs
        signal = of_clients(updates.client, updates.num_steps, updates.metrics[metric])
        flags[name] = np.zeros(num_clients, dtype=bool)
        if len(clients) > 0:
            flags[name][clients] = detector.detect(clients, signal, None)
    return np.setdiff1d(clients, earlier), flags


def of_clients(client: Ints, num_steps: Ints, batches: Floats) -> Floats:
    """The batches of each client in order, a row for each of those that trained, by ascending id.

    Tasks are given as columns (t,): `client`, ascending, `num_steps`, and `batches` (t, steps) with NaN
    behind the last. A client with several tasks goes through them one after the other.

    >>> batches = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]])
    >>> of_clients(np.array([2, 5, 5]), np.array([1, 2, 1]), batches)
    array([[ 1., nan, nan],
           [ 2.,  3.,  4.]])
    """
    trained = num_steps > 0
    if not trained.all():
        client, num_steps, batches = client[trained], num_steps[trained], batches[trained]
    if (client[1:] != client[:-1]).all():
        return batches
    row = np.cumsum(np.append(0, client[1:] != client[:-1]))
    before = np.cumsum(num_steps) - num_steps  # batches of all tasks before
    first = before - before[np.searchsorted(row, row)]
    wide = np.full((row[-1] + 1, int((first + num_steps).max())), np.nan)
    takes: Bools = np.arange(batches.shape[1]) < num_steps[:, None]
    task, step = takes.nonzero()
    wide[row[task], first[task] + step] = batches[takes]
    return wide
