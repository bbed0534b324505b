"""Partition of clients by their reports: k-means with k chosen by the silhouette, and L1 distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from coordinator.assignment import Fit
from coordinator.clusterers.silhouette import silhouettes
from emulator.arrays import Floats, Ints
from emulator.deprecated import keep_old_names, renamed_arguments
from emulator.numbers import MOST, Count, Number, TwoOrMore
from emulator.plugins import Settings

BLOCK = 16_384
"""Reports per block: bounds memory, and does not affect the result."""

TIE = 1e-9
"""Silhouettes that differ by less than this count as equal, so that rounding does not decide on k."""


class PartitionSettings(Settings):
    """How clients are clustered globally (Fielding, algorithm 3)."""

    min_clusters: Count = Field(
        1,
        description="smallest k that is tried, from 2 on; with fewer distinct reports, each distinct report "
        "is a cluster. 1: a single cluster if the silhouettes cannot be computed",
    )
    max_clusters: TwoOrMore = Field(10, description="largest k that is tried; at most clients - 1")
    starts: Annotated[int, Number(ge=1, le=1000)] = Field(
        10, description="k-means++ starts for each k; the best inertia wins"
    )
    kmeans_clients: Annotated[int, Number(ge=10, le=MOST)] = Field(
        20_000,
        description="with more clients than this, centres are fitted to a random subsample of this size, and "
        "then every client joins the nearest centre; the log states the size",
    )
    silhouette_clients: Annotated[int, Number(ge=10, le=MOST)] = Field(
        20_000,
        description="with more clients than this, silhouettes are those of a random subsample of this size; "
        "the log states the size",
    )

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        if self.min_clusters > self.max_clusters:
            raise ValueError(
                f"min_clusters = {self.min_clusters} must not be above max_clusters = {self.max_clusters}"
            )
        return self


@dataclass(frozen=True)
class Partition:
    """A partition of N clients into k clusters, none of them empty.

    `members` (N,) is the cluster of each client, 0 .. k - 1; `centers` (k, D) are the mean reports of the
    clusters.
    """

    members: Ints
    centers: Floats
    fitted: Fit


@renamed_arguments(parameters="settings")
def partition(reports: Floats, settings: PartitionSettings, generator: np.random.Generator) -> Partition:
    """Cluster `reports` (N, D) into the number of clusters with the largest mean L1 silhouette.

    For each k from max(2, min_clusters) to max_clusters, k-means fits centres and every client joins its
    L1-nearest centre. The k with the largest mean L1 silhouette wins, the smallest k among equals. Identical
    reports form one cluster. If there are no more distinct reports than the smallest k, each distinct report
    is a cluster.

    >>> reports = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> partition(reports, PartitionSettings(), np.random.default_rng(0)).members.tolist()
    [0, 1, 0]
    """
    fitted = scored = reports
    if len(reports) > min(settings.kmeans_clients, settings.silhouette_clients):
        # One order for both, so that the smaller subsample is part of the larger.
        order = generator.permutation(len(reports))
        fitted = reports[np.sort(order[: settings.kmeans_clients])]
        scored = reports[np.sort(order[: settings.silhouette_clients])]
    centers, silhouettes = _centers(fitted, scored, settings, generator)
    return _with_means(reports, nearest(reports, centers), Fit(len(fitted), len(scored), silhouettes))


def _centers(
    fitted: Floats, scored: Floats, settings: PartitionSettings, generator: np.random.Generator
) -> tuple[Floats, dict[int, float | None]]:
    """The centres with the best silhouette, and the silhouette of each k that was tried.

    Centres (k, D) are fitted to the reports `fitted`; silhouettes are those of the partitions of the reports
    `scored`.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    fewest = max(2, settings.min_clusters)
    distinct = first_distinct(fitted, settings.max_clusters + 1)
    if len(distinct) <= fewest:
        return distinct, {}
    centers_by_k: list[Floats] = []
    # NOTE: one thread: scikit-learn's threads change the order of sums, and so the last digits.
    with threadpool_limits(1):
        for k in range(fewest, min(settings.max_clusters, len(distinct), len(fitted) - 1) + 1):
            seed = int(generator.integers(2**31))
            kmeans = KMeans(k, n_init=settings.starts, random_state=seed).fit(fitted)
            centers_by_k.append(kmeans.cluster_centers_)
    scores = silhouettes(scored, [nearest(scored, centers) for centers in centers_by_k])
    by_k = {
        len(centers): None if np.isnan(score) else score
        for centers, score in zip(centers_by_k, scores.tolist(), strict=True)
    }
    if np.isnan(scores).all():
        # The silhouettes of the subsample are undefined: use the fewest clusters allowed.
        return (distinct[:1] if settings.min_clusters == 1 else centers_by_k[0]), by_k
    return centers_by_k[int(np.flatnonzero(scores >= np.nanmax(scores) - TIE)[0])], by_k


def first_distinct(reports: Floats, limit: int) -> Floats:
    """The first distinct rows of `reports` (N, D), N >= 1, in order, at most `limit` of them."""
    known = [reports[0]]
    for start in range(0, len(reports), BLOCK):
        block = reports[start : start + BLOCK]
        for row in known:
            block = block[(block != row).any(axis=1)]
        while len(block) > 0 and len(known) < limit:
            known.append(block[0])
            block = block[(block != block[0]).any(axis=1)]
        if len(known) == limit:
            break
    return np.stack(known)


def nearest(reports: Floats, centers: Floats) -> Ints:
    """(N,) the L1-nearest centre of each report; ties go to the lowest row."""
    from scipy.spatial.distance import cdist

    members = np.empty(len(reports), dtype=np.int64)
    apart = np.empty((min(BLOCK, len(reports)), len(centers)))
    for start in range(0, len(reports), BLOCK):
        block = reports[start : start + BLOCK]
        cdist(block, centers, "cityblock", out=apart[: len(block)])
        apart[: len(block)].argmin(axis=1, out=members[start : start + BLOCK])
    return members


def means(reports: Floats, members: Ints, empty: Floats) -> Floats:
    """(k, D) mean report of each cluster's members.

    A cluster without members keeps its row of `empty` (k, D).
    """
    # NOTE: column by column: at 1,000,000 x 10 half the time of np.add.at, and the same sums to the bit.
    sums = np.empty_like(empty)
    for column in range(empty.shape[1]):
        sums[:, column] = np.bincount(members, weights=reports[:, column], minlength=len(empty))
    sizes = np.bincount(members, minlength=len(empty))
    return np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], empty)


def _with_means(reports: Floats, members: Ints, fitted: Fit) -> Partition:
    """The partition with `members` (N,), without empty clusters.

    Clusters are numbered in order of their lowest client.
    """
    clients = np.arange(len(members))
    first = np.full(int(members.max()) + 1, len(members))
    first[members[::-1]] = clients[::-1]  # written in descending order, so the lowest client remains
    rank = np.empty_like(first)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    members = rank[members]  # empty clusters ranked last, and drop out
    k = int(members.max()) + 1
    return Partition(members, means(reports, members, np.zeros((k, reports.shape[1]))), fitted)


keep_old_names(__name__)
