"""The speed-up to a target against the target, for every target."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.results.drawing.arms import Arm, quiet
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import INK, blank_figure
from experiments.results.figures.every_target import (
    NOT_TWO_ARMS,
    add_intervals,
    band_clause,
    drawn_targets,
    rows_of,
    target_axis,
)
from experiments.results.figures.figure import Figure
from experiments.results.statistics.targets import TargetTable
from experiments.results.tables.report import Report


def speedup_figure(arms: Sequence[Arm], tables: Sequence[TargetTable]) -> PlainFigure:
    """The speed-up to a target against the target, on a logarithmic axis; `arms` begins with the reference.

    Lines are medians that are known exactly. Triangles that point up are lower bounds of medians, triangles
    that point down are upper bounds, vertical bars are medians with both.
    """
    figure = blank_figure(420, x_title="target accuracy (%)", y_title="speed-up")
    for arm in arms[1:]:
        estimates = [row["speedup"] for row in rows_of(arm, tables) if row["speedup"] is not None]
        add_intervals(figure, arm, tables, estimates, 1.0, above_zero=True)
        medians = [estimate.median for estimate in estimates]
        for x, bounds in zip(target_axis(tables), medians, strict=True):
            if bounds.status == "range":
                figure.add_scatter(
                    x=[x, x], y=[bounds.low, bounds.high], mode="lines", line=arm.line, **quiet(arm)
                )
        known = [bounds.low if bounds.status == "=" else None for bounds in medians]
        figure.add_scatter(
            x=target_axis(tables), y=known, mode="lines", name=arm.label, legendgroup=arm.name, line=arm.line
        )
        for status, symbol in ((">=", "triangle-up"), ("<=", "triangle-down")):
            bounded = [
                (x, bounds.low if status == ">=" else bounds.high)
                for x, bounds in zip(target_axis(tables), medians, strict=True)
                if bounds.status == status
            ]
            if bounded:
                figure.add_scatter(
                    x=[x for x, _ in bounded],
                    y=[y for _, y in bounded],
                    mode="markers",
                    marker={"symbol": symbol, "size": 7, "color": arm.colour},
                    hovertemplate=f"{arm.label}: {status} %{{y:.3g}}x<extra></extra>",
                    legendgroup=arm.name,
                    showlegend=False,
                )
    figure.add_hline(y=1, line={"color": INK, "width": 1.2, "dash": "dash"})
    figure.update_yaxes(type="log")
    return figure


def _plots(report: Report) -> list[Plot]:
    tables = drawn_targets(report)
    if not tables:
        return []
    counted = ", counted from the mass event" if tables[0].counts_from_event else ""
    return [
        Plot(
            "speedups",
            "Speed-up to a target, for every target",
            f"How many times sooner than {report.arms[0].name} an arm holds a target up to the horizon, on "
            f"a logarithmic axis; above 1 is sooner{counted}. "
            f"Lines are medians over seeds, {band_clause(tables)}. "
            "Triangles that point up are lower bounds, triangles that point down are upper bounds, "
            "vertical bars reach from the lower to the upper bound; where there is none of these, the "
            "median is undetermined. Bands "
            "end where an interval reaches 0 or has no upper end.",
            speedup_figure(report.arms, tables),
        )
    ]


FIGURE = Figure("pays", _plots, NOT_TWO_ARMS)
