"""The time of closed rounds by its causes: a bar for each arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.results.drawing.menus import add_list
from experiments.results.drawing.phases import PATTERN, STYLES
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import blank_figure, verbatim
from experiments.results.figures.figure import Figure
from experiments.results.reading.not_recorded import LOG_VISITS
from experiments.results.statistics.scales import time_unit
from experiments.results.tables.report import Report
from experiments.results.tables.round_lengths import (
    OF_STEPS,
    ArmWaiting,
    are_unrecorded,
    lengths_sentence,
    omission,
    shown_components,
    waits,
)


def waiting_figure(arms: Sequence[ArmWaiting]) -> PlainFigure:
    """The time of rounds by its causes: a stacked bar per arm, per round or summed up to the horizon."""
    per_round = [
        {name: seconds / max(arm.rounds, 1.0) for name, seconds in arm.seconds.items()} for arm in arms
    ]
    views = [_view("per round (mean)", per_round), _view("all rounds (sum)", [arm.seconds for arm in arms])]
    shown = shown_components(arms)
    figure = blank_figure(150 + 40 * len(arms), x_title=views[0].title, y_title="")
    for name, x in zip(shown, views[0].columns(shown), strict=True):
        colour, pattern = STYLES[name]
        figure.add_bar(
            x=x,
            y=[verbatim(arm.arm) for arm in arms],
            name=name,
            orientation="h",
            marker={"color": colour, "pattern": {"shape": pattern, **PATTERN}},
            hovertemplate=f"%{{y}}: {name} %{{x:.3g}}<extra></extra>",
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    buttons = [
        {
            "label": view.label,
            "method": "update",
            "args": [{"x": view.columns(shown)}, {"xaxis.title.text": view.title}],
        }
        for view in views
    ]
    add_list(figure, buttons)
    return figure


@dataclass(frozen=True)
class _View:
    """One way to draw the bars: its label in the list, its axis title, and the values of each arm."""

    label: str
    title: str
    values: list[dict[str, float]]

    def columns(self, shown: Sequence[str]) -> list[list[float]]:
        return [[float(f"{row[name]:.5g}") for row in self.values] for name in shown]


def _view(label: str, seconds: Sequence[dict[str, float]]) -> _View:
    divisor, unit = time_unit(max((sum(row.values()) for row in seconds), default=0.0))
    return _View(
        label,
        f"virtual time {label} ({unit})",
        [{name: value / divisor for name, value in row.items()} for row in seconds],
    )


def _waiting_caption(arms: Sequence[ArmWaiting]) -> str:
    caption = (
        f"{lengths_sentence(arms)} Bars are means over seeds, of rounds that closed by the horizon. "
        "Before dispatch, a round waits for reports, for responses to requests, and until enough clients are "
        "online. Between rounds, responses to requests on updates arrive. "
    )
    if are_unrecorded(arms):
        return caption + (
            "Visits: from dispatch to the end of the round. What this time consists of was not recorded in "
            f"every run: {LOG_VISITS} = true records it, with a timeline of rounds."
        )
    return caption + (
        "From dispatch on, a round waits for the visit that closes it, the last that completed before its "
        "quota was full: its time is split into requests, download, compute and upload. Drop-out: the round "
        "ended when the last client that was out dropped out. Deadline: it ended at a time set by its pacing."
    )


def _plots(report: Report) -> list[Plot]:
    found = report.once(waits)
    if not found:
        return []
    title = "What closed rounds were waiting for"
    caption = f"{_waiting_caption(found)} {omission(report)}".rstrip()
    return [Plot("waiting", title, caption, waiting_figure(found))]


FIGURE = Figure("why", _plots, f"of all arms, {OF_STEPS}")
