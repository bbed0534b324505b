"""The accuracy of the clients of each cluster at the horizon."""

from __future__ import annotations

from experiments.results.statistics.client_accuracy import ClientAccuracy
from experiments.results.statistics.client_groups import cluster_means
from experiments.results.statistics.intervals import amount_estimate, mean_estimate, share_estimate
from experiments.results.statistics.scales import Scale, count_scale, distance_scale, percent_scale
from experiments.results.tables.clients import are_logged
from experiments.results.tables.clients_by_group import table_by_arm
from experiments.results.tables.report import Report
from experiments.results.tables.table import Estimator, NotedTable, OnPage, Place, Table

FEWEST_IN_CLUSTER = 10
"""Fewest scored clients of a cluster that counts as the lowest or the highest: smaller ones are chance."""

NOTE = (
    "Clusters with scored clients at the horizon. A cluster of one seed is no cluster of another, so the "
    "table has the lowest and the highest mean accuracy of a cluster in each seed, averaged over seeds, "
    f"of clusters with at least {FEWEST_IN_CLUSTER} scored clients. They are picked by their accuracy: "
    "the more clusters an arm has and the smaller they are, the further they lie apart by chance alone. "
    "n/a: some seed has no cluster of that size."
)


Extremes = tuple[float | None, float | None, float | None, float | None]
"""The clusters of a run: their number, the lowest and the highest mean accuracy of a large one, and how far
these are apart in percentage points. None where it is not known, or no cluster is large."""

COLUMNS: dict[str, tuple[Estimator, Scale]] = {
    "clusters": (mean_estimate, count_scale(0.0)),
    "lowest cluster": (share_estimate, percent_scale(0.0)),
    "highest cluster": (share_estimate, percent_scale(0.0)),
    "between them": (amount_estimate, distance_scale(0.0)),
}
"""How each of these is averaged over seeds and shown, by its heading."""


def extremes(evaluation: ClientAccuracy | None) -> Extremes:
    """The extremes of one evaluation."""
    clusters = None if evaluation is None else cluster_means(evaluation)
    if clusters is None:
        return None, None, None, None
    means = clusters[1]
    large, count = means.accuracy[means.counts >= FEWEST_IN_CLUSTER], float(len(means.counts))
    if not len(large):
        return count, None, None, None
    lowest, highest = float(large.min()), float(large.max())
    return count, lowest, highest, 100 * (highest - lowest)


def extremes_by_arm(report: Report) -> dict[str, list[Extremes]]:
    """By arm, the extremes of each seed; empty unless some arm has several clusters."""
    found = {arm.name: [extremes(seed) for seed in report.clients[arm.name]] for arm in report.arms}
    is_clustered = any((clusters or 0) > 1 for seeds in found.values() for clusters, *_ in seeds)
    return found if is_clustered else {}


def _on_page(report: Report) -> OnPage:
    found = {
        arm: [
            estimate(values)
            for (estimate, _), values in zip(COLUMNS.values(), zip(*seeds, strict=True), strict=True)
        ]
        for arm, seeds in report.once(extremes_by_arm).items()
    }
    if not found:
        return OnPage(remarks=["By cluster: no arm has more than one cluster at the horizon."])
    table = table_by_arm(report, {heading: scale for heading, (_, scale) in COLUMNS.items()}, found)
    return OnPage([NotedTable("By cluster", table, [NOTE])])


TABLE = Table(
    title="By cluster", place=Place("for-whom", group="clients"), says_something=are_logged, on_page=_on_page
)
