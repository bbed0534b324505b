"""The numbers that the trigger of a global re-clustering compared, and the rounds in which it fired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats
from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.arms import DASHES, Arm
from experiments.results.drawing.menus import add_list_of_arms
from experiments.results.drawing.plain_figure import PlainFigure, Trace, trace
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import (
    CLUSTER_COLOURS,
    MAX_POINTS,
    MAX_SEED_POINTS,
    blank_figure,
    thinned,
)
from experiments.results.figures.figure import Figure
from experiments.results.figures.over_rounds import (
    VALUE_COLOUR,
    drawn,
    floats,
    list_clause,
    shown_at_first,
    single,
    small,
)
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
    drawn_for: list[str] = []
    shown = shown_at_first(arms, lambda record: record.trigger is not None and record.trigger.fired)
    for arm in arms:
        are_squared = (squared or {}).get(arm.name, False)
        traces = _traces_of(arm, are_squared=are_squared, visible=arm is arms[shown])
        figure.add_traces(traces)
        drawn_for += [arm.label] * len(traces)
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(rangemode="tozero")
    add_list_of_arms(figure, [arm.label for arm in arms], drawn_for, shown)
    return figure


def _traces_of(arm: Arm, *, are_squared: bool, visible: bool) -> list[Trace]:
    """The lines of each seed of an arm, and the marks of the rounds in which its trigger fired."""
    evaluated = [[record for record in run.records if record.trigger] for run in arm.runs]
    compared = [[_compared(record, are_squared=are_squared) for record in of_run] for of_run in evaluated]
    lines = _lines([values for of_run in compared for values in of_run])
    traces = [
        line.trace(
            run.seed,
            [record.round for record in records],
            values,
            showlegend=run is arm.runs[0],
            visible=visible,
        )
        for run, records, values in zip(arm.runs, evaluated, compared, strict=True)
        if records
        for line in lines
    ]
    fired = [
        (record.round, _height(found))
        for records, values in zip(evaluated, compared, strict=True)
        for record, found in zip(records, values, strict=True)
        if record.trigger is not None and record.trigger.fired
    ]
    marked = [fired[index] for index in drawn(len(fired), MAX_POINTS)]
    marks = trace(
        "scatter",
        x=[round_ for round_, _ in marked],
        y=[round(height, 6) for _, height in marked],
        name="fired",
        showlegend=True,
        visible=visible,
        mode="markers",
        marker={"symbol": "triangle-down", "size": 10, "color": FIRED_COLOUR},
        hovertemplate="round %{x}: fired at %{y:.4g}<extra></extra>",
    )
    return [*traces, marks]


Compared = Mapping[str, float | list[float] | None]
"""The numbers that a trigger compared in a round, by name."""


@dataclass(frozen=True)
class _Line:
    """A line over rounds: the numbers of a `name`, or of lists those at a `place`."""

    name: str
    place: int | None
    colour: str
    dash: str

    @property
    def label(self) -> str:
        return self.name if self.place is None else f"{self.name} {self.place}"

    def trace(self, seed: int, rounds: Sequence[int], values: Sequence[Compared], **legend: bool) -> Trace:
        """The line of a seed over its rounds; `legend` says whether it is visible and has an entry."""
        kept = thinned(len(rounds), MAX_SEED_POINTS)
        return trace(
            "scatter",
            x=small(np.array(rounds)[kept]),
            y=single(self.over(values)[kept]),
            name=self.label,
            legendgroup=self.label,
            **legend,
            mode="lines+markers",
            line={"color": self.colour, "width": 1, "dash": self.dash},
            marker={"size": 3},
            hovertemplate=f"seed {seed}, round %{{x}}: {self.label} %{{y:.4g}}<extra></extra>",
        )

    def over(self, rounds: Sequence[Compared]) -> Floats:
        """(rounds,) its numbers, NaN where there is none; a plain number is at place 0."""
        return floats([self._at(compared.get(self.name)) for compared in rounds])

    def _at(self, value: float | list[float] | None) -> float | None:
        items = value if isinstance(value, list) else [value]
        place = self.place or 0
        return items[place] if place < len(items) else None


def _compared(record: RoundRecord, *, are_squared: bool) -> Compared:
    return {} if record.trigger is None else record.trigger.compared(are_squared=are_squared)


def _lines(rounds: Sequence[Compared]) -> list[_Line]:
    """The lines of all numbers that were compared in some round, in the order in which names appear."""
    lines: list[_Line] = []
    own = 0
    for name in dict.fromkeys(name for compared in rounds for name in compared):
        lists = [value for compared in rounds if isinstance(value := compared.get(name), list)]
        most = max(map(len, lists), default=0)
        for place in drawn(most, MOST_OF_A_LIST) if lists else [None]:
            style = STYLES.get(name) if place is None else None
            if style is None:
                turn, index = divmod(own, len(OWN_COLOURS))
                style = OWN_COLOURS[index], DASHES[turn % len(DASHES)]
                own += 1
            lines.append(_Line(name, place, *style))
    return lines


def _height(compared: Compared) -> float:
    """Where a round is marked in which a trigger fired: at what it named first, the largest of a list.

    A trigger with a single cluster may fire without a distance: its mark is at 0.
    """
    first = next(iter(compared.values()), None)
    return float(max(first, default=0.0) if isinstance(first, list) else first or 0.0)


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
    title = "When all clients were re-clustered: shift against threshold"
    if own := dict.fromkeys(name for arm in arms for run in arm.runs for name in own_numbers(run)):
        title = "When all clients were re-clustered: what triggers compared"
        caption += (
            f" A trigger with numbers of its own has a line for each, or for each cluster: {', '.join(own)}."
        )
    figure = trigger_figure(arms, squared=squared_distances(report.experiment))
    return [Plot("trigger", title, caption, figure)]


FIGURE = Figure("why", _plots, "no trigger compared anything")
