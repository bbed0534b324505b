"""The time below a target, and the speed-up to it, against the target: of every target that is reached."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from experiments.results.drawing.arms import Arm, add_line, quiet
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import INK, blank_figure, translucent
from experiments.results.figures.figure import Figure
from experiments.results.statistics.comparisons import Comparison, once
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.medians import Bounds, MedianEstimate, levels_as_text
from experiments.results.statistics.scales import time_unit
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.targets import TargetTable, target_table
from experiments.results.tables.report import Report

MOST_DRAWN_TARGETS = 50
NOT_TWO_ARMS = "there are not two arms with an evaluation by the horizon"


def below_figure(arms: Sequence[Arm], tables: Sequence[TargetTable], horizon: Horizon) -> PlainFigure:
    """The time below a target against the target: medians over seeds, with their intervals as bands.

    Here and in `speedup_figure`, two seeds have dots instead of a band, and one seed has neither.
    """
    seconds, unit = time_unit(horizon.horizon_s)
    figure, x = _blank(tables, f"time below the target ({unit})")
    for arm in arms:
        estimates = [row["time_below_s"] for row in _rows_of(arm, tables)]
        _add_intervals(figure, arm, x, estimates, seconds)
        add_line(figure, arm, x, [estimate.median.low / seconds for estimate in estimates])
    figure.update_yaxes(rangemode="tozero")
    return figure


def speedup_figure(arms: Sequence[Arm], tables: Sequence[TargetTable]) -> PlainFigure:
    """The speed-up to a target against the target, on a logarithmic axis; `arms` begins with the reference.

    Lines are medians that are known exactly. Triangles that point up are lower bounds of medians, triangles
    that point down are upper bounds, vertical bars are medians with both.
    """
    figure, targets = _blank(tables, "speed-up")
    for arm in arms[1:]:
        estimates = [row["speedup"] for row in _rows_of(arm, tables) if row["speedup"] is not None]
        _add_intervals(figure, arm, targets, estimates, 1.0, above_zero=True)
        medians = list(zip(targets, [estimate.median for estimate in estimates], strict=True))
        for x, bounds in medians:
            if bounds.status == "range":
                figure.add_scatter(
                    x=[x, x], y=[bounds.low, bounds.high], mode="lines", line=arm.line, **quiet(arm)
                )
        add_line(
            figure, arm, targets, [bounds.low if bounds.status == "=" else None for _, bounds in medians]
        )
        for status, symbol in ((">=", "triangle-up"), ("<=", "triangle-down")):
            bounded = [
                (x, bounds.low if status == ">=" else bounds.high)
                for x, bounds in medians
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


def _blank(tables: Sequence[TargetTable], y_title: str) -> tuple[PlainFigure, list[int]]:
    """(a figure against the target without its lines, the targets in whole percentages)."""
    targets = [round(100 * float(table.target)) for table in tables]
    return blank_figure(420, x_title="target accuracy (%)", y_title=y_title), targets


@once
def drawn_targets(report: Report) -> list[TargetTable]:
    """The tables that are drawn; empty for a single arm, and if no run has an evaluation by the horizon."""
    return [] if len(report.arms) < 2 else every_target(report.summary)


def every_target(summary: Summary) -> list[TargetTable]:
    """Tables of evenly spaced targets, over the accuracies that are reached by the horizon; for plots.

    Targets are whole percentages, at most about `MOST_DRAWN_TARGETS` of them.
    """
    accuracies = np.concatenate(
        [
            curve.accuracy[curve.times_s <= summary.horizon.horizon_s]
            for arm in summary.rows
            for curve in arm.curves
        ]
    )
    if not len(accuracies):
        return []
    first, last = max(1, int(100 * accuracies.min())), min(100, int(100 * accuracies.max()) + 1)
    step = 1 + (last - first) // MOST_DRAWN_TARGETS
    return [target_table(percent / 100, summary.comparison) for percent in range(first, last + 1, step)]


def _add_intervals(
    figure: PlainFigure,
    arm: Arm,
    x: Sequence[int],
    estimates: Sequence[MedianEstimate],
    divisor: float,
    above_zero: bool = False,
) -> None:
    """Draw the intervals of medians as a band; if there are two seeds, draw their values as dots instead.

    The band is interrupted where an interval has an infinite bound or, if `above_zero`, reaches 0.
    """
    for stretch in _stretches([_can_be_drawn(estimate.interval, above_zero) for estimate in estimates]):
        intervals = [interval for index in stretch if (interval := estimates[index].interval)]
        shared = {"x": [x[index] for index in stretch], "mode": "lines", **quiet(arm)}
        fill = {"fill": "tonexty", "fillcolor": translucent(arm.colour)}
        figure.add_scatter(y=[one.low / divisor for one in intervals], line={"width": 0}, **shared)
        figure.add_scatter(y=[one.high / divisor for one in intervals], line={"width": 0}, **fill, **shared)
    dots = [
        (target, seed.low / divisor)
        for target, estimate in zip(x, estimates, strict=True)
        if estimate.interval is None and len(estimate.per_seed) > 1
        for seed in estimate.per_seed
        if seed.status == "="
    ]
    if dots:
        figure.add_scatter(
            x=[target for target, _ in dots],
            y=[value for _, value in dots],
            mode="markers",
            marker={"size": 3, "color": arm.colour},
            **quiet(arm),
        )


def _stretches(present: Sequence[bool]) -> list[list[int]]:
    """The indices of each run of consecutive True values.

    >>> _stretches([True, True, False, True])
    [[0, 1], [3]]
    """
    grouped = groupby(range(len(present)), key=lambda index: present[index])
    return [list(stretch) for is_present, stretch in grouped if is_present]


def _can_be_drawn(bounds: Bounds | None, above_zero: bool) -> bool:
    if bounds is None or not math.isfinite(bounds.high):
        return False
    return bounds.low > 0 if above_zero else math.isfinite(bounds.low)


def _rows_of(arm: Arm, tables: Sequence[TargetTable]) -> list[Comparison]:
    return [next(row for row in table.rows if row.arm == arm.name) for table in tables]


def _below_plots(report: Report) -> Iterator[Plot]:
    if tables := drawn_targets(report):
        yield Plot(
            "below",
            "Time below a target, for every target",
            f"How long the unsmoothed accuracy was below a target up to the horizon; lower is better. Lines "
            f"are medians over seeds, {_band_clause(tables)}.",
            below_figure(report.arms, tables, report.summary.horizon),
        )


def _speedup_plots(report: Report) -> Iterator[Plot]:
    if tables := drawn_targets(report):
        counted = ", counted from the mass event" if tables[0].counts_from_event else ""
        yield Plot(
            "speedups",
            "Speed-up to a target, for every target",
            f"How many times sooner than {report.arms[0].name} an arm holds a target up to the horizon, on "
            f"a logarithmic axis; above 1 is sooner{counted}. "
            f"Lines are medians over seeds, {_band_clause(tables)}. "
            "Triangles that point up are lower bounds, triangles that point down are upper bounds, "
            "vertical bars reach from the lower to the upper bound; where there is none of these, the "
            "median is undetermined. Bands "
            "end where an interval reaches 0 or has no upper end.",
            speedup_figure(report.arms, tables),
        )


def _band_clause(tables: Sequence[TargetTable]) -> str:
    """A clause on the bands or dots beside the lines of medians."""
    level = levels_as_text([tables[0].rows[0]["time_below_s"].level])
    if not level:
        return "dots are single seeds"
    return f"bands are their intervals at each target by itself ({level} for the first arm), without a test"


BELOW = Figure("pays", _below_plots, NOT_TWO_ARMS)
SPEEDUPS = Figure("pays", _speedup_plots, NOT_TWO_ARMS)
