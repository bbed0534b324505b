"""The gain of each client over itself under the reference arm, sorted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import INK, blank_figure
from experiments.results.figures.client_curves import (
    MOST_BANDS,
    PERCENT,
    Evaluations,
    add_quantiles,
    lines,
    refuse_unlogged,
)
from experiments.results.figures.figure import Figure
from experiments.results.tables.clients import are_logged
from experiments.results.tables.report import Report


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
        add_quantiles(figure, arm, curves, has_band=len(arms) <= MOST_BANDS)
    figure.add_hline(y=0, line={"color": INK, "width": 1.2, "dash": "dash"})
    figure.update_xaxes(range=[0, 100], dtick=10)
    return figure


def _plots(report: Report) -> list[Plot]:
    arms = report.arms
    if not are_logged(report.summary) or len(arms) < 2:
        return []
    return [
        Plot(
            "client-gain",
            f"Gain of each client over {arms[0].name}",
            "Gains of clients over themselves under the reference arm, from the largest loss to the "
            "largest gain: the clients left of where a line reaches 0 are worse off. "
            f"{lines(arms)} Two arms that are equally good for everyone differ client by "
            "client, by chance: their curve is on average as far below 0 on the left as it is above 0 on "
            "the right.",
            client_gain_figure(arms, report.clients),
        )
    ]


FIGURE = Figure(
    "for-whom",
    _plots,
    "no figure client-gain: the runs do not say which client is in which group",
    refuse=refuse_unlogged,
)
