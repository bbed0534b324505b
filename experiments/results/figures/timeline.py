"""Timelines of single rounds: a row per visit, with bars for its phases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.menus import ROW_PX, add_below, add_list
from experiments.results.drawing.phases import bar_style
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import INK, blank_figure, thinned, verbatim
from experiments.results.figures.figure import Figure
from experiments.results.reading.not_recorded import LOG_VISITS
from experiments.results.statistics.clients.visits import NO_DEVICE, PHASES, VisitColumns, cut_phases
from experiments.results.statistics.scales import time_scale, time_unit
from experiments.results.tables.chosen_rounds import TimelineRound
from experiments.results.tables.report import Report
from experiments.results.tables.round_lengths import omission, waits

MOST_SLOWEST, MOST_OTHERS = 30, 10
"""Of a round with more visits, that many end last, and that many are spread evenly over the others."""

TITLE_PX = 36
"""Height of the two lines of the title of the time axis, beyond those of an axis with one."""

LINE = {"color": "#7b8794", "width": 1.2, "dash": "dot"}
OUTCOMES = (
    ("completed", "circle", "#009E73"),
    ("abandoned", "x", "#7b8794"),
    ("dropped out", "triangle-down", "#D55E00"),
    ("crashed", "diamond", "#882255"),
)


def drawn_visits(visits: VisitColumns) -> Ints:
    """The rows of the visits of a round that are drawn, by end: the last ones, and a sample of the others."""
    order = np.lexsort((visits.visit, visits.end_s))
    if len(order) <= MOST_SLOWEST + MOST_OTHERS:
        return order
    others = order[:-MOST_SLOWEST]
    return np.concatenate([others[thinned(len(others), MOST_OTHERS)], order[-MOST_SLOWEST:]])


def timeline_figure(rounds: Sequence[TimelineRound]) -> PlainFigure:
    """The visits of a round as rows of bars, from its opening to its end; times are since the dispatch.

    The first round is shown at first, unless a round of its arm is the "slowest". A slider chooses the round
    of an arm, and a list the arm, if there is more than one. Visits are sorted by their end, the last one at
    the bottom; symbols at their ends are outcomes. Vertical lines are the opening, the dispatch and the end
    of the round.

    Args:
        rounds: At least one; those of an arm follow each other.
    """
    by_arm: dict[str, list[TimelineRound]] = {}
    for item in rounds:
        by_arm.setdefault(item.arm, []).append(item)
    sliders = {arm: _slider(items) for arm, items in by_arm.items()}
    data, layout = _shown(sliders[rounds[0].arm])
    figure = blank_figure(560, x_title="", y_title="client")
    traces = list(zip(data["x"], data["y"], data["text"], strict=True))
    for phase, (x, y, _) in zip(PHASES, traces, strict=False):
        figure.add_bar(
            x=x,
            y=y,
            name=phase,
            orientation="h",
            width=0.72,
            marker=bar_style(phase, line={"width": 0}),
            hovertemplate=f"{phase}: %{{x:.3g}}<extra></extra>",
        )
    for (outcome, symbol, colour), (x, y, text) in zip(OUTCOMES, traces[len(PHASES) :], strict=True):
        figure.add_scatter(
            x=x,
            y=y,
            text=text,
            name=outcome,
            mode="markers",
            marker={"symbol": symbol, "size": 9, "color": colour, "line": {"color": INK, "width": 0.8}},
            hovertemplate="%{text}<extra></extra>",
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    figure.relayout(layout)
    figure.update_yaxes(showgrid=False, zeroline=False, tickfont={"size": 10})
    rows = 0
    if len(rounds) > 1:
        rows = 2 * ROW_PX + TITLE_PX
        add_below(figure, rows, sliders=[sliders[rounds[0].arm]])
    if len(sliders) > 1:
        buttons = []
        for arm, slider in sliders.items():
            data, layout = _shown(slider)
            args = [data, {**layout, "sliders": [slider]}]
            buttons.append({"label": verbatim(arm), "method": "update", "args": args})
        add_list(figure, buttons, rows_above=rows)
    return figure


def timeline_text(rounds: Sequence[TimelineRound]) -> str:
    """A text on the round shown at first, for readers who do not see the figure."""
    of_arm = [item for item in rounds if item.arm == rounds[0].arm]
    item = of_arm[_first_shown(of_arm)]
    visits = item.visits
    counts = [
        f"{int(np.count_nonzero(mask)):,} {name}"
        for (name, _, _), mask in zip(OUTCOMES, _by_outcome(visits), strict=True)
        if mask.any()
    ]
    length_s = ends_at(item.record)
    last = (
        f" The last visit to end is of client {visits.client[drawn_visits(visits)[-1]]}."
        if len(visits)
        else ""
    )
    which = f"round {item.record.round}{f' ({item.reason})' if item.reason else ''}"
    return (
        f"At first {item.arm}, seed {item.seed}, {which}: {len(visits):,} visits, {', '.join(counts)}, "
        f"{time_scale(length_s)(length_s)} from the dispatch to the end of the round.{last}"
    )


def _by_outcome(visits: VisitColumns) -> tuple[Bools, Bools, Bools, Bools]:
    """Which visits have each of `OUTCOMES`, in their order."""
    abandoned = ~(visits.completed | visits.dropped)
    return visits.completed, abandoned, visits.dropped & ~visits.crashed, visits.dropped & visits.crashed


def _view(item: TimelineRound) -> list[dict[str, Any]]:
    """What shows a round, as the arguments of plotly's `update`: the data of all traces, and the layout."""
    record = item.record
    visits = item.visits.take(drawn_visits(item.visits))
    length_s = record.closed_s - record.opened_s
    divisor, unit = time_unit(length_s)
    spent = cut_phases(visits) / divisor
    ends = (visits.end_s - record.dispatched_s) / divisor
    rows = np.arange(len(visits))
    masks = _by_outcome(visits)
    x = [_short(column) for column in spent.T]
    y = [rows.tolist()] * len(PHASES)
    text: list[list[str]] = [[]] * len(PHASES)
    for (outcome, _, _), mask in zip(OUTCOMES, masks, strict=True):
        marked = np.flatnonzero(mask)
        x.append(_short(ends[marked]))
        y.append(marked.tolist())
        text.append(
            [
                f"client {visits.client[row]}{_device(int(visits.device[row]))}: {outcome}, "
                f"{ends[row]:.3g} {unit}"
                for row in marked.tolist()
            ]
        )
    opened, closed = -(record.dispatched_s - record.opened_s) / divisor, (ends_at(record) / divisor)
    span = max(closed - opened, 1e-9)
    lines = [(opened, "opened", "right"), (0.0, "dispatched", "right"), (closed, "closed", "left")]
    if -opened < 0.04 * span:
        lines = [(opened, "", "right"), (0.0, "opened, dispatched", "right"), lines[2]]
    seen = f"{len(visits)} of {len(item.visits)} visits" if len(visits) < len(item.visits) else ""
    title = f"{item.arm}, seed {item.seed}, round {record.round}"
    about = "; ".join(part for part in (f"time since dispatch ({unit})", seen) if part)
    layout = {
        "xaxis.title.text": f"{verbatim(title)}<br>{about}",
        "xaxis.range": [opened - 0.06 * span, closed + 0.06 * span],
        "yaxis.range": [len(visits) - 0.5, -0.5],
        "yaxis.tickmode": "array",
        "yaxis.tickvals": rows.tolist(),
        "yaxis.ticktext": [str(client) for client in visits.client.tolist()],
        "shapes": [
            {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": LINE}
            for at, _, _ in lines
        ],
        "annotations": [
            {
                "x": at,
                "y": 0.5,
                "yref": "paper",
                "text": name,
                "textangle": -90,
                "showarrow": False,
                "xanchor": anchor,
                "font": {"size": 12},
            }
            for at, name, anchor in lines
            if name
        ],
    }
    return [{"x": x, "y": y, "text": text}, layout]


def ends_at(record: RoundRecord) -> float:
    """Virtual seconds from the dispatch of a round to its end."""
    return record.closed_s - record.dispatched_s


def _first_shown(rounds: Sequence[TimelineRound]) -> int:
    """The index of the slowest round, or of the first."""
    return next((index for index, item in enumerate(rounds) if item.reason == "slowest"), 0)


def _slider(rounds: Sequence[TimelineRound]) -> dict[str, Any]:
    """The slider that chooses one of the rounds of an arm."""
    steps = [
        {
            "label": f"{item.record.round} ({item.reason})" if item.reason else f"{item.record.round}",
            "method": "update",
            "args": _view(item),
        }
        for item in rounds
    ]
    return {
        "active": _first_shown(rounds),
        "currentvalue": {"prefix": "round ", "font": {"size": 13}},
        "pad": {"t": 64 + TITLE_PX, "l": 8, "r": 8},
        "steps": steps,
    }


def _shown(slider: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The data and the layout of the round that a slider shows at first."""
    data, layout = slider["steps"][slider["active"]]["args"]
    return data, layout


def _device(row: int) -> str:
    return "" if row == NO_DEVICE else f", device {row}"


def _short(values: Any) -> list[float]:
    """The numbers with four significant digits, which makes the page smaller."""
    return [float(f"{value:.4g}") for value in values.tolist()]


def _plots(report: Report) -> Iterator[Plot]:
    found = waits(report)
    rounds = [item for arm in found for item in arm.shown]
    if not rounds:
        return
    seed = f"seed {rounds[0].seed}" if len({item.seed for item in rounds}) == 1 else "each arm's own"
    caption = (
        "A row per visit, sorted by its end: what it spent on requests, download, compute and upload until "
        "it ended. Its symbol says how: completed, abandoned, dropped out, or crashed. The dotted lines "
        "are the "
        "opening of the round, the dispatch, and its end; times are since the dispatch. The slider chooses a "
        f"round of {seed}: the slowest, the median, and others spread evenly"
        f"{'; the list chooses the arm' if len(found) > 1 else ''}. Of a round with more than "
        f"{MOST_SLOWEST + MOST_OTHERS} visits, the {MOST_SLOWEST} that ended last are drawn, and "
        f"{MOST_OTHERS} evenly spread over the others. {omission(report)}"
    ).rstrip()
    title = "Who is slow: the visits of a round"
    text = f"{title}. {timeline_text(rounds)}"
    yield Plot("timeline", title, caption, timeline_figure(rounds), text)


FIGURE = Figure("why", _plots, needs=LOG_VISITS)
