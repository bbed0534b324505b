"""The plot of differences over time: an arm's accuracy minus that of a base arm at the same virtual time.

The reference arm is the base; if there are few arms, a list below the plot chooses any other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from emulator.arrays import Floats
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.menus import add_choices
from experiments.results.drawing.plain_figure import PlainFigure, Trace, single, trace
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import (
    INK,
    MAX_POINTS,
    Span,
    blank_figure,
    event_spans,
    mark_events,
    thinned,
    translucent,
)
from experiments.results.figures.figure import Figure
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.intervals import FEWEST_SEEDS, pointwise_estimates
from experiments.results.statistics.scales import time_unit
from experiments.results.statistics.time_to_accuracy import AccuracyCurve
from experiments.results.tables.report import Report

MOST_BASES = 8
"""With more arms than these, the reference arm is the only base: the figure grows with their square."""


Difference = tuple[Floats, Floats, Floats | None]
"""An arm's smoothed accuracy minus that of a base arm, the mean over the seeds that both have.

Three arrays of shape (n,): the virtual times (s) at which it changes, and the horizon, ascending and thinned;
the difference at each of them, in percentage points; and half its 95 % t interval at each time by itself,
which is None with under three shared seeds, and if one of the arms has a trigger.
"""


def difference_curve(
    arm: Arm, base: Arm, horizon: Horizon, most_points: int = MAX_POINTS
) -> Difference | None:
    """The difference from `base` from the start of the comparison to the horizon, paired by seed.

    Each evaluation holds until the next one. At most `most_points` times, evenly spaced among those of all
    evaluations, are kept. None if the arms share no seed, or if the comparison has no stretch of time.
    """
    bases = {run.seed: curve for run, curve in zip(base.runs, base.curves, strict=True)}
    pairs = [
        (curve, bases[run.seed]) for run, curve in zip(arm.runs, arm.curves, strict=True) if run.seed in bases
    ]
    if not pairs or horizon.start_s >= horizon.horizon_s:
        return None
    evaluated_s = np.concatenate([curve.times_s for pair in pairs for curve in pair])
    inside_s = evaluated_s[(evaluated_s > horizon.start_s) & (evaluated_s < horizon.horizon_s)]
    times_s = np.unique([horizon.start_s, *inside_s, horizon.horizon_s])
    times_s = times_s[thinned(len(times_s), most_points)]
    differences = np.stack([_held(curve, times_s) - _held(beside, times_s) for curve, beside in pairs])
    means_pp, halves_pp = pointwise_estimates(100 * differences)
    return times_s, means_pp, None if arm.has_trigger or base.has_trigger else halves_pp


def can_be_compared(arms: Sequence[Arm], horizon: Horizon) -> bool:
    """Whether there are two arms, and a stretch of time over which they can be compared."""
    return len(arms) > 1 and horizon.start_s < horizon.horizon_s


def bases(arms: Sequence[Arm]) -> Sequence[Arm]:
    """The arms that can be the base: all, if there is a choice and they are few; else the reference arm."""
    return arms if 2 < len(arms) <= MOST_BASES else arms[:1]


def difference_caption(arms: Sequence[Arm], window: int, *, may_choose: bool = True) -> str:
    """The caption of `difference_figure` over curves that are smoothed over `window` evaluations."""
    chosen = "; the list below the plot chooses another base" if may_choose and len(bases(arms)) > 1 else ""
    # Two arms share at most the seeds that each of them shares with the reference arm.
    has_band = max(len(arm.runs) for arm in arms[1:]) >= FEWEST_SEEDS
    band = (
        "bands are 95 % intervals at each instant by itself (Student's t, paired by seed), of arms without a "
        "trigger"
        if has_band
        else f"with under {FEWEST_SEEDS} seeds there are no bands"
    )
    return (
        f"Accuracy of an arm minus that of {arms[0].name} at the same virtual time, up to the horizon, in "
        f"percentage points{chosen}. Accuracies are averaged over the last {window} evaluations, and hold "
        f"until the next one. Lines are means over the seeds that both arms have; {band}."
    )


def difference_figure(
    arms: Sequence[Arm],
    horizon: Horizon,
    events: Sequence[Span],
    *,
    height: int = 460,
    most_points: int = MAX_POINTS,
    may_choose: bool = True,
) -> PlainFigure:
    """Accuracy minus that of the base arm (percentage points) against virtual time, with 95 % bands.

    Args:
        arms: The arms, the reference arm first.
        horizon: The stretch of virtual time.
        events: The first and last virtual time at which each mass event began.
        height: Height in pixels, without the list of bases.
        most_points: Most points of a line.
        may_choose: Whether the figure has a list of `bases`.
    """
    seconds, unit = time_unit(horizon.longest_s)
    figure = blank_figure(height, x_title=f"virtual time ({unit})", y_title="difference in accuracy (pp)")
    figure.update_xaxes(range=[0, horizon.horizon_s / seconds])
    figure.update_yaxes(rangemode="tozero", zeroline=True, zerolinecolor=INK, zerolinewidth=1.2)
    mark_events(figure, [span for span in events if span[0] < horizon.horizon_s], seconds)

    def of_base(base: Arm) -> Iterator[Trace]:
        for arm in arms:
            if arm is not base and (curve := difference_curve(arm, base, horizon, most_points)) is not None:
                yield from _lines(arm, base, curve, horizon)

    drawn = bases(arms) if may_choose else arms[:1]
    add_choices(figure, [(f"base: {base.label}", of_base(base)) for base in drawn])
    return figure


def _held(curve: AccuracyCurve, times_s: Floats) -> Floats:
    """The smoothed accuracy at these times, none of which is before the first evaluation."""
    return curve.smoothed[np.searchsorted(curve.times_s, times_s, side="right") - 1]


def _lines(arm: Arm, base: Arm, curve: Difference, horizon: Horizon) -> Iterator[Trace]:
    """The band, if there is one, and the line of a difference."""
    times_s, mean_pp, half_pp = curve
    seconds, unit = time_unit(horizon.longest_s)
    # In single precision, which halves the page.
    x = single(times_s / seconds)
    shared = {"legendgroup": arm.name}
    if half_pp is not None:
        edges = np.concatenate([mean_pp - half_pp, (mean_pp + half_pp)[::-1]])
        yield trace(
            "scatter",
            x=np.concatenate([x, x[::-1]]),
            y=edges.astype(np.float32),
            mode="lines",
            fill="toself",
            fillcolor=translucent(arm.colour),
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
            **shared,
        )
    yield trace(
        "scatter",
        x=x,
        y=mean_pp.astype(np.float32),
        name=arm.label,
        **arm.marked_line,
        hovertemplate=f"{arm.label} - {base.label}: %{{y:+.2f}} pp at %{{x:.4g}} {unit}<extra></extra>",
        showlegend=True,
        **shared,
    )


def _plots(report: Report) -> Iterator[Plot]:
    arms, summary = report.arms, report.summary
    if can_be_compared(arms, summary.horizon):
        events = event_spans([summary.horizon.events_s(run) for arm in arms for run in arm.runs])
        yield Plot(
            "difference",
            "Difference in accuracy over time",
            difference_caption(arms, summary.window),
            difference_figure(arms, summary.horizon, events),
        )


FIGURE = Figure("pays", _plots, "no other arm has a stretch of virtual time in common with the reference arm")
