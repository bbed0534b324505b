"""What the trigger of a global re-clustering measured, its limit, and when it fired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.results.drawing.arms import Arm
from experiments.results.drawing.menus import add_list_of_arms
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import MAX_POINTS, MAX_SEED_POINTS, blank_figure, thinned
from experiments.results.figures.figure import Figure
from experiments.results.figures.over_rounds import (
    VALUE_COLOUR,
    drawn,
    floats,
    list_clause,
    shown_at_first,
    small,
)
from experiments.results.reading.recorded import squared_distances
from experiments.results.reading.run_directory import FinishedRun
from experiments.results.statistics.trigger_limits import limit, measured
from experiments.results.tables.report import Report

LIMIT_COLOUR, FIRED_COLOUR = "#D55E00", "#CC79A7"


def has_trigger(run: FinishedRun) -> bool:
    """Whether a trigger was evaluated in some round."""
    return any(record.trigger is not None for record in run.records)


def trigger_figure(arms: Sequence[Arm], *, squared: Mapping[str, bool] | None = None) -> PlainFigure:
    """What the trigger of an arm measured, its limit, and the rounds in which it fired, over rounds.

    One arm is shown at a time, at first the last one whose trigger fired; a list below the figure chooses it.
    Thin lines are single seeds.

    Args:
        arms: Arms with a trigger; at least one.
        squared: Whether the distances of an arm's clusterer are squared, by the arm's name; by default none
            are.
    """
    figure = blank_figure(420, x_title="round", y_title="distance")
    drawn_for: list[str] = []
    shown = shown_at_first(arms, lambda record: record.trigger is not None and record.trigger.fired)
    for arm in arms:
        are_squared = (squared or {}).get(arm.name, False)
        fired: list[tuple[int, float]] = []
        for number, run in enumerate(arm.runs):
            evaluated = [(record.round, record.trigger) for record in run.records if record.trigger]
            if not evaluated:
                continue
            rounds = np.array([round_ for round_, _ in evaluated])
            values = floats([measured(trigger) for _, trigger in evaluated])
            limits = floats([limit(trigger, are_squared=are_squared) for _, trigger in evaluated])
            is_fired = np.array([trigger.fired for _, trigger in evaluated])
            # A trigger with a single cluster may fire without a distance: its mark is at 0.
            heights = np.nan_to_num(values)[is_fired].tolist()
            fired += zip(rounds[is_fired].tolist(), heights, strict=True)
            kept = thinned(len(rounds), MAX_SEED_POINTS)
            for name, y, colour, dash in (
                ("measured", values, VALUE_COLOUR, "solid"),
                ("limit", limits, LIMIT_COLOUR, "dash"),
            ):
                figure.add_scatter(
                    x=small(rounds[kept]),
                    y=y[kept].astype(np.float32),
                    name=name,
                    legendgroup=name,
                    showlegend=number == 0,
                    visible=arm is arms[shown],
                    mode="lines+markers",
                    line={"color": colour, "width": 1, "dash": dash},
                    marker={"size": 3},
                    hovertemplate=f"seed {run.seed}, round %{{x}}: {name} %{{y:.4g}}<extra></extra>",
                )
                drawn_for.append(arm.label)
        marked = [fired[index] for index in drawn(len(fired), MAX_POINTS)]
        figure.add_scatter(
            x=[round_ for round_, _ in marked],
            y=[round(height, 6) for _, height in marked],
            name="fired",
            showlegend=True,
            visible=arm is arms[shown],
            mode="markers",
            marker={"symbol": "triangle-down", "size": 10, "color": FIRED_COLOUR},
            hovertemplate="round %{x}: fired at %{y:.4g}<extra></extra>",
        )
        drawn_for.append(arm.label)
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(rangemode="tozero")
    add_list_of_arms(figure, [arm.label for arm in arms], drawn_for, shown)
    return figure


def _plots(report: Report) -> list[Plot]:
    arms = [arm for arm in report.arms if any(map(has_trigger, arm.runs))]
    if not arms:
        return []
    caption = (
        "What decided whether all clients were re-clustered, at each opening of a round at which a client "
        "was found drifted: the distance that was measured (of the centre that moved farthest, or the "
        "largest between two clients of a cluster), and the limit from which the trigger fires: the "
        "threshold times "
        "the mean distance between centres, or delta. Both are in the clusterer's distance. Triangles are "
        'rounds in which it fired. With a single cluster or the threshold "never" there is no limit. Lines '
        f"are single seeds{list_clause(arms)}."
    )
    figure = trigger_figure(arms, squared=squared_distances(report.experiment))
    return [Plot("trigger", "When all clients were re-clustered: shift against threshold", caption, figure)]


FIGURE = Figure("why", _plots, "no trigger compared anything")
