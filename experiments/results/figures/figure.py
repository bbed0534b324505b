"""The definition of a figure of a report: its plots with their captions, and the question that it answers.

Each module that `NAMES` of this package lists has one, called `FIGURE`. The page and the `plot_` methods of a
notebook iterate over the list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from experiments.results.drawing.plot import Plot
from experiments.results.tables.report import Report
from experiments.results.tables.table import QuestionId


@dataclass(frozen=True)
class Figure:
    """A figure of a report.

    Attributes:
        question: The question of the page that it answers.
        plots: Its plots with titles, captions and text alternatives; none where they would say nothing.
        absence: The reason why there are no plots, as a clause.
        refuse: Raises an InputError if the runs did not record the data of its plots.
    """

    question: QuestionId
    plots: Callable[[Report], list[Plot]]
    absence: str = "there is nothing to draw"
    refuse: Callable[[Report], None] = lambda report: None
