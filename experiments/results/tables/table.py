"""The definition of a table of results: its quantities, its columns, its note, and its place.

Each module that `NAMES` of this package lists has one, called `TABLE`. The summary measures the quantities of
all tables into one row per arm; the terminal, the page, `summary.json`, frames, exports and tables of many
runs iterate over the list, and know no table by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from experiments.results.statistics.comparisons import Compared, Comparison, Run
from experiments.results.statistics.intervals import Estimate, Gain, gain_estimate
from experiments.results.statistics.medians import MedianEstimate
from experiments.results.statistics.scales import PickScale
from experiments.results.statistics.summary import Summary
from experiments.results.tables.cells import (
    Cell,
    largest,
    show_estimate,
    show_median,
    show_share_of_seeds,
)
from experiments.results.tables.report import Report

Quantity = Callable[[Comparison, Compared], Any]
"""Measures a number of an arm: an `Estimate` or a `MedianEstimate` over its seeds, None for a comparison of
the reference arm with itself, or plain JSON, which has no column."""

OfRun = Callable[[Run], float | None]
"""The value of a quantity in one run; None if it was not measured."""

Estimator = Callable[[Sequence[float | None]], Estimate]

QuestionId = Literal["pays", "for-whom", "why", "repeat"]
"""The questions that the page answers, by the ids of their sections."""

REFERENCE_CELL = Cell("reference")


def over_seeds(of_run: OfRun, estimate: Estimator) -> Quantity:
    """The quantity that is `estimate` over the values of the arm's runs."""
    return lambda arm, compared: estimate([of_run(run) for run in arm.measured])


def gain(of_run: OfRun, *, scale: float = 1.0) -> Quantity:
    """The quantity that is `scale` x the value minus that of the reference arm, paired by seed."""

    def measure(arm: Comparison, compared: Compared) -> Gain | None:
        if arm.is_reference:
            return None
        values, reference = ([of_run(run) for run in runs] for runs in (arm.measured, arm.reference))
        return gain_estimate(values, reference, scale=scale, comparisons=compared.num_gains)

    return measure


def beside_reference(of_pair: Callable[[Run, Run], float | None], estimate: Estimator) -> Quantity:
    """The quantity that is `estimate` over the values of (run, run of the reference arm), paired by seed."""

    def measure(arm: Comparison, compared: Compared) -> Estimate | None:
        if arm.is_reference:
            return None
        found = estimate([of_pair(*pair) for pair in zip(arm.measured, arm.reference, strict=True)])
        return arm.stated(found, is_beside_reference=True)

    return measure


def stated(found: Any, arm: Comparison) -> Any:
    """What a quantity has measured of an arm; an estimate is by seed if the arm has a trigger."""
    if not isinstance(found, Estimate):
        return found
    return arm.stated(found, is_beside_reference=type(found) is Gain)


@dataclass(frozen=True)
class Column:
    """A quantity with its heading and a function that picks the scale of its numbers.

    Attributes:
        key: Name of the quantity.
        heading: The heading.
        pick_scale: Picks the scale by the largest number of the column.
        in_terminal: Whether the terminal shows it too, and not the page alone.
        only_if: Whether it is shown, from the quantity of each row; by default it always is.
    """

    key: str
    heading: str
    pick_scale: PickScale
    in_terminal: bool = True
    only_if: Callable[[Sequence[Any]], bool] = lambda quantities: True

    def cells(self, rows: Sequence[Comparison]) -> list[Cell]:
        """A cell for each row."""
        return column_cells(self.pick_scale, [row[self.key] for row in rows])


def column_cells(pick_scale: PickScale, found: Sequence[Estimate | MedianEstimate | None]) -> list[Cell]:
    """A cell for each of these, all in the scale that suits the largest number; None is the reference arm."""
    scale = pick_scale(max((largest(value) for value in found if value is not None), default=0.0))
    return [
        REFERENCE_CELL
        if value is None
        else show_estimate(value, scale)
        if isinstance(value, Estimate)
        else show_median(value, scale)
        for value in found
    ]


@dataclass(frozen=True)
class Tally(Column):
    """A column of whole numbers out of all, such as 3/5: `key` out of the quantity `of`."""

    of: str = "seeds"

    def cells(self, rows: Sequence[Comparison]) -> list[Cell]:
        return [Cell(f"{row[self.key]}/{row[self.of]}") for row in rows]


@dataclass(frozen=True)
class Happened(Column):
    """A column of shares of seeds, as numbers of them: 3/5, with the interval of the share below it."""

    def cells(self, rows: Sequence[Comparison]) -> list[Cell]:
        return [show_share_of_seeds(row[self.key]) for row in rows]


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


def text_table(
    columns: Sequence[Column], rows: Sequence[Comparison], *, in_terminal: bool = False
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


def is_measured(quantity: Estimate | MedianEstimate | None) -> bool:
    """Whether a quantity has a value in some seed."""
    return quantity is not None and any(value is not None for value in quantity.per_seed)


def any_measured(quantities: Sequence[Estimate | MedianEstimate | None]) -> bool:
    """Whether some row has the quantity in some seed: an `only_if` of columns."""
    return any(map(is_measured, quantities))


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
    """

    question: QuestionId
    group: str = ""
    after_figures: bool = False
    id: str = ""


@dataclass(frozen=True)
class InManyRuns:
    """The part of a table that tables of many runs have.

    Attributes:
        keys: The quantities that `table.json` has.
        columns: The columns of those that are shown; one is left out if it was measured in no row.
        notes: The note on each of the columns, by key.
    """

    keys: Sequence[str] = ()
    columns: Sequence[Column] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


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
        quantities: What it measures of each arm, by name; the names are unique over all tables.
        columns: Its columns, also of quantities of other tables.
        columns_for: In place of `columns`, those for a summary.
        says_something: Whether it is shown for a summary.
        note: The note below it.
        notes_on_page: Further notes on the page.
        in_terminal: How the terminal shows it; None if it does not.
        in_many_runs: What tables of many runs show of it.
        captioned: In place of `columns`, its tables with their captions, in the terminal or a notebook.
        on_page: In place of `columns` and `note`, its content on the page; None if there is nothing to show.
    """

    title: str
    place: Place | None = None
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    columns: Sequence[Column] = ()
    columns_for: Callable[[Summary], Sequence[Column]] | None = None
    says_something: Callable[[Summary], bool] = lambda summary: True
    note: Callable[[Summary], str] = lambda summary: ""
    notes_on_page: Callable[[Summary], Sequence[str]] = lambda summary: ()
    in_terminal: InTerminal | None = None
    in_many_runs: InManyRuns = InManyRuns()
    captioned: Callable[[Summary, bool], list[tuple[str, TextTable]]] | None = None
    on_page: Callable[[Report], OnPage | None] | None = None

    def shown_columns(self, summary: Summary) -> Sequence[Column]:
        """The columns for this summary, before those that say nothing are left out."""
        return self.columns if self.columns_for is None else self.columns_for(summary)

    def shown_on_page(self, report: Report) -> OnPage | None:
        """Its content on the page; None if it says nothing, or is not on the page."""
        if self.place is None or not self.says_something(report.summary):
            return None
        if self.on_page is not None:
            return self.on_page(report)
        summary = report.summary
        notes = list(filter(None, [self.note(summary), *self.notes_on_page(summary)]))
        title = self.title if self.place.group else ""
        return OnPage([NotedTable(title, text_table(self.shown_columns(summary), summary.rows), notes)])

    def with_captions(self, summary: Summary, *, as_printed: bool) -> list[tuple[str, TextTable]]:
        """(caption, table) of each of its tables, in the terminal (`as_printed`) or in a notebook."""
        how = self.in_terminal
        if how is None or not self.says_something(summary):
            return []
        if self.captioned is not None:
            return self.captioned(summary, as_printed)
        in_terminal = as_printed or not how.has_intervals
        table = text_table(self.shown_columns(summary), summary.rows, in_terminal=in_terminal)
        return [(how.caption, table if how.has_intervals else table.without_intervals())]
