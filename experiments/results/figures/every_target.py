"""Common functions of the figures over every target: evenly spaced targets, and bands of intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from experiments.results.drawing.arms import Arm, quiet
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.style import translucent
from experiments.results.statistics.comparisons import Comparison, once
from experiments.results.statistics.medians import Bounds, MedianEstimate, levels_as_text
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.targets import TargetTable, target_table
from experiments.results.tables.report import Report

MOST_DRAWN_TARGETS = 50
NOT_TWO_ARMS = "there are not two arms with an evaluation by the horizon"


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


def band_clause(tables: Sequence[TargetTable]) -> str:
    """A clause on the bands or dots beside the lines of medians."""
    level = levels_as_text([tables[0].rows[0]["time_below_s"].level])
    if not level:
        return "dots are single seeds"
    return f"bands are their intervals at each target by itself ({level} for the first arm), without a test"


def add_intervals(
    figure: PlainFigure,
    arm: Arm,
    tables: Sequence[TargetTable],
    estimates: Sequence[MedianEstimate],
    divisor: float,
    above_zero: bool = False,
) -> None:
    """Draw the intervals of medians as a band; if there are two seeds, draw their values as dots instead.

    The band is interrupted where an interval has an infinite bound or, if `above_zero`, reaches 0.
    """
    x = target_axis(tables)
    for stretch in _stretches([_can_be_drawn(estimate.interval, above_zero) for estimate in estimates]):
        intervals = [estimates[index].interval for index in stretch]
        lows = [interval.low / divisor for interval in intervals if interval is not None]
        highs = [interval.high / divisor for interval in intervals if interval is not None]
        shared = {"x": [x[index] for index in stretch], "mode": "lines", **quiet(arm)}
        figure.add_scatter(y=lows, line={"width": 0}, **shared)
        figure.add_scatter(
            y=highs, line={"width": 0}, fill="tonexty", fillcolor=translucent(arm.colour), **shared
        )
    dots = [
        (x[index], seed.low / divisor)
        for index, estimate in enumerate(estimates)
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
    stretches: list[list[int]] = []
    for index, is_present in enumerate(present):
        if is_present and index and present[index - 1]:
            stretches[-1].append(index)
        elif is_present:
            stretches.append([index])
    return stretches


def _can_be_drawn(bounds: Bounds | None, above_zero: bool) -> bool:
    if bounds is None or not math.isfinite(bounds.high):
        return False
    return bounds.low > 0 if above_zero else math.isfinite(bounds.low)


def rows_of(arm: Arm, tables: Sequence[TargetTable]) -> list[Comparison]:
    return [next(row for row in table.rows if row.arm == arm.name) for table in tables]


def target_axis(tables: Sequence[TargetTable]) -> list[int]:
    """The tables' targets in whole percentages, as `every_target` makes them."""
    return [round(100 * float(table.target)) for table in tables]
