"""One table that answers whether it pays: of a run directory, or of a folder of them.

The terminal prints it, and a notebook shows it. Its figures are those of the pages, which have more columns
and the notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from emulator.errors import abbreviated
from experiments.results.many_runs.folder_table import words_of
from experiments.results.many_runs.runs_table import in_columns, short_runs_table
from experiments.results.many_runs.sections import Section
from experiments.results.pages.folder_page import (
    accuracy_cell,
    arms_with_runs,
    columns_with_drift,
    has_published,
    is_in_matrices,
    marked_notes,
    names_alone,
)
from experiments.results.pages.sentences import OMITTING, is_above_the_best_alone
from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.intervals import NamedGain
from experiments.results.statistics.scales import as_time, points_scale
from experiments.results.statistics.summary import Summary
from experiments.results.tables import accuracy, baselines, personal
from experiments.results.tables.cells import Cell, in_short
from experiments.results.tables.claims import claims
from experiments.results.tables.concept_drift import accuracy_table
from experiments.results.tables.costs import RECLUSTERED
from experiments.results.tables.published_cells import scored_steps
from experiments.results.tables.quantities import SCALES, Quantity, any_measured
from experiments.results.tables.table import NotedTable, TextTable
from experiments.results.wording import in_its_words, told

MEANS = ("mean_accuracy", "final_accuracy", "mean_personal_accuracy")
"""The columns that are shown without intervals: those of gains say whether arms differ."""

MOST_ROWS = 40
"""Most rows that are shown of a table of many runs."""

OF_SERVED_MODELS = "Accuracies are of the models that serve clients, not of what clients use themselves."

NOT_ABOVE_ALL = "* not measurably above every arm without clusters"


@in_its_words
def short_table(summary: Summary, arms: Sequence[str], report: Mapping[str, Any]) -> NotedTable | None:
    """The table of a run directory; None if it has nothing to show.

    Its columns are mean accuracy, gain over the reference arm and, if there are baselines, over the best of
    them, and final accuracy; if some arm makes personal parameters, mean accuracy and mean personal accuracy,
    with the gains in the latter. Where the trace knows its concepts, they are the accuracies without and with
    drift cells, beside published ones, and the models sent.

    Args:
        summary: The figures.
        arms: The names of all arms in the configured order.
        report: The table `[report]` of the configuration, which may have published values.
    """
    if summary.finished.scored_steps is not None:
        return _of_drift(summary, arms, report)
    return _of_gains(summary) if summary.rows else None


def gain_columns(summary: Summary) -> dict[str, Quantity]:
    """The columns of the tables of accuracies and gains, by key."""
    tables = (personal.TABLE, baselines.TABLE, accuracy.TABLE)
    return {column.key: column for table in tables for column in table.shown_columns(summary)}


def _of_gains(summary: Summary) -> NotedTable:
    of, columns = claims(summary), gain_columns(summary)
    wanted = list(dict.fromkeys(["mean_accuracy", of.mean, of.gain]))
    if summary.comparison.has_baselines:
        wanted.append(of.over_best)
    if of.mean == "mean_accuracy":
        wanted.append("final_accuracy")
    if any_measured([row[RECLUSTERED.key] for row in summary.rows]):
        wanted.append(RECLUSTERED.key)
    shown = [(columns[key].heading, _cells(columns[key], summary)) for key in wanted]
    in_which = " in personal accuracy" if summary.comparison.has_personal else ""
    table = in_columns([row.arm for row in summary.rows], shown)
    brackets = f"; 95 % intervals of gains{in_which} in brackets" if _has_intervals(table) else ""
    is_marked = any(cell.note for _, cells in shown for cell in cells)
    return NotedTable(
        f"{summary.name}: up to {as_time(summary.horizon.horizon_s)} of virtual time{brackets}",
        table,
        [NOT_ABOVE_ALL] if is_marked else [],
    )


def _has_intervals(table: TextTable) -> bool:
    """Whether some cell has an interval, and not the range of single seeds."""
    return any(cell.interval.startswith("[") for _, cells in table.rows for cell in cells)


def _cells(column: Quantity, summary: Summary) -> list[Cell]:
    if column.key in MEANS:
        return [Cell(cell.figure) for cell in column.cells(summary.rows)]
    return in_a_line(column, summary.rows)


def in_a_line(column: Quantity, rows: Sequence[Comparison]) -> list[Cell]:
    """The cells of a column in short; that of an arm above the best baseline alone has a star as its note."""
    shown = []
    for cell, figure in zip(column.cells(rows), (row[column.key] for row in rows), strict=True):
        is_marked = isinstance(figure, NamedGain) and is_above_the_best_alone(figure)
        scale = SCALES.get(column.unit, points_scale)(0.0)
        shown.append(replace(in_short(cell, figure, scale), note="*" if is_marked else ""))
    return shown


def _of_drift(summary: Summary, arms: Sequence[str], report: Mapping[str, Any]) -> NotedTable:
    names = [name for name in arms if name in summary.finished.arms]
    whole = accuracy_table(summary.finished, names, report)
    has_published = any(cells[1].figure for _, cells in whole.rows)
    kept = [0, *((1, 2) if has_published else ()), 3, len(whole.headings) - 1]
    table = TextTable(
        [whole.headings[column] for column in kept],
        [(arm, [Cell(cells[column].figure) for column in kept]) for arm, cells in whole.rows],
    )
    steps = scored_steps(summary.finished.steps, summary.finished.scored_steps)
    scored = f"; {steps} were scored" if steps else ""
    return NotedTable(
        f"{summary.name}: accuracy by data step, mean ± standard deviation over seeds{scored}",
        table,
        [OF_SERVED_MODELS] if summary.comparison.has_personal else [],
    )


def short_folder_tables(table: Mapping[str, Any], sections: Sequence[Section]) -> list[NotedTable]:
    """The tables of a folder: usually one, with mean accuracies and gains.

    Where the traces of several experiments know their concepts, there is one of their accuracies omitting
    drift, and the other experiments, if there are any, have the one of gains.

    Args:
        table: The table of the folder (`build_table`).
        sections: Its sections.
    """
    scored = columns_with_drift(table, names_alone(table, sections))
    others = [section for section in sections if not is_in_matrices(section, scored)]
    tables = []
    if len(scored) > 1:
        title = f"{table['name']}: accuracy (%) omitting drift, mean ± standard deviation over seeds"
        if has_published(table):
            title += "; in brackets the published value, and ours minus it"
        found = NotedTable(title, _matrix(table, scored), marked_notes(table, scored))
        tables.append(told(words_of(table, scored), found))
    words = dict.fromkeys(one.words.word for one in others)
    for alike in ([one for one in others if one.words.word == word] for word in words):
        name = table["name"] if len(words) == 1 else abbreviated([one.name for one in alike], ", ")
        tables.append(told(alike[0].words, _of_sections(name, alike)))
    return tables


def _matrix(table: Mapping[str, Any], scored: Sequence[str]) -> TextTable:
    """The accuracies omitting drift of the arms that have run, in each of the experiments `scored`."""
    arms = arms_with_runs(table)
    columns = [
        (column, [bracketed(accuracy_cell(table, OMITTING, arm, column)) for arm in arms])
        for column in scored
    ]
    return in_columns(arms, columns)


def bracketed(cell: Cell) -> Cell:
    """The lines of a cell, those after the first in brackets."""
    return Cell(cell.figure, "\n".join(f"({line})" for line in cell.lines[1:]))


def _of_sections(name: str, sections: Sequence[Section]) -> NotedTable:
    whole = short_runs_table(sections)
    shown = replace(whole, rows=whole.rows[:MOST_ROWS])
    brackets = "; 95 % intervals in brackets" if _has_intervals(shown) else ""
    left_out = len(whole.rows) - len(shown.rows)
    return NotedTable(
        f"{name}: mean accuracy over virtual time, and gains{brackets}",
        shown,
        [f"{left_out:,} more rows are in table.html."] if left_out else [],
    )
