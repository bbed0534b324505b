"""The definition of a figure of a report: its plots with their captions, and the question that it answers.

`NAMES` of this package lists them; the page and the `plot_` methods of a notebook iterate over the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from experiments.results.drawing.plot import Plot
from experiments.results.statistics.comparisons import once
from experiments.results.tables.report import Report
from experiments.results.tables.table import QuestionId
from experiments.results.wording import told


@dataclass(frozen=True)
class Figure:
    """A figure of a report.

    Attributes:
        question: The question of the page that it answers.
        draw: Yields its plots with titles, captions and text alternatives; none that would say nothing.
        absence: The reason why there are no plots, as a clause.
        needs: The option of a configuration without which runs do not log its data; empty for none.
        refuse: Raises an InputError if the runs did not record the data of its plots.
    """

    question: QuestionId
    draw: Callable[[Report], Iterable[Plot]]
    absence: str = "there is nothing to draw"
    needs: str = ""
    refuse: Callable[[Report], None] = lambda report: None

    def plots(self, report: Report) -> list[Plot]:
        """Its plots, which are drawn once of a report."""
        return once(self._drawn)(report)

    def _drawn(self, report: Report) -> list[Plot]:
        return told(report.summary.words, list(self.draw(report)))
