"""Common functions of the figures of the accuracies of clients: quantiles and captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from emulator.arrays import Floats
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.style import translucent
from experiments.results.reading.not_recorded import LOG_CLIENTS, NotRecordedError
from experiments.results.statistics.client_accuracy import ClientAccuracy
from experiments.results.tables.clients import are_logged
from experiments.results.tables.report import Report

PERCENT: Floats = np.linspace(0, 100, 101)
MOST_BANDS = 8
"""Most arms whose range of seeds is drawn: with more, bands and bars hide the means."""

Evaluations = Mapping[str, Sequence[ClientAccuracy | None]]
"""By arm, the last evaluation of each seed by the horizon; None where none is logged."""


def refuse_unlogged(report: Report) -> None:
    """Raise NotRecordedError if no run has logged the accuracies of clients by the horizon."""
    if not are_logged(report.summary):
        raise NotRecordedError(str(report.directory.path), "accuracy of clients", LOG_CLIENTS)


def bands(arms: Sequence[Arm]) -> str:
    has_bands = len(arms) <= MOST_BANDS and any(len(arm.runs) > 1 for arm in arms)
    return ", bands are the range of the seeds" if has_bands else ""


def lines(arms: Sequence[Arm]) -> str:
    """A sentence on the lines of a figure."""
    if max(len(arm.runs) for arm in arms) == 1:
        return "Lines are of a single seed."
    return f"Lines are means over seeds{bands(arms)}."


def add_quantiles(figure: PlainFigure, arm: Arm, curves: Sequence[Floats], *, has_band: bool) -> None:
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
