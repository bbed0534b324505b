"""The merge step of FedDrift as pure functions: which models are similar enough to merge, and their weights.

Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". There are k models, each with its
own samples.
"""

from __future__ import annotations

import numpy as np

from emulator.arrays import Floats, Ints

UNKNOWN = 2.0
"""The distance of two models that could not be compared: larger than any difference of accuracies."""

DECIMALS = 12


def difference(higher: Floats, lower: Floats) -> Floats:
    """`higher - lower` of two accuracies, rounded so that 0.8 - 0.7 does not exceed 0.1."""
    rounded: Floats = np.round(higher - lower, DECIMALS)
    return rounded


def pooled(claimed: Floats, num_claimed: Ints, newest: Floats, num_newest: Ints) -> Floats:
    """(k, k) accuracy of each model (axis 0) on all samples of each (axis 1): the claimed and the newest.

    `claimed` (k, k) is the accuracy on the `num_claimed` (k,) claimed samples, or on a draw of them. Where it
    is NaN (no client responded), only the newest samples count. `newest` (k, k) is how many of the
    `num_newest` (k,) newest samples each model gets right. NaN where there is neither.
    """
    known = ~np.isnan(claimed)
    correct = np.where(known, claimed, 0.0) * num_claimed + newest
    counts = np.where(known, num_claimed, 0) + num_newest
    return np.divide(correct, counts, out=np.full_like(correct, np.nan), where=counts > 0)


def distances(accuracy: Floats) -> Floats:
    """(k, k) D[i, j] = max(A[i, i] - A[i, j], A[j, j] - A[j, i], 0), symmetric, 0 on the diagonal.

    It measures how much worse a model does on another model's samples than on its own. `accuracy` (k, k):
    A[i, j] is that of model i on the samples of model j. If an entry is NaN (unknown), the distance of its
    pair is UNKNOWN.

    >>> distances(np.array([[0.9, 0.6], [0.7, 0.8]])).round(2).tolist()
    [[0.0, 0.3], [0.3, 0.0]]
    """
    loss = difference(np.diagonal(accuracy)[:, None], accuracy)
    worse = np.maximum(np.maximum(loss, loss.T), 0.0)  # NaN stays NaN
    worse[np.isnan(worse)] = UNKNOWN
    np.fill_diagonal(worse, 0.0)
    return worse


def linked(distance: Floats, delta: float) -> list[Ints]:
    """The groups of models to merge: complete linkage over `distance` (k, k), cut at `delta`.

    Within a group no two models are further apart than `delta`. Each group is ascending, and groups are in
    order of their lowest model; a model that stays alone is a group too.

    >>> linked(np.array([[0.0, 0.05, 0.3], [0.05, 0.0, 0.2], [0.3, 0.2, 0.0]]), 0.1)
    [array([0, 1]), array([2])]
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(distance) < 2:
        return [np.array([model], dtype=np.int64) for model in range(len(distance))]
    group = fcluster(linkage(squareform(distance), "complete"), delta, criterion="distance")
    _, lowest = np.unique(group, return_index=True)
    return [np.flatnonzero(group == group[model]) for model in np.sort(lowest)]


def merge_weights(samples: Ints) -> Floats:
    """(k,) the weight of each merged model: its share of all `samples` (k,), whose sum must be above 0.

    The same as merging one after the other, h <- (n_a h_a + n_b h_b) / (n_a + n_b).

    >>> merge_weights(np.array([100, 300]))
    array([0.25, 0.75])
    """
    weights: Floats = samples / samples.sum()
    return weights
