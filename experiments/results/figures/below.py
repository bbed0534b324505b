"""The time below a target against the target, for every target."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import blank_figure
from experiments.results.figures.every_target import (
    NOT_TWO_ARMS,
    add_intervals,
    band_clause,
    drawn_targets,
    rows_of,
    target_axis,
)
from experiments.results.figures.figure import Figure
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.scales import time_unit
from experiments.results.statistics.targets import TargetTable
from experiments.results.tables.report import Report


def below_figure(arms: Sequence[Arm], tables: Sequence[TargetTable], horizon: Horizon) -> PlainFigure:
    """The time below a target against the target: medians over seeds, with their intervals as bands.

    Here and in `speedup_figure`, two seeds have dots instead of a band, and one seed has neither.
    """
    seconds, unit = time_unit(horizon.horizon_s)
    figure = blank_figure(420, x_title="target accuracy (%)", y_title=f"time below the target ({unit})")
    for arm in arms:
        estimates = [row["time_below_s"] for row in rows_of(arm, tables)]
        add_intervals(figure, arm, tables, estimates, seconds)
        y = [estimate.median.low / seconds for estimate in estimates]
        figure.add_scatter(
            x=target_axis(tables), y=y, mode="lines", name=arm.label, legendgroup=arm.name, line=arm.line
        )
    figure.update_yaxes(rangemode="tozero")
    return figure


def _plots(report: Report) -> list[Plot]:
    tables = drawn_targets(report)
    if not tables:
        return []
    return [
        Plot(
            "below",
            "Time below a target, for every target",
            f"How long the unsmoothed accuracy was below a target up to the horizon; lower is better. Lines "
            f"are medians over seeds, {band_clause(tables)}.",
            below_figure(report.arms, tables, report.summary.horizon),
        )
    ]


FIGURE = Figure("pays", _plots, NOT_TWO_ARMS)
