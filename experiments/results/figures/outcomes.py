"""Outcomes of the participants of rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import blank_figure
from experiments.results.figures.figure import Figure
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.absorbed import arms_of_steps
from experiments.results.tables.report import Report

OUTCOME_COLOURS = {"completed": "#009E73", "abandoned": "#B8C4CC", "dropped out": "#D55E00"}


def outcomes_figure(arms: Sequence[Arm]) -> PlainFigure:
    """The mean number of participants per round that completed, were abandoned or dropped out, by arm."""
    figure = blank_figure(130 + 48 * len(arms), x_title="participants per round (mean)", y_title="")
    for outcome, colour in OUTCOME_COLOURS.items():
        figure.add_bar(
            x=[_per_round(arm.runs)[outcome] for arm in arms],
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
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def _per_round(runs: Sequence[ReportedRun]) -> dict[str, float]:
    records = [record for run in runs for record in run.records]
    totals = {
        "completed": sum(len(record.completed) for record in records),
        "abandoned": sum(record.abandoned for record in records),
        "dropped out": sum(len(record.dropped) for record in records),
    }
    return {outcome: total / len(records) for outcome, total in totals.items()}


def _of_steps(report: Report) -> str:
    """A sentence on what else abandons visits that go on from round to round; empty if there are none."""
    if not arms_of_steps(report.summary.compared):
        return ""
    return (
        " A visit that outlasts its round is abandoned only if it timed out or is too stale, if its model "
        "ceases to exist, or as the run ends."
    )


def _plots(report: Report) -> Iterator[Plot]:
    yield Plot(
        "outcomes",
        "What became of the participants",
        "Completed: the update was absorbed. Abandoned: the visit was still out when enough others had "
        "arrived, or at a time limit. Dropped out: the client went offline or crashed before its visit "
        f"was complete.{_of_steps(report)}",
        outcomes_figure(report.arms),
    )


FIGURE = Figure("why", _plots)
