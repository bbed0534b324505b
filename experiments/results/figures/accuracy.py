"""The accuracy of arms over virtual time, and their personal accuracy beside that of the serving models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from experiments.results.drawing.arms import Arm, add_spread, quiet
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
    thinned,
)
from experiments.results.figures.figure import Figure
from experiments.results.statistics.drift.mass_events import mass_events_s
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.scales import time_unit
from experiments.results.tables.notes import come_and_go_note
from experiments.results.tables.personal import WHICH_IS_WHICH
from experiments.results.tables.report import Report

PERSONAL_ACCURACY = "personal_accuracy"


def accuracy_figure(arms: Sequence[Arm], horizon: Horizon, targets: Sequence[float]) -> PlainFigure:
    """Smoothed accuracy (%) against virtual time: thick lines are means over seeds, thin lines single seeds.

    The start and end of the comparison, mass events and targets are marked.
    """
    figure, seconds = _blank(horizon)
    for arm in arms:
        curves = arm.percent_over(seconds)
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
        add_spread(figure, arm, curves, has_band=False)
    _mark_times(figure, arms, horizon, seconds)
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


def personal_figure(arms: Sequence[tuple[Arm | None, Arm]], horizon: Horizon) -> PlainFigure:
    """Smoothed accuracies (%) against virtual time, means over seeds.

    An arm with a personal accuracy is there twice: with its curves, a thick line, and with those of its
    accuracy, a thin dotted one. Of another arm, whose clients use what serves them, the latter is thick.
    """
    figure, seconds = _blank(horizon)
    for personal, served in arms:
        style = served.line
        if personal is not None:
            name = f"{personal.label}, personal"
            add_spread(figure, personal, personal.percent_over(seconds), has_band=False, name=name)
            style |= {"width": 1.2, "dash": "dot"}
        name = f"{served.label}, served"
        add_spread(figure, served, served.percent_over(seconds), has_band=False, name=name, line=style)
    _mark_times(figure, [served for _, served in arms], horizon, seconds)
    return figure


def _blank(horizon: Horizon) -> tuple[PlainFigure, float]:
    """(a figure of accuracies (%) against virtual time without its lines, the unit of time in seconds)."""
    seconds, unit = time_unit(horizon.longest_s)
    title = f"virtual time ({unit})"
    return blank_figure(460, x_title=title, y_title="mean client accuracy (%)"), seconds


def _mark_times(figure: PlainFigure, arms: Sequence[Arm], horizon: Horizon, seconds: float) -> None:
    """Mark mass events, and the start and end of the comparison, in a figure over virtual time from 0 on."""
    figure.update_xaxes(rangemode="tozero")
    mark_events(figure, _events(arms, horizon), seconds)
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


def personal_arms(report: Report) -> list[tuple[Arm | None, Arm]]:
    """The arms with the curves of their personal accuracy, and as they are drawn elsewhere; None without.

    An arm has one if it is there in every seed, and is left out if it is in some.
    """
    found: list[tuple[Arm | None, Arm]] = []
    for arm, compared in zip(report.arms, report.summary.rows, strict=True):
        curves = [
            run.curves[PERSONAL_ACCURACY] for run in compared.measured if PERSONAL_ACCURACY in run.curves
        ]
        if len(curves) in (0, len(compared.measured)):
            found.append((replace(arm, curves=curves) if curves else None, arm))
    return found


def _plots(report: Report) -> Iterator[Plot]:
    summary = report.summary
    come_and_go = (
        ", while they hold samples to train on and to be tested on,"
        if come_and_go_note(summary) is not None
        else ""
    )
    yield Plot(
        "accuracy",
        "Accuracy against virtual time",
        "Accuracy of each client on its own held-out data, averaged over "
        f"{_scored_clients(report)}{come_and_go} and over the last {summary.window} evaluations. "
        f"{_lines(report)} Arms are compared from the first dotted line to the second, the "
        "horizon. Orange bands are the times of mass events in the runs, "
        "dashed lines are targets.",
        accuracy_figure(
            report.arms, summary.horizon, [goal for table in summary.targets if (goal := table.accuracy.mean)]
        ),
    )


def _personal_plots(report: Report) -> Iterator[Plot]:
    arms = personal_arms(report)
    seeds = f"means over {report.seeds}" if report.most_seeds > 1 else "of a single seed"
    if any(personal is not None for personal, _ in arms):
        yield Plot(
            "personal",
            "Personal accuracy against virtual time",
            f"{WHICH_IS_WHICH[PERSONAL_ACCURACY]} Dotted lines are the accuracy of the models that serve, "
            "after the arm's adaptation, of the arms that have another. Lines are "
            f"{seeds}, over the last {report.summary.window} evaluations; bands and dotted vertical lines "
            "are as in the figure of accuracy.",
            personal_figure(arms, report.summary.horizon),
        )


def _lines(report: Report) -> str:
    """A sentence on the lines."""
    if report.most_seeds == 1:
        return "Lines are of a single seed."
    means = f"Thick lines are means over {report.seeds}"
    return f"{means}, as far as all of them go; thin lines are single seeds."


def _scored_clients(report: Report) -> str:
    if not report.scores_a_sample:
        return "the clients"
    return f"a fixed sample of {report.scored:,} of the {report.num_clients:,} clients"


FIGURE = Figure("pays", _plots)
PERSONAL = Figure("pays", _personal_plots, "no arm has a personal accuracy")
