"""The accuracy of the clients of each cluster at the horizon."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.results.statistics.client_accuracy import ClientAccuracy
from experiments.results.statistics.client_groups import cluster_means
from experiments.results.statistics.comparisons import once
from experiments.results.statistics.intervals import amount_estimate, mean_estimate, share_estimate
from experiments.results.statistics.scales import count_scale, distance_scale, percent_scale
from experiments.results.tables.cells import Cell, show_estimate
from experiments.results.tables.clients import are_logged
from experiments.results.tables.report import Report
from experiments.results.tables.table import NotedTable, OnPage, Place, Table, TextTable

FEWEST_IN_CLUSTER = 10
"""Fewest scored clients of a cluster that counts as the lowest or the highest: smaller ones are chance."""

NOTE = (
    "Clusters with scored clients at the horizon. A cluster of one seed is no cluster of another, so the "
    "table has the lowest and the highest mean accuracy of a cluster in each seed, averaged over seeds, "
    f"of clusters with at least {FEWEST_IN_CLUSTER} scored clients. They are picked by their accuracy: "
    "the more clusters an arm has and the smaller they are, the further they lie apart by chance alone. "
    "n/a: some seed has no cluster of that size."
)


@dataclass(frozen=True)
class Extremes:
    """The clusters of a run: their number, and the lowest and the highest mean accuracy of a large one.

    None where it is not known, or no cluster is large.
    """

    clusters: float | None = None
    lowest: float | None = None
    highest: float | None = None

    @property
    def between_pp(self) -> float | None:
        """How far the highest is above the lowest, in percentage points."""
        if self.lowest is None or self.highest is None:
            return None
        return 100 * (self.highest - self.lowest)


def extremes(evaluation: ClientAccuracy | None) -> Extremes:
    """The extremes of one evaluation."""
    clusters = None if evaluation is None else cluster_means(evaluation)
    if clusters is None:
        return Extremes()
    means = clusters[1]
    large = means.accuracy[means.counts >= FEWEST_IN_CLUSTER]
    if not len(large):
        return Extremes(float(len(means.counts)))
    return Extremes(float(len(means.counts)), float(large.min()), float(large.max()))


@once
def extremes_by_arm(report: Report) -> dict[str, list[Extremes]]:
    """By arm, the extremes of each seed; empty unless some arm has several clusters."""
    found = {arm.name: [extremes(seed) for seed in report.clients[arm.name]] for arm in report.arms}
    is_clustered = any((seed.clusters or 0) > 1 for seeds in found.values() for seed in seeds)
    return found if is_clustered else {}


def _on_page(report: Report) -> OnPage:
    found = extremes_by_arm(report)
    if not found:
        return OnPage(remarks=["By cluster: no arm has more than one cluster at the horizon."])
    rows: list[tuple[str, list[Cell]]] = [
        (
            arm,
            [
                show_estimate(report.stated(estimate, arm), scale)
                for estimate, scale in (
                    (mean_estimate([seed.clusters for seed in seeds]), count_scale(0.0)),
                    (share_estimate([seed.lowest for seed in seeds]), percent_scale(0.0)),
                    (share_estimate([seed.highest for seed in seeds]), percent_scale(0.0)),
                    (amount_estimate([seed.between_pp for seed in seeds]), distance_scale(0.0)),
                )
            ],
        )
        for arm, seeds in found.items()
    ]
    table = TextTable(["clusters", "lowest cluster", "highest cluster", "between them"], rows)
    return OnPage([NotedTable("By cluster", table, [NOTE])])


TABLE = Table(
    title="By cluster", place=Place("for-whom", group="clients"), says_something=are_logged, on_page=_on_page
)
