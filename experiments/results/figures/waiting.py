"""The time of closed rounds by its causes: a bar for each arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from experiments.results.drawing.menus import add_list
from experiments.results.drawing.phases import bar_style
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
    shown = shown_components(arms)
    sums = [[arm.seconds[name] for name in shown] for arm in arms]
    means = [[seconds / max(arm.rounds, 1.0) for seconds in row] for arm, row in zip(arms, sums, strict=True)]
    buttons = [_button("per round (mean)", means), _button("all rounds (sum)", sums)]
    bars, axis = buttons[0]["args"]
    figure = blank_figure(150 + 40 * len(arms), x_title=axis["xaxis.title.text"], y_title="")
    for name, x in zip(shown, bars["x"], strict=True):
        figure.add_bar(
            x=x,
            y=[verbatim(arm.arm) for arm in arms],
            name=name,
            orientation="h",
            marker=bar_style(name),
            hovertemplate=f"%{{y}}: {name} %{{x:.3g}}<extra></extra>",
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    add_list(figure, buttons)
    return figure


def _button(label: str, seconds: Sequence[Sequence[float]]) -> dict[str, Any]:
    """The button that draws these times of each arm, by component."""
    divisor, unit = time_unit(max(map(sum, seconds), default=0.0))
    columns = [[float(f"{value / divisor:.5g}") for value in column] for column in zip(*seconds, strict=True)]
    title = f"virtual time {label} ({unit})"
    return {"label": label, "method": "update", "args": [{"x": columns}, {"xaxis.title.text": title}]}


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


def _plots(report: Report) -> Iterator[Plot]:
    found = waits(report)
    if found:
        title = "What closed rounds were waiting for"
        caption = f"{_waiting_caption(found)} {omission(report)}".rstrip()
        yield Plot("waiting", title, caption, waiting_figure(found))


FIGURE = Figure("why", _plots, f"of all arms, {OF_STEPS}")
