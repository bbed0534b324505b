"""How long the rounds of arms took, and what became of their participants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import MAX_POINTS, blank_figure
from experiments.results.figures.figure import Figure
from experiments.results.statistics.absorbed import arms_of_steps
from experiments.results.statistics.scales import time_unit
from experiments.results.tables.report import Report

OUTCOME_COLOURS = {"completed": "#009E73", "abandoned": "#B8C4CC", "dropped out": "#D55E00"}


def durations_figure(arms: Sequence[Arm]) -> PlainFigure:
    """Durations of rounds in virtual time: a violin per arm over the rounds of all its seeds."""
    durations = [
        np.array([record.closed_s - record.opened_s for run in arm.runs for record in run.records])
        for arm in arms
    ]
    seconds, unit = time_unit(max(float(np.median(values)) for values in durations))
    figure = _blank(130 + 75 * len(arms), f"duration of a round ({unit})")
    for arm, values in zip(arms, durations, strict=True):
        figure.add_violin(
            x=np.quantile(values, np.linspace(0, 1, MAX_POINTS)) / seconds,
            name=arm.label,
            orientation="h",
            legendgroup=arm.name,
            line={"color": arm.colour},
            box={"visible": True},
            meanline={"visible": True},
            points=False,
            spanmode="hard",
            width=0.9,
        )
    figure.update_layout(showlegend=False)
    figure.update_xaxes(rangemode="tozero")
    return figure


def outcomes_figure(arms: Sequence[Arm]) -> PlainFigure:
    """The mean number of participants per round that completed, were abandoned or dropped out, by arm."""
    figure = _blank(130 + 48 * len(arms), "participants per round (mean)")
    for outcome, colour in OUTCOME_COLOURS.items():
        figure.add_bar(
            x=[_per_round(arm)[outcome] for arm in arms],
            y=[arm.label for arm in arms],
            name=outcome,
            orientation="h",
            marker={"color": colour},
            texttemplate="%{x:.1f}",
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            hovertemplate=f"%{{y}}: %{{x:.2f}} {outcome} per round<extra></extra>",
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    return figure


def _per_round(arm: Arm) -> dict[str, float]:
    records = [record for run in arm.runs for record in run.records]
    totals = {
        "completed": sum(len(record.completed) for record in records),
        "abandoned": sum(record.abandoned for record in records),
        "dropped out": sum(len(record.dropped) for record in records),
    }
    return {outcome: total / len(records) for outcome, total in totals.items()}


def _blank(height: int, x_title: str) -> PlainFigure:
    """A figure with a row for each arm, without its data; the first arm is at the top."""
    figure = blank_figure(height, x_title=x_title, y_title="")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def _durations_plots(report: Report) -> Iterator[Plot]:
    arms = ", ".join(arms_of_steps(report.summary.rows))
    yield Plot(
        "durations",
        "How long rounds took",
        "Durations of rounds in virtual time, over all rounds and seeds. A round lasts from its opening "
        "to the new models, including the wait for reports and for the slowest participant that "
        "completed. The box is the middle half with the median, the dashed line is the mean."
        + (f" Rounds of {arms} may have several server steps, and wait for no cohort." if arms else ""),
        durations_figure(report.arms),
    )


def _outcomes_plots(report: Report) -> Iterator[Plot]:
    # Visits that go on from round to round are abandoned for other reasons.
    outlasting = (
        " A visit that outlasts its round is abandoned only if it timed out or is too stale, if its model "
        "ceases to exist, or as the run ends."
        if arms_of_steps(report.summary.rows)
        else ""
    )
    yield Plot(
        "outcomes",
        "What became of the participants",
        "Completed: the update was absorbed. Abandoned: the visit was still out when enough others had "
        "arrived, or at a time limit. Dropped out: the client went offline or crashed before its visit "
        f"was complete.{outlasting}",
        outcomes_figure(report.arms),
    )


DURATIONS = Figure("why", _durations_plots)
OUTCOMES = Figure("why", _outcomes_plots)
