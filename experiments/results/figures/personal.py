"""The personal accuracy of arms against virtual time, beside the accuracy of the models that serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import blank_figure, spread
from experiments.results.figures.accuracy import mark_times
from experiments.results.figures.figure import Figure
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.scales import time_unit
from experiments.results.tables.personal import WHICH_IS_WHICH
from experiments.results.tables.report import Report

PERSONAL = "personal_accuracy"


def personal_figure(arms: Sequence[tuple[Arm | None, Arm]], horizon: Horizon) -> PlainFigure:
    """Smoothed accuracies (%) against virtual time, means over seeds.

    An arm with a personal accuracy is there twice: with its curves, a thick line, and with those of its
    accuracy, a thin dotted one. Of another arm, whose clients use what serves them, the latter is thick.
    """
    seconds, unit = time_unit(horizon.longest_s)
    figure = blank_figure(460, x_title=f"virtual time ({unit})", y_title="mean client accuracy (%)")
    for personal, served in arms:
        thin = {"width": 1.2, "dash": "dot"}
        lines: list[tuple[Arm, str, dict[str, Any]]] = [(served, "served", {} if personal is None else thin)]
        if personal is not None:
            lines.insert(0, (personal, "personal", {}))
        for arm, kind, style in lines:
            curves = [(curve.times_s / seconds, 100 * curve.smoothed) for curve in arm.curves]
            grid, mean, _, _ = spread(curves)
            figure.add_scatter(
                x=grid,
                y=mean,
                mode="lines",
                name=f"{arm.label}, {kind}",
                legendgroup=arm.name,
                line={**arm.line, **style},
            )
    mark_times(figure, [served for _, served in arms], horizon)
    return figure


def personal_arms(report: Report) -> list[tuple[Arm | None, Arm]]:
    """The arms with the curves of their personal accuracy, and as they are drawn elsewhere; None without.

    An arm has one if it is there in every seed, and is left out if it is in some.
    """
    found: list[tuple[Arm | None, Arm]] = []
    for arm, compared in zip(report.arms, report.summary.rows, strict=True):
        curves = [run.curves[PERSONAL] for run in compared.measured if PERSONAL in run.curves]
        if len(curves) in (0, len(compared.measured)):
            found.append((replace(arm, curves=curves) if curves else None, arm))
    return found


def _plots(report: Report) -> list[Plot]:
    arms = personal_arms(report)
    if all(personal is None for personal, _ in arms):
        return []
    seeds = f"means over {report.most_seeds} seeds" if report.most_seeds > 1 else "of a single seed"
    return [
        Plot(
            "personal",
            "Personal accuracy against virtual time",
            f"{WHICH_IS_WHICH[PERSONAL]} Dotted lines are the accuracy of the models that serve, after the "
            f"arm's adaptation, of the arms that have another. Lines are {seeds}, over the last "
            f"{report.summary.window} evaluations; bands and dotted vertical lines are as in the figure of "
            "accuracy.",
            personal_figure(arms, report.summary.horizon),
        )
    ]


FIGURE = Figure("pays", _plots, "no arm has a personal accuracy")
