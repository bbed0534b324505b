"""Do the clusters agree with the true concepts? The adjusted Rand index, for traces that know theirs."""

from __future__ import annotations

import math

import numpy as np

from emulator.arrays import Ints
from experiments.results.reading.clusters_in_force import clusters_in_force
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import Columns, once


def adjusted_rand_index(one: Ints, other: Ints) -> float:
    """How far two partitions of n clients agree: 1 if they are the same, about 0 if they agree by chance.

    Of the pairs of clients, S are together in both partitions, A in the first, B in the second, and there are
    T in all: the index is (S - AB/T) / ((A + B)/2 - AB/T). It is 1 for two partitions of a single cluster, or
    of single clients, where the formula is 0/0. Source: Hubert and Arabie, Comparing partitions, Journal of
    Classification 2, 1985, equation 5.

    Args:
        one: array of shape (n,), the label of each client's cluster.
        other: array of shape (n,), the same for the other partition; labels need not match.

    Raises:
        ValueError: the shapes differ.

    >>> adjusted_rand_index(np.array([0, 0, 1, 1]), np.array([5, 5, 7, 7]))
    1.0
    >>> adjusted_rand_index(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]))
    0.0
    """
    if one.shape != other.shape:
        raise ValueError(f"partitions are of {len(one)} and {len(other)} clients; they must be of the same")
    _, rows = np.unique(one, return_inverse=True)
    _, columns = np.unique(other, return_inverse=True)
    shared, first, second = (_pairs(ids) for ids in (rows * len(other) + columns, rows, columns))
    total = math.comb(len(one), 2)
    # Exact, in whole numbers: the numerator and the denominator of the formula, both times 2 T.
    above, below = 2 * (total * shared - first * second), total * (first + second) - 2 * first * second
    return 1.0 if below == 0 else above / below


def _pairs(ids: Ints) -> int:
    """The number of pairs of clients with the same id, an array (n,)."""
    _, sizes = np.unique(ids, return_counts=True)
    return sum(math.comb(size, 2) for size in sizes.tolist())


@once
def agreement_with_concepts(run: ReportedRun) -> Columns:
    """The adjusted Rand `index` of clusters and true concepts at each evaluation.

    From the first data step on at which not all concepts are the first one: before it every client has the
    same concept and nothing can be told apart. The concept of a client is that of its newest training
    samples; clients in no cluster, such as those that hold no data, do not count. Without evaluations where
    the header of the log has no concepts, or its records no clusters.
    """
    concepts = np.array(run.header.get("concepts", np.zeros((1, 1))))[:-1]  # the last row is for tests only
    drifted = np.flatnonzero((concepts != concepts[:1, :1]).any(axis=1))
    first = drifted[0] if len(drifted) else math.inf
    found = [
        (record.closed_s, adjusted_rand_index(members[members >= 0], concepts[record.step][members >= 0]))
        for record, members in zip(run.records, clusters_in_force(run.records), strict=True)
        if record.accuracy is not None and members is not None and record.step >= first
    ]
    closed_s, index = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return {"closed_s": closed_s, "index": index}
