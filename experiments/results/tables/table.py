"""The definition of a table of results: its quantities, its columns, its note, and its place.

Each module that `NAMES` of this package lists has one, called `TABLE`. The summary measures the quantities
of all tables of each arm; the terminal, the page, `summary.json`, frames, exports and tables of many runs
iterate over the list, and know no table by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.summary import Summary
from experiments.results.tables.cells import Cell
from experiments.results.tables.quantities import Quantity
from experiments.results.tables.report import Report
from experiments.results.wording import told

QuestionId = Literal["pays", "for-whom", "why", "repeat"]
"""The questions that the page answers, by the ids of their sections."""


@dataclass(frozen=True)
class TextTable:
    """A table with a row of cells for each arm; the first `num_keys` columns tell rows of one arm apart."""

    headings: list[str]
    rows: list[tuple[str, list[Cell]]]
    num_keys: int = 0

    def without_intervals(self) -> TextTable:
        """The same table without the intervals."""
        return TextTable(
            self.headings, [(arm, [Cell(cell.figure) for cell in cells]) for arm, cells in self.rows]
        )

    def with_texts(self, tell: Callable[[list[str]], list[str]]) -> TextTable:
        """The same table with what `tell` makes of its headings, but for those of keys."""
        keys, others = self.headings[: self.num_keys], self.headings[self.num_keys :]
        return replace(self, headings=[*keys, *tell(others)])


def text_table(
    columns: Sequence[Quantity], rows: Sequence[Comparison], *, in_terminal: bool = False
) -> TextTable:
    """`rows` as text, in those of `columns` that say something; with `in_terminal` in those shown there."""
    shown = [
        column
        for column in columns
        if (column.in_terminal or not in_terminal) and column.only_if([row[column.key] for row in rows])
    ]
    cells = [column.cells(rows) for column in shown]
    return TextTable(
        [column.heading for column in shown],
        [(row.arm, [of_column[index] for of_column in cells]) for index, row in enumerate(rows)],
    )


@dataclass(frozen=True)
class NotedTable:
    """A table as it is shown, with its title, which may be empty, and the notes below it."""

    title: str
    table: TextTable
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class OnPage:
    """The content of a table on a page: sentences, tables with notes, and remarks on missing ones.

    `lead` is a sentence before all tables of the section; `template` is a template of `pages/` that follows
    the tables, with the values `content`.
    """

    tables: Sequence[NotedTable] = ()
    sentences: Sequence[str] = ()
    remarks: Sequence[str] = ()
    lead: str = ""
    template: str = ""
    content: Any = None


@dataclass(frozen=True)
class Place:
    """Where a page shows a table.

    Attributes:
        question: The question of the page that it answers.
        group: The section that it shares with other tables; empty for a section of its own.
        after_figures: Whether it comes after the figures of the question.
        id: Id of its own section; empty for none.
        needs: The option of a configuration without which runs do not log what it shows; empty for none.
    """

    question: QuestionId
    group: str = ""
    after_figures: bool = False
    id: str = ""
    needs: str = ""


@dataclass(frozen=True)
class InTerminal:
    """How the terminal shows a table.

    Attributes:
        caption: Its title, after the name of the experiment.
        is_against_reference: Whether the title ends with the name of the reference arm.
        has_intervals: Whether its intervals are shown.
        in_notebook: Whether a notebook shows it too.
    """

    caption: str
    is_against_reference: bool = False
    has_intervals: bool = True
    in_notebook: bool = False


@dataclass(frozen=True)
class Table:
    """A table of results.

    Attributes:
        title: Its heading on the page.
        place: Where the page shows it; None if it does not.
        quantities: What it measures of each arm; their keys are unique over all tables.
        columns: The quantities that are its columns, also those of other tables.
        columns_for: In place of `columns`, those for a summary.
        says_something: Whether it is shown for a summary.
        note: The note below it.
        notes_on_page: Further notes on the page.
        in_terminal: How the terminal shows it; None if it does not.
        in_many_runs: The quantities that tables of many runs have of it, each with its note (`noted`); those
            with a heading are columns, unless they are measured in no row. What they read of the log, they
            read in functions decorated with `once`, as tables of many runs keep no logs.
        captioned: In place of `columns`, its tables with their captions, in the terminal or a notebook.
        on_page: In place of `columns` and `note`, its content on the page; None if there is nothing to show.
    """

    title: str
    place: Place | None = None
    quantities: Sequence[Quantity] = ()
    columns: Sequence[Quantity] = ()
    columns_for: Callable[[Summary], Sequence[Quantity]] | None = None
    says_something: Callable[[Summary], bool] = lambda summary: True
    note: Callable[[Summary], str] = lambda summary: ""
    notes_on_page: Callable[[Summary], Sequence[str]] = lambda summary: ()
    in_terminal: InTerminal | None = None
    in_many_runs: Sequence[Quantity] = ()
    captioned: Callable[[Summary, bool], list[tuple[str, TextTable]]] | None = None
    on_page: Callable[[Report], OnPage | None] | None = None

    @property
    def needs(self) -> str:
        """The option of a configuration without which runs do not log what it shows; empty for none."""
        return "" if self.place is None else self.place.needs

    def shown_columns(self, summary: Summary) -> Sequence[Quantity]:
        """The columns for this summary, before those that say nothing are left out."""
        return self.columns if self.columns_for is None else self.columns_for(summary)

    def shown_on_page(self, report: Report) -> OnPage | None:
        """Its content on the page; None if it says nothing, or is not on the page."""
        if self.place is None or not self.says_something(report.summary):
            return None
        if self.on_page is not None:
            return told(report.summary.words, self.on_page(report))
        summary = report.summary
        notes = list(filter(None, [self.note(summary), *self.notes_on_page(summary)]))
        title = self.title if self.place.group else ""
        table = text_table(self.shown_columns(summary), summary.rows)
        return told(summary.words, OnPage([NotedTable(title, table, notes)]))

    def with_captions(self, summary: Summary, *, as_printed: bool) -> list[tuple[str, TextTable]]:
        """(caption, table) of each of its tables, in the terminal (`as_printed`) or in a notebook."""
        how = self.in_terminal
        if how is None or not self.says_something(summary):
            return []
        if self.captioned is not None:
            return told(summary.words, self.captioned(summary, as_printed))
        in_terminal = as_printed or not how.has_intervals
        table = text_table(self.shown_columns(summary), summary.rows, in_terminal=in_terminal)
        shown = [(how.caption, table if how.has_intervals else table.without_intervals())]
        return told(summary.words, shown)
