"""The numbers that the trigger of a global re-clustering compared, and the rounds in which it fired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, product

from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.arms import DASHES, Arm
from experiments.results.drawing.menus import add_choices, list_clause, shown_at_first
from experiments.results.drawing.plain_figure import PlainFigure, Trace, floats, single, small, trace
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import (
    CLUSTER_COLOURS,
    MAX_POINTS,
    MAX_SEED_POINTS,
    VALUE_COLOUR,
    blank_figure,
    evenly,
)
from experiments.results.figures.figure import Figure
from experiments.results.reading.recorded import squared_distances
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.report import Report

LIMIT_COLOUR, FIRED_COLOUR = "#D55E00", "#CC79A7"
STYLES = {"measured": (VALUE_COLOUR, "solid"), "limit": (LIMIT_COLOUR, "dash")}
"""Colour and dash of the lines that have a colour of their own, by what a trigger calls them."""

OWN_COLOURS = tuple(
    colour for colour in CLUSTER_COLOURS if colour not in (VALUE_COLOUR, LIMIT_COLOUR, FIRED_COLOUR)
)
"""The colours of the lines that a trigger has named itself."""

MOST_OF_A_LIST = 20
"""Most clusters of which a number that a trigger has for each cluster is drawn, evenly spread."""


def has_trigger(run: ReportedRun) -> bool:
    """Whether a trigger was evaluated in some round."""
    return any(record.trigger is not None for record in run.records)


def own_numbers(run: ReportedRun) -> list[str]:
    """The names of compared numbers other than a measured distance and its limit."""
    names = dict.fromkeys(name for record in run.records for name in _compared(record, are_squared=False))
    return [name for name in names if name not in STYLES]


def trigger_figure(arms: Sequence[Arm], *, squared: Mapping[str, bool] | None = None) -> PlainFigure:
    """The numbers that the trigger of an arm compared, over rounds, and the rounds in which it fired.

    These are the measured distance and its limit, or the numbers that the trigger named: a line for each
    cluster if it has one for each. One arm is shown at a time, at first the last one whose trigger fired; a
    list below the figure chooses it. Thin lines are single seeds.

    Args:
        arms: Arms with a trigger; at least one.
        squared: Whether the distances of an arm's clusterer are squared, by the arm's name; by default none
            are.
    """
    has_own = any(own_numbers(run) for arm in arms for run in arm.runs)
    figure = blank_figure(420, x_title="round", y_title="value" if has_own else "distance")
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(rangemode="tozero")
    add_choices(
        figure,
        [(arm.label, _traces(arm, (squared or {}).get(arm.name, False))) for arm in arms],
        shown=shown_at_first(arms, lambda record: record.trigger is not None and record.trigger.fired),
    )
    return figure


Compared = Mapping[str, float | list[float] | None]
"""The numbers that a trigger compared in a round, by name."""

Number = tuple[str, int | None]
"""The name of a number that is a line, and its place in a list; None for a number that is never in one."""


def _traces(arm: Arm, are_squared: bool) -> Iterator[Trace]:
    """The lines of each seed of an arm, and the marks of the rounds in which its trigger fired."""
    compared = [
        (run, [(record, _compared(record, are_squared=are_squared)) for record in records])
        for run in arm.runs
        if (records := [record for record in run.records if record.trigger])
    ]
    styles = _styles([values for _, of_run in compared for _, values in of_run])
    for run, of_run in compared:
        kept = evenly(of_run, MAX_SEED_POINTS)
        for (name, place), (colour, dash) in styles.items():
            label = name if place is None else f"{name} {place}"
            yield trace(
                "scatter",
                x=small([record.round for record, _ in kept]),
                y=single(floats([_at(values.get(name), place or 0) for _, values in kept])),
                name=label,
                legendgroup=label,
                showlegend=run is arm.runs[0],
                visible=False,
                mode="lines+markers",
                line={"color": colour, "width": 1, "dash": dash},
                marker={"size": 3},
                hovertemplate=f"seed {run.seed}, round %{{x}}: {label} %{{y:.4g}}<extra></extra>",
            )
    fired = [
        (record.round, round(_height(values), 6))
        for _, of_run in compared
        for record, values in of_run
        if record.trigger is not None and record.trigger.fired
    ]
    marked = evenly(fired, MAX_POINTS)
    yield trace(
        "scatter",
        x=[round_ for round_, _ in marked],
        y=[height for _, height in marked],
        name="fired",
        showlegend=True,
        visible=False,
        mode="markers",
        marker={"symbol": "triangle-down", "size": 10, "color": FIRED_COLOUR},
        hovertemplate="round %{x}: fired at %{y:.4g}<extra></extra>",
    )


def _compared(record: RoundRecord, *, are_squared: bool) -> Compared:
    return {} if record.trigger is None else record.trigger.compared(are_squared=are_squared)


def _styles(rounds: Sequence[Compared]) -> dict[Number, tuple[str, str]]:
    """The colour and dash of each number that was compared in some round, in the order of their names."""
    styles: dict[Number, tuple[str, str]] = {}
    own = cycle(product(DASHES, OWN_COLOURS))
    for name in dict.fromkeys(name for compared in rounds for name in compared):
        lists = [value for compared in rounds if isinstance(value := compared.get(name), list)]
        if not lists and name in STYLES:
            styles[name, None] = STYLES[name]
            continue
        most = max(map(len, lists), default=0)
        for place in evenly(range(most), MOST_OF_A_LIST) if lists else [None]:
            dash, colour = next(own)
            styles[name, place] = colour, dash
    return styles


def _at(value: float | list[float] | None, place: int) -> float | None:
    """The number at a place of a list; a plain number is at place 0. None if there is none."""
    items = value if isinstance(value, list) else [value]
    return items[place] if place < len(items) else None


def _height(compared: Compared) -> float:
    """Where a round is marked in which a trigger fired: at what it named first, the largest of a list.

    A trigger with a single cluster may fire without a distance: its mark is at 0.
    """
    first = next(iter(compared.values()), None)
    return float(max(first, default=0.0) if isinstance(first, list) else first or 0.0)


def _plots(report: Report) -> Iterator[Plot]:
    arms = [arm for arm in report.arms if any(map(has_trigger, arm.runs))]
    if not arms:
        return
    caption = (
        "What decided whether all clients were re-clustered, at each opening of a round at which a client "
        "was found drifted: the distance that was measured (of the centre that moved farthest, or the "
        "largest between two clients of a cluster), and the limit from which the trigger fires: the "
        "threshold times "
        "the mean distance between centres, or delta. Both are in the clusterer's distance. Triangles are "
        'rounds in which it fired. With a single cluster or the threshold "never" there is no limit. Lines '
        f"are single seeds{list_clause(arms)}."
    )
    title = "When all clients were re-clustered: shift against threshold"
    if own := dict.fromkeys(name for arm in arms for run in arm.runs for name in own_numbers(run)):
        title = "When all clients were re-clustered: what triggers compared"
        caption += (
            f" A trigger with numbers of its own has a line for each, or for each cluster: {', '.join(own)}."
        )
    figure = trigger_figure(arms, squared=squared_distances(report.experiment))
    yield Plot("trigger", title, caption, figure)


FIGURE = Figure("why", _plots, "no trigger compared anything")
