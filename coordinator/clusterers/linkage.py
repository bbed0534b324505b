"""The merge of FedDrift as pure functions: which models are alike enough to become one, and how they mix.

Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". k models, each with samples of
its own.
"""

from __future__ import annotations

import numpy as np

from emulator.arrays import Floats, Ints

UNKNOWN = 2.0
"""The distance of two models that could not be compared: more than two accuracies can differ."""

DECIMALS = 12


def difference(higher: Floats, lower: Floats) -> Floats:
    """`higher - lower` of two accuracies, rounded so that 0.8 - 0.7 is not more than 0.1."""
    rounded: Floats = np.round(higher - lower, DECIMALS)
    return rounded


def pooled(claimed: Floats, num_claimed: Ints, newest: Floats, num_newest: Ints) -> Floats:
    """(k, k) accuracy of each model (axis 0) on all samples of each (axis 1): the claimed and the newest.

    `claimed` (k, k) is the accuracy on the `num_claimed` (k,) samples claimed, or on a draw of them; NaN
    where nobody told, and then the newest count alone. `newest` (k, k) is how many of the `num_newest` (k,)
    newest samples each gets right. NaN where nothing is known at all.
    """
    told = ~np.isnan(claimed)
    correct = np.where(told, claimed, 0.0) * num_claimed + newest
    counts = np.where(told, num_claimed, 0) + num_newest
    return np.divide(correct, counts, out=np.full_like(correct, np.nan), where=counts > 0)


def distances(accuracy: Floats) -> Floats:
    """(k, k) D[i, j] = max(A[i, i] - A[i, j], A[j, j] - A[j, i], 0), symmetric, 0 on the diagonal.

    How much worse a model does on the samples of another than on its own. `accuracy` (k, k): A[i, j] is
    that of model i on samples of model j; NaN where nothing is known, which makes the two UNKNOWN.
    """
    loss = difference(np.diagonal(accuracy)[:, None], accuracy)
    worse = np.maximum(np.maximum(loss, loss.T), 0.0)  # NaN stays NaN
    worse[np.isnan(worse)] = UNKNOWN
    np.fill_diagonal(worse, 0.0)
    return worse


def linked(distance: Floats, delta: float) -> list[Ints]:
    """The groups of complete linkage over `distance` (k, k), cut at `delta`: within one, no two models are
    further apart. Each ascending, in order of their lowest model; models that stay alone are groups too.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(distance) < 2:
        return [np.array([model], dtype=np.int64) for model in range(len(distance))]
    group = fcluster(linkage(squareform(distance), "complete"), delta, criterion="distance")
    _, lowest = np.unique(group, return_index=True)
    return [np.flatnonzero(group == group[model]) for model in np.sort(lowest)]


def merge_weights(samples: Ints) -> Floats:
    """(k,) what each merged model weighs: its share of all `samples` (k,), of which there must be some.

    The same as merging one after the other, h <- (n_a h_a + n_b h_b) / (n_a + n_b).
    """
    weights: Floats = samples / samples.sum()
    return weights
