"""Workloads K1, K2 and recluster: global re-clustering of clients by their label histograms.

K1: 5,078 clients x 100 labels, k = 2 .. 10, k-means and silhouettes over all clients, against a plain use of
scikit-learn; and reassignment to the nearest centres, against a loop. K2: 1,000,000 clients x 10 labels, on
subsamples, which is the default of `Fielding`; it has no reference. recluster: 200 clients x 10 labels,
against the k-means of scikit-learn alone; and the clients of K1 by Jensen-Shannon distances, against L1. Each
client's histogram counts 200 samples drawn from one of several label mixes; half of the mixes are far apart,
half overlap.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Say, interleaved, often, timed
from coordinator.clusterers.partition import PartitionSettings, nearest, partition
from emulator.arrays import Floats, Ints

SEED = 9
MAX_CLUSTERS = 10
SAMPLES = 200  # behind each histogram
OVERLAP = 0.5  # share of an overlapping mix that is common to all of these
NAIVE = "scikit-learn's KMeans and silhouette_score(metric='l1') for each k"
SILHOUETTES = "the silhouettes of that search alone"
KMEANS = "scikit-learn's KMeans of as many starts for each k, without silhouettes"
IN_L1 = "the same in L1"
LOOP = "a loop over the clients, each against all centres"


def measure_exact(repeats: int, say: Say) -> list[Figure]:
    return exact_figures(5_078, 100, repeats, say)


def measure_million(repeats: int, say: Say) -> list[Figure]:
    return subsample_figures(1_000_000, 10, repeats, say)


def measure_recluster(repeats: int, say: Say) -> list[Figure]:
    return [*small_figures(200, 10, repeats, say), *distance_figures(5_078, 100, 2_000, repeats, say)]


def exact_figures(clients: int, labels: int, repeats: int, say: Say) -> list[Figure]:
    """Seconds of one exact re-clustering, and milliseconds to assign all clients to their nearest centres."""
    reports = label_histograms(clients, labels, mixes=min(6, labels // 2))
    all_clients = max(10, clients)
    settings = PartitionSettings(
        max_clusters=MAX_CLUSTERS, kmeans_clients=all_clients, silhouette_clients=all_clients
    )
    centers = reports[:MAX_CLUSTERS]  # the largest possible number; their position does not affect the cost
    naive: list[Naive] = []

    def naively() -> float:
        naive.append(cluster_naively(reports, MAX_CLUSTERS, settings.starts))
        return naive[-1].wall_s

    samples = interleaved(
        {
            "recluster": timed(lambda: partition(reports, settings, np.random.default_rng(SEED), "l1")),
            "naive": naively,
            "reassign": often(lambda: nearest(reports, centers, "l1"), 20),
            "loop": timed(lambda: nearest_by_loop(reports, centers)),
        },
        repeats,
        warm_up=False,
        say=say,
    )
    silhouettes_s = np.array([clustering.silhouettes_s for clustering in naive])
    size = f"{clients:,} clients x {labels} labels"
    about = f"exact global re-clustering of {size}, k = 2 .. {MAX_CLUSTERS}"
    return [
        figure(
            "k1-recluster",
            about,
            samples["recluster"],
            "s",
            better="lower",
            against=Reference(samples["naive"], NAIVE),
            target=Target("ratio", 6.0, 10.0),
        ),
        figure(
            "k1-recluster-against-silhouettes",
            about,
            samples["recluster"],
            "s",
            better="lower",
            against=Reference(silhouettes_s, SILHOUETTES),
            target=Target("ratio", 6.0, 10.0),
        ),
        figure(
            "k1-reassign",
            f"reassignment of all of {size}, {len(centers)} centres",
            1000 * samples["reassign"],
            "ms",
            better="lower",
            against=Reference(1000 * samples["loop"], LOOP),
            target=Target("value", 5.0, 2.0),
        ),
    ]


def subsample_figures(clients: int, labels: int, repeats: int, say: Say) -> list[Figure]:
    """Seconds of one re-clustering with the default settings, without a reference: it would take too long."""
    say(f"drawing {clients:,} histograms")
    reports = label_histograms(clients, labels, mixes=min(4, labels // 2))
    settings = PartitionSettings(max_clusters=MAX_CLUSTERS)
    work = timed(lambda: partition(reports, settings, np.random.default_rng(SEED), "l1"))
    samples = interleaved({"ours": work}, repeats, warm_up=False, say=say)
    return [
        figure(
            "k2-recluster",
            f"one re-clustering of {clients:,} clients x {labels} labels, k = 2 .. {MAX_CLUSTERS}",
            samples["ours"],
            "s",
            better="lower",
            target=Target("value", 4.0, 2.0),
        )
    ]


def small_figures(clients: int, labels: int, repeats: int, say: Say) -> list[Figure]:
    """Milliseconds of one re-clustering of a small population with the default settings."""
    reports = label_histograms(clients, labels, mixes=min(4, labels // 2))
    settings = PartitionSettings(max_clusters=MAX_CLUSTERS)
    samples = interleaved(
        {
            "ours": often(lambda: partition(reports, settings, np.random.default_rng(SEED), "l1"), 10),
            "kmeans": often(lambda: kmeans_by_scikit_learn(reports, MAX_CLUSTERS, settings.starts), 3),
        },
        repeats,
        say=say,
    )
    return [
        figure(
            "recluster",
            f"one re-clustering of {clients:,} clients x {labels} labels, k = 2 .. {MAX_CLUSTERS}",
            1000 * samples["ours"],
            "ms",
            better="lower",
            against=Reference(1000 * samples["kmeans"], KMEANS),
            target=Target("ratio", 2.5),
        )
    ]


def distance_figures(clients: int, labels: int, scored: int, repeats: int, say: Say) -> list[Figure]:
    """Seconds of one re-clustering in the Jensen-Shannon distance, with silhouettes of `scored` clients."""
    reports = label_histograms(clients, labels, mixes=min(6, labels // 2))
    settings = PartitionSettings(max_clusters=MAX_CLUSTERS, silhouette_clients=scored)
    samples = interleaved(
        {
            "js": timed(lambda: partition(reports, settings, np.random.default_rng(SEED), "js")),
            "l1": timed(lambda: partition(reports, settings, np.random.default_rng(SEED), "l1")),
        },
        repeats,
        warm_up=False,
        say=say,
    )
    return [
        figure(
            "recluster-js",
            f"one re-clustering of {clients:,} clients x {labels} labels in js, silhouettes of {scored:,}",
            samples["js"],
            "s",
            better="lower",
            against=Reference(samples["l1"], IN_L1),
            target=Target("ratio", 1 / 3),
        )
    ]


def kmeans_by_scikit_learn(reports: Floats, max_clusters: int, starts: int) -> list[float]:
    """The inertia of scikit-learn's k-means on one thread, for k = 2 .. `max_clusters`."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return [
            float(KMeans(k, n_init=starts, random_state=SEED).fit(reports).inertia_)
            for k in range(2, max_clusters + 1)
        ]


def label_histograms(clients: int, labels: int, mixes: int) -> Floats:
    """Label shares of each client, of shape (clients, labels), drawn from one of `mixes` label mixes.

    Every other mix overlaps: it has a share of labels in common with all others that do.
    """
    rng = np.random.default_rng(SEED)
    shares = rng.dirichlet(np.full(labels, 20 / labels), size=mixes)
    common = rng.dirichlet(np.full(labels, 20 / labels))
    shares[1::2] = (1 - OVERLAP) * shares[1::2] + OVERLAP * common
    counts = rng.multinomial(SAMPLES, shares[rng.integers(mixes, size=clients)])
    return counts / SAMPLES


@dataclass(frozen=True)
class Naive:
    """The result of `cluster_naively`: the cluster of each client (N,), and two wall times.

    `wall_s` is that of the whole search, `silhouettes_s` that of its silhouettes.
    """

    members: Ints
    wall_s: float
    silhouettes_s: float


def cluster_naively(reports: Floats, max_clusters: int, starts: int) -> Naive:
    """The clustering of the best silhouette, for k = 2 .. `max_clusters`, by scikit-learn on one thread.

    It is the search of `partition`, by functions used as in scikit-learn's manual.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import pairwise_distances, silhouette_score
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    silhouettes_s, best_score, best = 0.0, -np.inf, np.zeros(len(reports), dtype=np.int64)
    with threadpool_limits(1):
        for k in range(2, max_clusters + 1):
            centers = KMeans(k, n_init=starts, random_state=SEED).fit(reports).cluster_centers_
            members = pairwise_distances(reports, centers, metric="l1").argmin(axis=1)
            before = time.perf_counter()
            score = float(silhouette_score(reports, members, metric="l1"))
            silhouettes_s += time.perf_counter() - before
            if score > best_score:
                best_score, best = score, members
    return Naive(best.astype(np.int64), time.perf_counter() - start, silhouettes_s)


def nearest_by_loop(reports: Floats, centers: Floats) -> Ints:
    """The index of the L1-nearest centre of each report, of shape (N,), by a loop over the clients."""
    return np.array([np.abs(centers - report).sum(axis=1).argmin() for report in reports])
