"""What a figure of a report is: how it is drawn, with its captions, and the question that it answers.

Each module that `NAMES` of this package lists has one, called `FIGURE`. The page and the `plot_` methods of a
notebook iterate over the list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from experiments.results.drawing.plot import Plot
from experiments.results.tables.report import Report


@dataclass(frozen=True)
class Figure:
    """A figure of a report.

    Attributes:
        question: The question of the page that it answers: "pays", "for-whom" or "why".
        plots: What is drawn, with titles, captions and text alternatives; nothing where it would say nothing.
        absence: Why nothing is drawn then.
        refuse: Raises an InputError where the runs did not record what is drawn.
    """

    question: str
    plots: Callable[[Report], list[Plot]]
    absence: str = "there is nothing to draw"
    refuse: Callable[[Report], None] = lambda report: None
