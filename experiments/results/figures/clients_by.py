"""The accuracy of clients by group: device and network speed, main label, and cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import MAX_POINTS, blank_figure, evenly
from experiments.results.figures.client_curves import MOST_BANDS, Evaluations, bands, refuse_unlogged
from experiments.results.figures.figure import Figure
from experiments.results.reading.not_recorded import LOG_CLIENTS
from experiments.results.statistics.clients.groups import GroupMeans, cluster_means
from experiments.results.tables.clients import are_logged
from experiments.results.tables.clients_by_cluster import extremes_by_arm
from experiments.results.tables.clients_by_group import groupings
from experiments.results.tables.report import Report


def group_figure(
    arms: Sequence[Arm], names: Sequence[str], found: Mapping[str, Sequence[GroupMeans | None]], x_title: str
) -> PlainFigure:
    """The mean accuracy (%) of each group of clients by arm: dots are means over seeds, bars their range.

    Args:
        arms: The arms.
        names: The names of the groups.
        found: By arm, the groups of each seed; None where they are not known.
        x_title: What the groups are.
    """
    figure = blank_figure(440, x_title=x_title, y_title="mean accuracy of clients (%)")
    for arm in arms:
        seeds = [100 * seed.accuracy for seed in found[arm.name] if seed is not None]
        if not seeds:
            continue
        by_group = [column[np.isfinite(column)] for column in np.stack(seeds, axis=1)]
        drawn = [index for index, column in enumerate(by_group) if len(column)]
        means = np.array([by_group[index].mean() for index in drawn])
        bars = {
            "type": "data",
            "symmetric": False,
            "array": np.array([by_group[index].max() for index in drawn]) - means,
            "arrayminus": means - np.array([by_group[index].min() for index in drawn]),
            "thickness": 1,
        }
        figure.add_scatter(
            x=[names[index] for index in drawn],
            y=means,
            mode="markers",
            name=arm.label,
            offsetgroup=arm.name,
            legendgroup=arm.name,
            marker={"size": 9 if len(arms) <= MOST_BANDS else 7, "color": arm.colour, "symbol": arm.symbol},
            error_y=bars if len(seeds) > 1 and len(arms) <= MOST_BANDS else None,
        )
    figure.update_layout(scattermode="group")
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=list(names))
    return figure


def cluster_figure(arms: Sequence[Arm], found: Evaluations) -> PlainFigure:
    """The mean accuracy (%) of each cluster: a dot for each cluster of each seed, larger for more clients.

    At most `MAX_POINTS` dots of an arm are drawn, evenly spaced by accuracy.
    """
    figure = blank_figure(130 + 48 * len(arms), x_title="mean accuracy of the cluster (%)", y_title="")
    by_arm = {}
    for arm in arms:
        dots = [
            (100 * accuracy, count, label, run.seed)
            for run, seed in zip(arm.runs, found[arm.name], strict=True)
            if seed is not None and (clusters := cluster_means(seed)) is not None
            for label, accuracy, count in zip(
                clusters[0].tolist(), clusters[1].accuracy.tolist(), clusters[1].counts.tolist(), strict=True
            )
        ]
        by_arm[arm.name] = evenly(sorted(dots), MAX_POINTS)
    most = max((count for dots in by_arm.values() for _, count, _, _ in dots), default=1)
    for arm in arms:
        dots = by_arm[arm.name]
        figure.add_scatter(
            x=[accuracy for accuracy, _, _, _ in dots],
            y=[arm.label] * len(dots),
            mode="markers",
            name=arm.label,
            marker={
                "size": [5 + 19 * (count / most) ** 0.5 for _, count, _, _ in dots],
                "color": arm.colour,
                "opacity": 0.55,
            },
            legendgroup=arm.name,
            customdata=[[label, seed, count] for _, count, label, seed in dots],
            hovertemplate="cluster %{customdata[0]} of seed %{customdata[1]}: %{x:.1f} %, "
            f"%{{customdata[2]:,}} clients<extra>{arm.label}</extra>",
            showlegend=False,
        )
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category")
    return figure


def _plots(report: Report) -> Iterator[Plot]:
    if not are_logged(report.summary):
        return
    for grouping in groupings(report):
        if grouping.names:
            yield Plot(
                f"clients-by-{grouping.id}",
                f"Accuracy of clients by {grouping.what}",
                "Mean accuracy at the horizon of the clients of each group, of each arm. "
                f"{_dots(report.arms)}",
                group_figure(report.arms, grouping.names, grouping.groups, grouping.what),
            )
    if extremes_by_arm(report):
        yield Plot(
            "clients-by-cluster",
            "Accuracy of clients by cluster",
            "Mean accuracy at the horizon of the clients of each cluster, of each seed; a larger dot is of "
            "more scored clients. Small dots are noisy.",
            cluster_figure(report.arms, report.clients),
            "Accuracy of clients by cluster: a dot for each cluster of each seed, in a row for each arm. The "
            "table by cluster has the lowest and the highest of them.",
        )


def _dots(arms: Sequence[Arm]) -> str:
    """A sentence on the dots of a figure of groups."""
    if max(len(arm.runs) for arm in arms) == 1:
        return "Dots are of a single seed."
    return f"Dots are means over the seeds that have such clients{bands(arms).replace('bands', 'bars')}."


FIGURE = Figure("for-whom", _plots, needs=LOG_CLIENTS, refuse=refuse_unlogged)
