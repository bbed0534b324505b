"""The plots of a section of `table.html`.

Of a sweep: accuracy and gains against the swept keys. Of other run directories: accuracy and differences over
time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from experiments.results.drawing.arms import Arm, add_line
from experiments.results.drawing.menus import add_choices
from experiments.results.drawing.plain_figure import PlainFigure, Trace, single, trace
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import (
    GRID,
    INK,
    Span,
    blank_figure,
    event_spans,
    mark_events,
    spread,
    verbatim,
)
from experiments.results.figures.difference import (
    bases,
    can_be_compared,
    difference_caption,
    difference_figure,
)
from experiments.results.many_runs.directories import MeasuredDirectory
from experiments.results.many_runs.sections import Row, Section
from experiments.results.many_runs.sweep_panels import MOST_PANELS, SweepLayout, sweep_layout
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.intervals import FEWEST_SEEDS, gain_estimate
from experiments.results.statistics.scales import time_unit
from experiments.results.wording import in_its_words

MOST_DRAWN_DIRECTORIES = 12
"""Most run directories of a section without a sweep that are drawn."""

SMALL_POINTS = 150
SMALL_PX = 340
PANEL_PX = 170
NARROWEST_PANEL_PX = 180
ROW_GAP_PX = 84
DODGE = 0.05
"""Largest sideways distance of neighbouring arms, as a share of the distance between two values."""

WIDEST_DODGE = 0.6
"""Largest such distance of the first arm from the last."""


Point = tuple[float, float]
"""A mean, and half its 95 % interval, which is NaN without one."""


@dataclass(frozen=True)
class SectionPlots:
    """The plots of a section.

    Attributes:
        plots: The plots; those of a run directory follow each other.
        least_px: The width below which the plots are scrolled sideways, in pixels; 0 if they fit anywhere.
        absence: A sentence that says why nothing is drawn; None if something is.
    """

    plots: list[Plot]
    least_px: int = 0
    absence: str | None = None


@in_its_words
def section_plots(section: Section, prefix: str) -> SectionPlots:
    """The plots of a section, whose ids begin with `prefix`."""
    if len(section.members) > 1 and all(member.cell.keys for member in section.members):
        return _sweep_plots(section, prefix)
    if len(section.members) > MOST_DRAWN_DIRECTORIES:
        return SectionPlots(
            [],
            absence=f"No figure is drawn: the section has {len(section.members)} run directories, and those "
            f"of at most {MOST_DRAWN_DIRECTORIES} are drawn. Their reports have them.",
        )
    return SectionPlots(
        [
            plot
            for index, member in enumerate(section.members)
            for plot in _directory_plots(section, member, f"{prefix}-{index}")
        ]
    )


def _directory_plots(section: Section, member: MeasuredDirectory, prefix: str) -> Iterator[Plot]:
    """Accuracy over time of the arms of a run directory, and their differences from its reference arm."""
    rows = [(member.arms.index(row.arm), row) for row in section.rows if member.name in row.directories]
    rows.sort(key=lambda item: item[0])
    arms = [
        Arm(
            row.arm,
            [run.log for run in row.runs],
            [run.curve for run in row.runs],
            position,
            row.comparison.has_trigger,
        )
        for position, row in rows
    ]
    if not arms:
        return
    events = event_spans([run.events_s for _, row in rows for run in row.runs])
    beside = "" if len(section.members) == 1 else f": {member.name}"
    seeds = max(len(arm.runs) for arm in arms)
    yield Plot(
        f"{prefix}-accuracy",
        f"Accuracy over virtual time{beside}",
        f"Averaged over clients and the last {section.window} evaluations; lines are means over "
        f"{seeds} seed{'s' if seeds > 1 else ''}. The dotted line is the horizon, orange bands are mass "
        "events.",
        _accuracy_figure(arms, section.horizon, events),
    )
    if can_be_compared(arms, section.horizon):
        small = {"height": SMALL_PX, "most_points": SMALL_POINTS}
        yield Plot(
            f"{prefix}-difference",
            f"Difference from {arms[0].name}{beside}",
            difference_caption(arms, section.window, may_choose=False),
            difference_figure(arms, section.horizon, events, **small, may_choose=False),
        )


def _accuracy_figure(arms: Sequence[Arm], horizon: Horizon, events: Sequence[Span]) -> PlainFigure:
    """The mean over seeds of each arm's smoothed accuracy (%) against virtual time."""
    seconds, unit = time_unit(horizon.longest_s)
    figure = blank_figure(SMALL_PX, x_title=f"virtual time ({unit})", y_title="mean client accuracy (%)")
    for arm in arms:
        grid, mean, _, _ = spread(arm.percent_over(seconds), SMALL_POINTS)
        add_line(figure, arm, single(grid), mean.astype(np.float32), legendgroup=None, showlegend=True)
    figure.update_xaxes(rangemode="tozero")
    mark_events(figure, events, seconds)
    figure.add_vline(x=horizon.horizon_s / seconds, line={"color": INK, "width": 1.2, "dash": "dot"})
    return figure


def _sweep_plots(section: Section, prefix: str) -> SectionPlots:
    """The accuracies of a sweep's arms, and then their gains, against the swept keys."""
    layout = sweep_layout(section.members)
    if len(layout.panels) > MOST_PANELS:
        return SectionPlots(
            [],
            absence=f"No figure is drawn: {' x '.join(layout.others)} has {len(layout.panels)} "
            f"{'combinations' if len(layout.others) > 1 else 'values'}, and at most {MOST_PANELS} panels are "
            "drawn.",
        )
    named = dict.fromkeys(arm for member in section.members for arm in member.arms)
    present = {row.arm for row in section.rows}
    arms = [Arm(name, [], [], position) for position, name in enumerate(named) if name in present]
    plots = [
        Plot(
            f"{prefix}-accuracy",
            f"Mean accuracy against {layout.key}",
            f"Mean accuracy over virtual time against {layout.key}.{_points_caption(section.rows, layout)}",
            sweep_accuracy_figure(section.rows, arms, layout),
        )
    ]
    if len(arms) > 1:
        gains = gain_figure(section.rows, arms, layout)
        plots.append(
            Plot(f"{prefix}-gain", f"Gain against {layout.key}", _gain_caption(section, arms, layout), gains)
        )
    return SectionPlots(plots, least_px=NARROWEST_PANEL_PX * layout.columns if layout.columns > 1 else 0)


def _gain_caption(section: Section, arms: Sequence[Arm], layout: SweepLayout) -> str:
    # Two arms share at most the seeds that each of them shares with the reference arm.
    compared = [row for row in section.rows if row.gain_pp is not None]
    chosen = "; the list below the plot chooses another base" if len(bases(arms)) > 1 else ""
    return (
        f"Mean accuracy of an arm minus that of {arms[0].name} in the same run directory, paired by seed, in "
        f"percentage points, against {layout.key}{chosen}.{_points_caption(compared, layout)}"
    )


def _points_caption(rows: Sequence[Row], layout: SweepLayout) -> str:
    """The sentences on panels, and on points with bars of these rows."""
    panels = f" A panel has one combination of {', '.join(layout.others)}." if layout.others else ""
    has_bars = any(len(row.seed_ids) >= FEWEST_SEEDS for row in rows)
    bars = (
        "bars 95 % intervals of each by itself (Student's t), of arms without a trigger"
        if has_bars
        else f"with under {FEWEST_SEEDS} seeds there are no bars"
    )
    return f"{panels} Points are means over seeds, {bars}; arms stand a little beside each other."


def sweep_accuracy_figure(rows: Sequence[Row], arms: Sequence[Arm], layout: SweepLayout) -> PlainFigure:
    """Mean accuracies (%) of all arms against a swept key; for the arguments see `gain_figure`."""
    figure = _panelled(layout, "mean accuracy (%)", rangemode="normal", zeroline=False)
    cells = {(name, row.arm): row.mean_accuracy for row in rows for name in row.directories}

    def point(name: str, arm: Arm) -> Point | None:
        found = cells.get((name, arm.name))
        if found is None or found.mean is None:
            return None
        return 100 * found.mean, math.nan if found.ci95 is None else 100 * (found.ci95[1] - found.mean)

    for number, arm in enumerate(arms):
        hover = f"{arm.label}: %{{y:.1f}} % at %{{customdata}}<extra></extra>"
        figure.add_traces(list(_lines(arm, partial(point, arm=arm), layout, _shift(number, arms), hover)))
    return figure


def gain_figure(rows: Sequence[Row], arms: Sequence[Arm], layout: SweepLayout) -> PlainFigure:
    """Gains in mean accuracy (percentage points) over a base arm, against a swept key.

    There is a panel for each combination of the other swept keys.

    Args:
        rows: The rows of the section.
        arms: The arms, the reference arm first; their runs are not used.
        layout: Where each run directory stands.
    """
    figure = _panelled(layout, "gain (pp)", rangemode="tozero", zeroline=True)
    cells = {(name, row.arm): row for row in rows for name in row.directories}

    def point(name: str, arm: Arm, base: Arm) -> Point | None:
        return _gain(cells.get((name, arm.name)), cells.get((name, base.name)))

    def of_base(base: Arm) -> Iterator[Trace]:
        for number, arm in enumerate(arms):
            hover = f"{arm.label} - {base.label}: %{{y:+.2f}} pp at %{{customdata}}<extra></extra>"
            gains = partial(point, arm=arm, base=base)
            if arm is not base:
                yield from _lines(arm, gains, layout, _shift(number, arms), hover, visible=False)

    add_choices(figure, [(f"base: {base.label}", of_base(base)) for base in bases(arms)])
    return figure


def _shift(number: int, arms: Sequence[Arm]) -> float:
    """How far right of a value the points of the arm of this number stand."""
    return min(DODGE, WIDEST_DODGE / len(arms)) * (number - (len(arms) - 1) / 2)


def _gain(row: Row | None, base: Row | None) -> Point | None:
    """(mean, half the 95 % interval) of the difference over the seeds that both have, in percentage points.

    The half is NaN with under three seeds, and if one of them has a trigger. None if there is no difference.
    """
    if row is None or base is None:
        return None
    accuracies, of_base = (
        dict(zip(found.seed_ids, found.mean_accuracy.per_seed, strict=True)) for found in (row, base)
    )
    seeds = [seed for seed in accuracies if seed in of_base]
    gain = gain_estimate([accuracies[seed] for seed in seeds], [of_base[seed] for seed in seeds], scale=100.0)
    if gain.mean is None:
        return None
    has_bar = not (row.comparison.has_trigger or base.comparison.has_trigger)
    return gain.mean, gain.ci95[1] - gain.mean if has_bar and gain.ci95 is not None else math.nan


def _lines(
    arm: Arm,
    point: Callable[[str], Point | None],
    layout: SweepLayout,
    shift: float,
    hover: str,
    visible: bool = True,
) -> Iterator[Trace]:
    """The line of an arm in each panel in which it has points; the first has the entry in the legend.

    `point` finds that of a run directory by name; `shift` is how far right of a value it stands.
    """
    has_entry = False
    for panel, (_, members) in enumerate(layout.panels):
        found = {position: point(name) for position, name in sorted(members.items())}
        points = {position: of_cell for position, of_cell in found.items() if of_cell is not None}
        if not points:
            continue
        halves = np.array([half for _, half in points.values()])
        bars = {"array": halves, "thickness": 1.2, "width": 3} if np.isfinite(halves).any() else None
        yield trace(
            "scatter",
            x=[position + shift for position in points],
            y=[mean for mean, _ in points.values()],
            customdata=[verbatim(layout.values[position]) for position in points],
            mode="lines+markers",
            name=arm.label,
            legendgroup=arm.name,
            line={**arm.line, "width": 1.8},
            marker={"size": 6},
            hovertemplate=hover,
            xaxis=_axis("x", panel),
            yaxis=_axis("y", panel),
            error_y=bars,
            visible=visible,
            showlegend=not has_entry,
        )
        has_entry = True


def _panelled(layout: SweepLayout, y_title: str, **of_y: Any) -> PlainFigure:
    """An empty figure with an x and a y axis for each panel; all panels show the same ranges.

    `of_y` are settings of the y axes.
    """
    columns = layout.columns
    num_rows = math.ceil(len(layout.panels) / columns)
    panel_px = PANEL_PX if len(layout.panels) > 1 else SMALL_PX - ROW_GAP_PX
    inner_px = num_rows * panel_px + (num_rows - 1) * ROW_GAP_PX
    margin = {"l": 60, "r": 20, "t": 90, "b": 64}
    figure = blank_figure(inner_px + margin["t"] + margin["b"], x_title="", y_title="")
    gap = 0.03 if columns > 1 else 0.0
    width = (1 - gap * (columns - 1)) / columns
    axes: dict[str, Any] = {}
    titles = []
    for index, (title, _) in enumerate(layout.panels):
        row, column = divmod(index, columns)
        left = column * (width + gap)
        top = 1 - row * (panel_px + ROW_GAP_PX) / inner_px
        is_last = index + columns >= len(layout.panels)
        axes[_axis("xaxis", index)] = _x_axis(layout, (left, min(left + width, 1.0)), index, is_last)
        bottom = max(top - panel_px / inner_px, 0.0)
        title_of_y = y_title if column == 0 else ""
        axes[_axis("yaxis", index)] = {**_y_axis((bottom, top), index, title_of_y), **of_y}
        titles.append(_title(title, left + width / 2, top))
    figure.update_layout(
        **axes, annotations=titles, margin=margin, legend={"yref": "container", "y": 1, "yanchor": "top"}
    )
    return figure


def _x_axis(layout: SweepLayout, domain: tuple[float, float], panel: int, has_title: bool) -> dict[str, Any]:
    count = len(layout.values)
    return {
        "domain": domain,
        "anchor": _axis("y", panel),
        "range": [-0.5, count - 0.5],
        "tickvals": list(range(count)),
        "ticktext": [verbatim(value) for value in layout.values],
        "tickfont": {"size": 12},
        "title": {"text": verbatim(layout.key) if has_title else "", "font": {"size": 13}},
        "gridcolor": GRID,
        "linecolor": "#9aa5b1",
        "zeroline": False,
    }


def _y_axis(domain: tuple[float, float], panel: int, title: str) -> dict[str, Any]:
    return {
        "domain": domain,
        "anchor": _axis("x", panel),
        "matches": "y" if panel else None,
        "showticklabels": bool(title),
        "tickfont": {"size": 12},
        "title": {"text": title, "font": {"size": 13}},
        "gridcolor": GRID,
        "linecolor": "#9aa5b1",
        "zerolinecolor": INK,
        "zerolinewidth": 1.2,
    }


def _title(text: str, x: float, y: float) -> dict[str, Any]:
    """The title of a panel, above its middle, with a line for each two keys."""
    parts = text.split(", ")
    lines = [", ".join(parts[at : at + 2]) for at in range(0, len(parts), 2)]
    return {
        "text": "<br>".join(map(verbatim, lines)),
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12},
    }


def _axis(letter: str, panel: int) -> str:
    """Plotly's name of an axis of a panel: x, x2, x3, ...; or of its layout: xaxis, xaxis2, ..."""
    return letter if panel == 0 else f"{letter}{panel + 1}"
