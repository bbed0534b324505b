"""How long rounds took, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from emulator.arrays import Floats
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import MAX_POINTS, blank_figure
from experiments.results.figures.figure import Figure
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.absorbed import arms_of_steps
from experiments.results.statistics.scales import time_unit
from experiments.results.tables.report import Report


def durations_figure(arms: Sequence[Arm]) -> PlainFigure:
    """Durations of rounds in virtual time: a violin per arm over the rounds of all its seeds."""
    durations = [_durations(arm.runs) for arm in arms]
    seconds, unit = time_unit(max(float(np.median(values)) for values in durations))
    figure = blank_figure(130 + 75 * len(arms), x_title=f"duration of a round ({unit})", y_title="")
    for arm, values in zip(arms, durations, strict=True):
        figure.add_violin(
            x=np.quantile(values, np.linspace(0, 1, MAX_POINTS)) / seconds,
            name=arm.label,
            orientation="h",
            line={"color": arm.colour},
            box={"visible": True},
            meanline={"visible": True},
            points=False,
            spanmode="hard",
            width=0.9,
        )
    figure.update_layout(showlegend=False)
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def _durations(runs: Sequence[ReportedRun]) -> Floats:
    return np.array([record.closed_s - record.opened_s for run in runs for record in run.records])


def _of_steps(report: Report) -> str:
    """A sentence on the arms whose rounds may have several server steps; empty if there are none."""
    arms = arms_of_steps(report.summary.compared)
    return (
        f" Rounds of {', '.join(arms)} may have several server steps, and wait for no cohort." if arms else ""
    )


def _plots(report: Report) -> Iterator[Plot]:
    yield Plot(
        "durations",
        "How long rounds took",
        "Durations of rounds in virtual time, over all rounds and seeds. A round lasts from its opening "
        "to the new models, including the wait for reports and for the slowest participant that "
        "completed. The box is the middle half with the median, the dashed line is the mean."
        f"{_of_steps(report)}",
        durations_figure(report.arms),
    )


FIGURE = Figure("why", _plots)
