"""The accuracy of arms against virtual time."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.results.drawing.arms import Arm, quiet
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import (
    INK,
    MAX_SEED_POINTS,
    MOST_EVENTS,
    Span,
    blank_figure,
    event_spans,
    mark_events,
    spread,
    thinned,
)
from experiments.results.figures.figure import Figure
from experiments.results.statistics.drift.mass_events import mass_events_s
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.scales import time_unit
from experiments.results.tables.notes import come_and_go_note
from experiments.results.tables.report import Report


def accuracy_figure(arms: Sequence[Arm], horizon: Horizon, targets: Sequence[float]) -> PlainFigure:
    """Smoothed accuracy (%) against virtual time: thick lines are means over seeds, thin lines single seeds.

    The start and end of the comparison, mass events and targets are marked.
    """
    seconds, unit = time_unit(horizon.longest_s)
    figure = blank_figure(460, x_title=f"virtual time ({unit})", y_title="mean client accuracy (%)")
    for arm in arms:
        curves = [(curve.times_s / seconds, 100 * curve.smoothed) for curve in arm.curves]
        for x, y in curves if len(curves) > 1 else []:
            drawn = thinned(len(x), MAX_SEED_POINTS)
            figure.add_scatter(
                x=x[drawn],
                y=y[drawn],
                mode="lines",
                line={**arm.line, "width": 0.8},
                opacity=0.45,
                **quiet(arm),
            )
        grid, mean, _, _ = spread(curves)
        figure.add_scatter(x=grid, y=mean, mode="lines", name=arm.label, legendgroup=arm.name, line=arm.line)
    mark_times(figure, arms, horizon)
    for target in targets:
        figure.add_hline(y=100 * target, line={"color": INK, "width": 1.2, "dash": "dash"})
        figure.add_annotation(
            x=1,
            xref="x domain",
            xanchor="left",
            xshift=6,
            align="left",
            y=100 * target,
            text=f"target<br>{100 * target:.1f} %",
            showarrow=False,
        )
    figure.update_layout(margin={"r": 112})
    return figure


def mark_times(figure: PlainFigure, arms: Sequence[Arm], horizon: Horizon) -> None:
    """Mark mass events, and the start and end of the comparison, in a figure over virtual time from 0 on."""
    seconds, _ = time_unit(horizon.longest_s)
    figure.update_xaxes(rangemode="tozero")
    mark_events(figure, [(first_s / seconds, last_s / seconds) for first_s, last_s in _events(arms, horizon)])
    for time_s, text in ((horizon.start_s, "start"), (horizon.horizon_s, "horizon")):
        figure.add_vline(
            x=time_s / seconds,
            line={"color": INK, "width": 1.2, "dash": "dot"},
            note={"text": text, "textangle": -90, "font": {"size": 12}},
        )


def _events(arms: Sequence[Arm], horizon: Horizon) -> list[Span]:
    """(first, last) virtual time of each mass event: those of the configuration, and others in the logs."""
    runs = [run for arm in arms for run in arm.runs]
    openings_s: dict[int, list[float]] = {}
    for run in runs:
        for step, time_s in mass_events_s(run, horizon.event_rounds, horizon.seconds_per_round).items():
            openings_s.setdefault(step, []).append(time_s)
    of_logs = [(min(times_s), max(times_s)) for _, times_s in sorted(openings_s.items())]
    return [
        *event_spans([horizon.events_s(run) for run in runs]),
        *(of_logs if len(of_logs) <= MOST_EVENTS else []),
    ]


def _plots(report: Report) -> list[Plot]:
    arms, summary = report.arms, report.summary
    come_and_go = (
        ", while they hold samples to train on and to be tested on,"
        if come_and_go_note(summary) is not None
        else ""
    )
    return [
        Plot(
            "accuracy",
            "Accuracy against virtual time",
            "Accuracy of each client on its own held-out data, averaged over "
            f"{_scored_clients(report)}{come_and_go} and over the last {summary.window} evaluations. "
            f"{_lines(report.most_seeds)} Arms are compared from the first dotted line to the second, the "
            "horizon. Orange bands are the times of mass events in the runs, "
            "dashed lines are targets.",
            accuracy_figure(
                arms, summary.horizon, [goal for table in summary.targets if (goal := table.accuracy.mean)]
            ),
        )
    ]


def _lines(seeds: int) -> str:
    """A sentence on the lines."""
    if seeds == 1:
        return "Lines are of a single seed."
    return f"Thick lines are means over {seeds} seeds, as far as all of them go; thin lines are single seeds."


def _scored_clients(report: Report) -> str:
    if not report.scores_a_sample:
        return "the clients"
    return f"a fixed sample of {report.scored:,} of the {report.num_clients:,} clients"


FIGURE = Figure("pays", _plots)
