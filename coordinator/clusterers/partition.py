"""A partition of clients by what they report: k-means, its k chosen by the silhouette, distances in L1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.plugins import Parameters


class PartitionParameters(Parameters):
    """How clients are clustered globally (Fielding, algorithm 3)."""

    max_clusters: int = Field(10, ge=2, description="largest k that is tried; at most clients - 1")
    starts: int = Field(10, ge=1, description="k-means++ starts for each k; the best inertia wins")
    silhouette_clients: int = Field(
        2000, ge=10, description="above so many clients, silhouettes are taken on a fixed random subsample"
    )


@dataclass(frozen=True)
class Partition:
    """`members` (N,) cluster of each client, 0 .. k - 1, none empty; `centers` (k, D) their means."""

    members: Ints
    centers: Floats


def partition(reports: Floats, parameters: PartitionParameters, generator: np.random.Generator) -> Partition:
    """Cluster `reports` (N, D): for k = 2 .. max_clusters, k-means centres, every client to the L1-nearest
    one, and the k of the largest mean L1 silhouette. Identical reports are one cluster.
    """
    from scipy.spatial.distance import cdist
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score
    from threadpoolctl import threadpool_limits

    distinct = len(np.unique(reports, axis=0))
    if distinct == 1:
        return _with_means(reports, np.zeros(len(reports), dtype=np.int64))
    if distinct == 2 or len(reports) == 2:
        return _with_means(reports, np.unique(reports, axis=0, return_inverse=True)[1].astype(np.int64))

    sample = np.arange(len(reports))
    if len(reports) > parameters.silhouette_clients:
        sample = np.sort(generator.permutation(len(reports))[: parameters.silhouette_clients])
    distances = cdist(reports[sample], reports[sample], "cityblock")
    best_score, best = -np.inf, np.zeros(len(reports), dtype=np.int64)
    for k in range(2, min(parameters.max_clusters, distinct, len(reports) - 1) + 1):
        seed = int(generator.integers(2**31))
        # NOTE: one thread: scikit-learn's threads change the order of sums, and so the last digits.
        with threadpool_limits(1):
            centers = KMeans(k, n_init=parameters.starts, random_state=seed).fit(reports).cluster_centers_
        members = nearest(reports, centers)
        if len(np.unique(members[sample])) < 2 or len(np.unique(members[sample])) == len(sample):
            continue
        score = float(silhouette_score(distances, members[sample], metric="precomputed"))
        if score > best_score:
            best_score, best = score, members
    return _with_means(reports, best)


def nearest(reports: Floats, centers: Floats) -> Ints:
    """(N,) the L1-nearest centre of each report; ties go to the lowest row."""
    from scipy.spatial.distance import cdist

    members: Ints = cdist(reports, centers, "cityblock").argmin(axis=1).astype(np.int64)
    return members


def means(reports: Floats, members: Ints, empty: Floats) -> Floats:
    """(k, D) mean report of each cluster's members; a cluster without any keeps its row of `empty` (k, D)."""
    sums = np.zeros_like(empty)
    np.add.at(sums, members, reports)
    sizes = np.bincount(members, minlength=len(empty))
    return np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], empty)


def _with_means(reports: Floats, members: Ints) -> Partition:
    """The partition without empty clusters, numbered in order of their lowest client."""
    present, first = np.unique(members, return_index=True)
    rank = np.empty(len(present), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(present))
    members = rank[np.searchsorted(present, members)]
    return Partition(members, means(reports, members, np.zeros((len(present), reports.shape[1]))))
