"""Groups of clients: quarters of the fleet by speed, main labels, clusters, and the accuracy in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats, Ints
from experiments.results.statistics.clients.accuracy import ClientAccuracy

QUARTERS = ("fastest quarter", "second quarter", "third quarter", "slowest quarter")

MOST_LABELS = 12
"""Most main labels that are shown by themselves; clients with another one form one group."""

NO_GROUP = -1


def quarters(cost: Floats) -> Ints:
    """The quarter, 0 to 3, of each client by its cost (n,), such as seconds per sample: 0 is the cheapest.

    Bounds are the quartiles of `cost` as `numpy.quantile` has them; a client on a bound is in the cheaper
    quarter, so that clients with the same cost are in the same quarter, and quarters may differ in size.

    >>> quarters(np.array([4.0, 1.0, 2.0, 3.0])).tolist(), quarters(np.array([2.0, 2.0])).tolist()
    ([3, 0, 1, 2], [0, 0])
    """
    return np.searchsorted(np.quantile(cost, [0.25, 0.5, 0.75]), cost, side="left").astype(np.int64)


@dataclass(frozen=True)
class GroupMeans:
    """The groups of one evaluation: arrays of shape (n_groups,)."""

    accuracy: Floats
    """The mean accuracy of the clients of each group; NaN without clients."""
    counts: Ints


def group_means(accuracy: Floats, groups: Ints, num_groups: int) -> GroupMeans:
    """The mean of `accuracy` (n,) in each of the `groups` (n,), 0 to num_groups - 1; others are left out.

    >>> found = group_means(np.array([0.5, 1.0, 0.0]), np.array([1, 1, -1]), 2)
    >>> found.accuracy.tolist(), found.counts.tolist()
    ([nan, 0.75], [0, 2])
    """
    inside = (groups >= 0) & (groups < num_groups)
    order = np.lexsort((accuracy[inside], groups[inside]))  # sums do not depend on the order of clients
    groups, accuracy = groups[inside][order], accuracy[inside][order]
    counts = np.bincount(groups, minlength=num_groups).astype(np.int64)
    sums = np.bincount(groups, weights=accuracy, minlength=num_groups)
    means = np.divide(sums, counts, out=np.full(num_groups, np.nan), where=counts > 0)
    return GroupMeans(means, counts)


def shown_labels(evaluations: Sequence[ClientAccuracy]) -> list[int]:
    """The main labels that most clients have in `evaluations`, ascending; at most `MOST_LABELS`."""
    labels = [item.labels for item in evaluations if item.labels is not None]
    if not labels:
        return []
    present, counts = np.unique(np.concatenate(labels), return_counts=True)
    present, counts = present[present >= 0], counts[present >= 0]
    return sorted(present[np.argsort(-counts, kind="stable")][:MOST_LABELS].tolist())


def label_groups(labels: Ints, shown: Sequence[int]) -> Ints:
    """The index in `shown` (ascending) of each main label; len(shown) for others, -1 without samples.

    >>> label_groups(np.array([7, 3, 5, -1]), [3, 7]).tolist()
    [1, 0, 2, -1]
    """
    known = np.asarray(shown, dtype=np.int64)
    index = np.searchsorted(known, labels)
    is_shown = (index < len(known)) & (np.append(known, -2)[index] == labels)
    return np.where(labels < 0, NO_GROUP, np.where(is_shown, index, len(known)))


def cluster_means(evaluation: ClientAccuracy) -> tuple[Ints, GroupMeans] | None:
    """(cluster labels, their groups) of one evaluation, ascending; None if clusters are not known."""
    if evaluation.clusters is None:
        return None
    present, groups = np.unique(evaluation.clusters, return_inverse=True)
    kept = present >= 0
    means = group_means(evaluation.accuracy, groups, len(present))
    return present[kept], GroupMeans(means.accuracy[kept], means.counts[kept])
