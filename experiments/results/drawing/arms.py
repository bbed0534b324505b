"""How arms are drawn: their colours, dashes and symbols, and their curves over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.arrays import Floats
from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.style import Curve, spread, translucent, verbatim
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.time_to_accuracy import AccuracyCurve

REFERENCE_COLOUR = "#555555"
ARM_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#664D00"),
    *("#5C0A5C", "#6464D8", "#009900", "#661A00", "#61833F"),
)
"""Five of Okabe and Ito, and others that are farthest from them and from each other, as they are and inverted
for dark pages, for readers with and without red-green blindness: at least 12 in CIE 1976 L*a*b*.

The first arm, the reference, is grey; `EVENT_COLOUR` is no arm's.
"""

SYMBOLS = (
    *("circle", "square", "diamond", "cross"),
    *("circle-open", "square-open", "diamond-open", "x"),
)  # without triangles, which are bounds and re-clusterings
DASHES = ("solid", "dash", "dot", "dashdot")  # the next one after every eighth arm
MARKS = {"size": 7, "maxdisplayed": 8}
"""Symbols on a line, which tell it from others without colours."""

TIED = {"width": 1.6, "dash": "5px,7px"}
"""How the line of an arm is drawn over that of an earlier one with which it ties: both can be seen."""


@dataclass(frozen=True)
class Arm:
    """An arm to draw: the runs that are compared, their curves, and its index in the configuration.

    `has_trigger` is that of `Comparison`: no t interval of the arm is drawn. `ties` is whether its line lies
    on that of an earlier arm (`Compared.ties`).
    """

    name: str
    runs: Sequence[ReportedRun]
    curves: Sequence[AccuracyCurve]
    position: int
    has_trigger: bool = False
    ties: bool = False

    @property
    def label(self) -> str:
        """The arm's name, escaped so that plotly shows it verbatim."""
        return verbatim(self.name)

    def percent_over(self, seconds: float) -> list[Curve]:
        """(times, smoothed accuracies in percent) of each seed; times are in units of `seconds`."""
        return [(curve.times_s / seconds, 100 * curve.smoothed) for curve in self.curves]

    @property
    def colour(self) -> str:
        return arm_colour(self.position)

    @property
    def line(self) -> dict[str, Any]:
        dash = DASHES[self.position // len(SYMBOLS) % len(DASHES)]
        return {"color": self.colour, "width": 2.5, "dash": dash, **(TIED if self.ties else {})}

    @property
    def symbol(self) -> str:
        """The symbol of the arm's dots: no other arm of 32 has the same one and the same dash."""
        return SYMBOLS[self.position % len(SYMBOLS)]

    @property
    def marked_line(self) -> dict[str, Any]:
        """The properties of a trace that draw its line with a few of its symbols."""
        marker = {"symbol": self.symbol, "color": self.colour, **MARKS}
        return {"mode": "lines+markers", "line": self.line, "marker": marker}


def arm_colour(position: int) -> str:
    """The colour of the arm at that position in the configuration; the first, the reference, is grey."""
    return REFERENCE_COLOUR if position == 0 else ARM_COLOURS[(position - 1) % len(ARM_COLOURS)]


def quiet(arm: Arm) -> dict[str, Any]:
    """The properties of a trace that belongs to the arm's line: no legend entry, and no text on hovering."""
    return {"legendgroup": arm.name, "hoverinfo": "skip", "showlegend": False}


def add_line(figure: PlainFigure, arm: Arm, x: Any, y: Any, **properties: Any) -> None:
    """Draw a line of an arm in its style, under its name in the legend, unless `properties` say otherwise."""
    own = {"name": arm.label, "legendgroup": arm.name, **arm.marked_line}
    figure.add_scatter(x=x, y=y, **{**own, **properties})


def add_spread(
    figure: PlainFigure, arm: Arm, curves: Sequence[Curve], *, has_band: bool = True, **properties: Any
) -> tuple[Floats, Floats]:
    """Draw the mean of an arm's curves in a band from the lowest seed to the highest; return (grid, mean)."""
    grid, mean, low, high = spread(curves)
    if len(curves) > 1 and has_band:
        edge = {**quiet(arm), "line": {"width": 0}}
        fill = {"fill": "tonexty", "fillcolor": translucent(arm.colour)}
        figure.add_scatter(x=grid, y=low, mode="lines", **edge)
        figure.add_scatter(x=grid, y=high, mode="lines", **fill, **edge)
    add_line(figure, arm, grid, mean, **properties)
    return grid, mean


def by_round(runs: Sequence[ReportedRun], value: Callable[[RoundRecord], float | None]) -> list[Curve]:
    """(rounds, values) of each run, over the rounds in which `value` is not None.

    A run without such a round has no curve.
    """
    curves = []
    for run in runs:
        measured = [(record.round, value(record)) for record in run.records if value(record) is not None]
        if measured:
            rounds, values = np.array(measured, dtype=np.float64).T
            curves.append((rounds, values))
    return curves
