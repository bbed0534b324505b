"""The accuracy of clients at the horizon, from the worst to the best."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import blank_figure
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


def client_accuracy_figure(arms: Sequence[Arm], found: Evaluations) -> PlainFigure:
    """The accuracy (%) that a share of clients stays at or below: quantiles, means over seeds."""
    figure = blank_figure(440, x_title="share of clients (%)", y_title="accuracy at or below (%)")
    for arm in arms:
        curves = [100 * seed.quantiles(PERCENT / 100) for seed in found[arm.name] if seed is not None]
        add_quantiles(figure, arm, curves, has_band=len(arms) <= MOST_BANDS)
    figure.update_xaxes(range=[0, 100], dtick=10)
    return figure


def _plots(report: Report) -> list[Plot]:
    if not are_logged(report.summary):
        return []
    return [
        Plot(
            "client-accuracy",
            "Accuracy of clients, from the worst to the best",
            "The share of clients whose accuracy at the horizon is at or below a value: at 10 % is the first "
            f"decile, at 50 % the median client. {lines(report.arms)}",
            client_accuracy_figure(report.arms, report.clients),
        )
    ]


FIGURE = Figure("for-whom", _plots, refuse=refuse_unlogged)
