"""Figures of the accuracies of clients at the horizon; the same evaluations give the same figure.

All take the evaluations of each arm as `evaluations` returns them: by arm, one for each seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from emulator.arrays import Floats
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.figures.figures import INK, Arm, blank_figure, thinned, translucent
from experiments.results.statistics.client_accuracy import ClientAccuracy, at_the_horizon
from experiments.results.statistics.client_groups import GroupMeans, cluster_means

PERCENT: Floats = np.linspace(0, 100, 101)
MOST_BANDS = 8
"""Most arms whose range of seeds is drawn: with more, bands and bars hide the means."""

Evaluations = Mapping[str, Sequence[ClientAccuracy | None]]


def evaluations(arms: Sequence[Arm], horizon_s: float) -> dict[str, list[ClientAccuracy | None]]:
    """By arm, the last evaluation of each seed at or before the horizon; None where none is logged.

    Raises InputError if a log is damaged.
    """
    return {arm.name: [at_the_horizon(run, horizon_s) for run in arm.runs] for arm in arms}


def client_accuracy_figure(arms: Sequence[Arm], found: Evaluations) -> PlainFigure:
    """The accuracy (%) that a share of clients stays at or below: quantiles, means over seeds."""
    figure = blank_figure(440, x_title="share of clients (%)", y_title="accuracy at or below (%)")
    for arm in arms:
        curves = [100 * seed.quantiles(PERCENT / 100) for seed in found[arm.name] if seed is not None]
        _add_quantiles(figure, arm, curves, has_band=len(arms) <= MOST_BANDS)
    figure.update_xaxes(range=[0, 100], dtick=10)
    return figure


def client_gain_figure(arms: Sequence[Arm], found: Evaluations) -> PlainFigure:
    """Gains (pp) of clients over themselves under the first of `arms`, sorted: quantiles, means over seeds.

    Seeds are paired by their position in the runs of an arm, which must all be runs of the first arm too.
    """
    figure = blank_figure(440, x_title="share of clients (%)", y_title="gain at or below (pp)")
    reference = {run.seed: seed for run, seed in zip(arms[0].runs, found[arms[0].name], strict=True)}
    for arm in arms[1:]:
        pairs = [(ours, reference.get(run.seed)) for run, ours in zip(arm.runs, found[arm.name], strict=True)]
        gains = [ours.gains_over(base) for ours, base in pairs if ours is not None and base is not None]
        curves = [100 * np.quantile(seed, PERCENT / 100) for seed in gains if len(seed)]
        _add_quantiles(figure, arm, curves, has_band=len(arms) <= MOST_BANDS)
    figure.add_hline(y=0, line={"color": INK, "width": 1.2, "dash": "dash"})
    figure.update_xaxes(range=[0, 100], dtick=10)
    return figure


def group_figure(
    arms: Sequence[Arm],
    names: Sequence[str],
    found: Mapping[str, Sequence[GroupMeans | None]],
    x_title: str,
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
            marker={"size": 9 if len(arms) <= MOST_BANDS else 7, "color": arm.colour, "symbol": arm.symbol},
            error_y=bars if len(seeds) > 1 and len(arms) <= MOST_BANDS else None,
        )
    figure.update_layout(scattermode="group")
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=list(names))
    return figure


def cluster_figure(arms: Sequence[Arm], found: Evaluations) -> PlainFigure:
    """The mean accuracy (%) of each cluster: a dot for each cluster of each seed, larger for more clients.

    At most `figures.MAX_POINTS` dots of an arm are drawn, evenly spaced by accuracy.
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
        if dots:
            dots.sort()
            by_arm[arm.name] = [dots[index] for index in thinned(len(dots))]
    most = max((count for dots in by_arm.values() for _, count, _, _ in dots), default=1)
    for arm in arms:
        dots = by_arm.get(arm.name, [])
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
            customdata=[[label, seed, count] for _, count, label, seed in dots],
            hovertemplate="cluster %{customdata[0]} of seed %{customdata[1]}: %{x:.1f} %, "
            f"%{{customdata[2]:,}} clients<extra>{arm.label}</extra>",
            showlegend=False,
        )
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category")
    return figure


def _add_quantiles(figure: PlainFigure, arm: Arm, curves: Sequence[Floats], *, has_band: bool) -> None:
    """Draw the mean over seeds of quantiles at `PERCENT`, in a band from the lowest seed to the highest."""
    if not curves:
        return
    values = np.stack(curves)
    if len(curves) > 1 and has_band:
        quiet = {"legendgroup": arm.name, "hoverinfo": "skip", "showlegend": False, "line": {"width": 0}}
        figure.add_scatter(x=PERCENT, y=values.min(axis=0), mode="lines", **quiet)
        figure.add_scatter(
            x=PERCENT,
            y=values.max(axis=0),
            mode="lines",
            fill="tonexty",
            fillcolor=translucent(arm.colour),
            **quiet,
        )
    figure.add_scatter(
        x=PERCENT,
        y=values.mean(axis=0),
        mode="lines",
        name=arm.label,
        legendgroup=arm.name,
        line=arm.line,
        hovertemplate=f"{arm.label}: %{{x:.0f}} % of clients, up to %{{y:.1f}}<extra></extra>",
    )
