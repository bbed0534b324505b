"""Partition of clients by their reports: k-means or k-center, with k chosen by the silhouette."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from coordinator.assignment import Fit
from coordinator.clusterers.kcenter import farthest_first
from coordinator.clusterers.kmeans import kmeans
from coordinator.clusterers.silhouette import silhouettes, silhouettes_of_pairs
from coordinator.distances import DISTANCES, DistanceName, comparable
from emulator.arrays import Bools, Floats, Ints
from emulator.numbers import MOST, Count, Number, TwoOrMore
from emulator.plugins import Settings

BLOCK = 16_384
"""Reports per block: bounds memory, and does not affect the result."""

TIE = 1e-9
"""Silhouettes that differ by less than this count as equal, so that rounding does not decide on k."""


MOST_PAIRWISE = 2_000
"""Largest number of clients whose silhouettes are computed from the distances of all pairs."""


class PartitionSettings(Settings):
    """How clients are clustered globally (Fielding, algorithm 3)."""

    min_clusters: Count = Field(
        1,
        description="smallest k that is tried, from 2 on; of fewer distinct reports each is a cluster. 1: a "
        "single cluster without silhouettes",
    )
    max_clusters: TwoOrMore = Field(
        10, description="largest k that is tried; at most clients - 1", examples=[6]
    )
    partition: Literal["kmeans", "kcenter"] = Field(
        "kmeans",
        description="how clients are partitioned into k clusters: kmeans, or kcenter, whose centres are "
        "reports: that of the lowest client, then always the one farthest from all centres",
    )
    distance: DistanceName | None = Field(
        None,
        description="distance between reports, in which clients join centres and silhouettes are taken; if "
        "omitted, the representation's own",
    )
    starts: Annotated[int, Number(ge=1, le=1000)] = Field(
        10, description="k-means++ starts for each k; the best inertia wins; kcenter has none"
    )
    kmeans_clients: Annotated[int, Number(ge=10, le=MOST)] = Field(
        20_000,
        description="with more clients than this, centres are fitted to a random subsample of this size, and "
        "every client joins the nearest; the log states the size",
    )
    silhouette_clients: Annotated[int, Number(ge=10, le=MOST)] = Field(
        20_000,
        description="with more clients than this, silhouettes are those of a random subsample of this size; "
        "of at most 2,000 in all distances but l1; the log states the size",
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_representation(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and "representation" in values:
            raise ValueError(
                "representation is a part of its own: a key of [[arm]] or [parts], beside the clusterer"
            )
        return values

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

    `members` (N,) is the cluster of each client, 0 .. k - 1, or -1 for one that holds no data; `centers`
    (k, D) are the mean reports of the clusters.
    """

    members: Ints
    centers: Floats
    fitted: Fit


def partition(
    reports: Floats, settings: PartitionSettings, generator: np.random.Generator, distance: DistanceName
) -> Partition:
    """Cluster `reports` (N, D) into the number of clusters with the largest mean silhouette in `distance`.

    For each k from max(2, min_clusters) to max_clusters, k-means in Euclidean space or k-center in `distance`
    gives centres, and every client joins the centre that is nearest in `distance`. The k with the largest
    mean silhouette wins, the smallest k among equals. Identical reports form one cluster. If there are no
    more distinct reports than the smallest k, each distinct report is a cluster. For "cosine", reports and
    centres are scaled to length 1.

    The centres of the result are means, of k-center too: clients that drift later move to a mean, and a
    centre's shift is that of all its members, not of the one client that was chosen.

    >>> reports = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> partition(reports, PartitionSettings(), np.random.default_rng(0), "l1").members.tolist()
    [0, 1, 0]
    """
    reports = comparable(reports, distance)
    most_scored = settings.silhouette_clients
    if distance != "l1":
        most_scored = min(most_scored, MOST_PAIRWISE)
    fitted = scored = reports
    if len(reports) > min(settings.kmeans_clients, most_scored):
        # One order for both, so that the smaller subsample is part of the larger.
        order = generator.permutation(len(reports))
        fitted = reports[np.sort(order[: settings.kmeans_clients])]
        scored = reports[np.sort(order[:most_scored])]
    centers, scores = _centers(fitted, scored, settings, generator, distance)
    members = nearest(reports, centers, distance)
    return _with_means(reports, members, Fit(len(fitted), len(scored), scores), distance)


def _centers(
    fitted: Floats,
    scored: Floats,
    settings: PartitionSettings,
    generator: np.random.Generator,
    distance: DistanceName,
) -> tuple[Floats, dict[int, float | None]]:
    """The centres with the best silhouette, and the silhouette of each k that was tried.

    Centres (k, D) are fitted to the reports `fitted`; silhouettes are those of the partitions of the reports
    `scored`.
    """
    fewest = max(2, settings.min_clusters)
    distinct = first_distinct(fitted, settings.max_clusters + 1)
    if len(distinct) <= fewest:
        return distinct, {}
    counts = range(fewest, min(settings.max_clusters, len(distinct), len(fitted) - 1) + 1)
    centers_by_k = _centers_by_k(fitted, counts, settings, generator, distance)
    scores = _scores(scored, [nearest(scored, centers, distance) for centers in centers_by_k], distance)
    by_k = {k: None if np.isnan(score) else score for k, score in zip(counts, scores.tolist(), strict=True)}
    if np.isnan(scores).all():
        # The silhouettes of the subsample are undefined: use the fewest clusters allowed.
        return (distinct[:1] if settings.min_clusters == 1 else centers_by_k[0]), by_k
    return centers_by_k[int(np.flatnonzero(scores >= np.nanmax(scores) - TIE)[0])], by_k


def partition_among(
    reports: Floats,
    holding: Bools,
    settings: PartitionSettings,
    generator: np.random.Generator,
    distance: DistanceName,
) -> Partition:
    """The `partition` of the clients `holding` data (N,); the others are members of no cluster, -1.

    >>> reports, holding = np.array([[1.0, 0.0], [np.nan, np.nan], [0.0, 1.0]]), np.array([True, False, True])
    >>> partition_among(
    ...     reports, holding, PartitionSettings(), np.random.default_rng(0), "l1"
    ... ).members.tolist()
    [0, -1, 1]
    """
    if holding.all():
        return partition(reports, settings, generator, distance)
    clustering = partition(reports[holding], settings, generator, distance)
    members = np.full(len(holding), -1)
    members[holding] = clustering.members
    return replace(clustering, members=members)


def _centers_by_k(
    reports: Floats,
    counts: range,
    settings: PartitionSettings,
    generator: np.random.Generator,
    distance: DistanceName,
) -> list[Floats]:
    """The centres (k, D) for each k of `counts`."""
    if settings.partition == "kcenter":
        order = farthest_first(reports, counts[-1], distance)
        return [reports[order[:k]] for k in counts]
    partitions = kmeans(reports, counts, settings.starts, generator)
    return [
        centers_of(reports, members, np.zeros((k, reports.shape[1])), distance)
        for k, members in zip(counts, partitions, strict=True)
    ]


def _scores(reports: Floats, partitions: list[Ints], distance: DistanceName) -> Floats:
    """The mean silhouette of each of `partitions`, in `distance`."""
    if distance == "l1":
        return silhouettes(reports, partitions)
    return silhouettes_of_pairs(DISTANCES[distance](reports, reports), partitions)


def first_distinct(reports: Floats, limit: int) -> Floats:
    """The first distinct rows of `reports` (N, D), N >= 1, in order, at most `limit` of them."""
    known = [reports[0]]
    for start in range(0, len(reports), BLOCK):
        block = reports[start : start + BLOCK]
        for row in known:
            block = block[(block != row).any(axis=1)]
        while len(block) > 0 and len(known) < limit:
            known.append(block[0].copy())  # a view would keep the whole block
            block = block[(block != block[0]).any(axis=1)]
        if len(known) == limit:
            break
    return np.stack(known)


def nearest(reports: Floats, centers: Floats, distance: DistanceName) -> Ints:
    """(N,) the centre nearest to each report in `distance`; ties go to the lowest row."""
    members = np.empty(len(reports), dtype=np.int64)
    for start in range(0, len(reports), BLOCK):
        apart = DISTANCES[distance](reports[start : start + BLOCK], centers)
        apart.argmin(axis=1, out=members[start : start + BLOCK])
    return members


def centers_of(reports: Floats, members: Ints, empty: Floats, distance: DistanceName) -> Floats:
    """(k, D) the centres of clusters: the `means` of their members, for "cosine" of and as unit rows.

    A client of no cluster, -1, has no part in them.
    """
    if (members < 0).any():
        reports, members = reports[members >= 0], members[members >= 0]
    return comparable(means(comparable(reports, distance), members, empty), distance)


def means(reports: Floats, members: Ints, empty: Floats) -> Floats:
    """(k, D) mean report of each cluster's members.

    A cluster without members keeps its row of `empty` (k, D).
    """
    sums = np.zeros_like(empty)
    if len(reports) < reports.shape[1]:
        for client, cluster in enumerate(members.tolist()):
            sums[cluster] += reports[client]
    else:
        # NOTE: column by column: at 1,000,000 x 10 half the time of np.add.at, and the same sums to the bit.
        for column in range(empty.shape[1]):
            sums[:, column] = np.bincount(members, weights=reports[:, column], minlength=len(empty))
    sizes = np.bincount(members, minlength=len(empty))
    return np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], empty)


def _with_means(reports: Floats, members: Ints, fitted: Fit, distance: DistanceName) -> Partition:
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
    return Partition(members, centers_of(reports, members, np.zeros((k, reports.shape[1])), distance), fitted)
