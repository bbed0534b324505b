"""The accuracy of the clients of each cluster at the horizon."""

from __future__ import annotations

import math

from experiments.results.statistics.clients.accuracy import ClientAccuracy
from experiments.results.statistics.clients.groups import cluster_means
from experiments.results.statistics.comparisons import once
from experiments.results.statistics.intervals import amount_estimate, mean_estimate
from experiments.results.statistics.scales import count_scale, distance_scale
from experiments.results.tables.by_arm import SHARE, table_by_arm
from experiments.results.tables.clients import PLACE, are_logged
from experiments.results.tables.report import Report
from experiments.results.tables.table import NotedTable, OnPage, Table

FEWEST_IN_CLUSTER = 10
"""Fewest scored clients of a cluster that counts as the lowest or the highest: smaller ones are chance."""

NOTE = (
    "Clusters with scored clients at the horizon. A cluster of one seed is no cluster of another, so the "
    "table has the lowest and the highest mean accuracy of a cluster in each seed, averaged over seeds, "
    f"of clusters with at least {FEWEST_IN_CLUSTER} scored clients. They are picked by their accuracy: "
    "the more clusters an arm has and the smaller they are, the further they lie apart by chance alone. "
    "n/a: some seed has no cluster of that size."
)


COLUMNS = {
    "clusters": (mean_estimate, count_scale(0.0)),
    "lowest cluster": SHARE,
    "highest cluster": SHARE,
    "between them": (amount_estimate, distance_scale(0.0)),
}


def extremes(evaluation: ClientAccuracy | None) -> list[float]:
    """The figures of `COLUMNS` of one evaluation; NaN where one is not known, or no cluster is large."""
    clusters = None if evaluation is None else cluster_means(evaluation)
    if clusters is None:
        return [math.nan] * len(COLUMNS)
    means = clusters[1]
    large = means.accuracy[means.counts >= FEWEST_IN_CLUSTER]
    lowest, highest = (large.min(), large.max()) if len(large) else (math.nan, math.nan)
    return [len(means.counts), lowest, highest, 100 * (highest - lowest)]


@once
def extremes_by_arm(report: Report) -> dict[str, list[list[float]]]:
    """By arm, the extremes of each seed; empty unless some arm has several clusters."""
    found = {arm.name: [extremes(seed) for seed in report.clients[arm.name]] for arm in report.arms}
    is_clustered = any(clusters > 1 for seeds in found.values() for clusters, *_ in seeds)
    return found if is_clustered else {}


def _on_page(report: Report) -> OnPage:
    found = extremes_by_arm(report)
    if not found:
        return OnPage(remarks=["By cluster: no arm has more than one cluster at the horizon."])
    return OnPage([NotedTable("By cluster", table_by_arm(report, COLUMNS, found), [NOTE])])


TABLE = Table(title="By cluster", place=PLACE, says_something=are_logged, on_page=_on_page)
