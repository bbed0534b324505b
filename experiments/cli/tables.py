"""Tables of results, printed for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from experiments.cli.output import plain, wide_console
from experiments.results.many_runs.folder_table import words_of
from experiments.results.many_runs.runs_table import (
    folder_warnings,
    runs_horizon,
    runs_notes,
    runs_table,
    runs_warnings,
    section_heard_note,
)
from experiments.results.many_runs.sections import Section
from experiments.results.pages.folder_page import (
    TITLES,
    accuracy_cell,
    agreement_notes,
    columns_with_drift,
    has_published,
    is_in_matrices,
    marked_notes,
    models_cell,
    names_alone,
    unfinished,
)
from experiments.results.pages.sentences import in_terminal
from experiments.results.pages.short_table import bracketed, short_folder_tables, short_table
from experiments.results.statistics.summary import Summary
from experiments.results.tables import all_tables
from experiments.results.tables.cells import NOTHING, Cell
from experiments.results.tables.notes import (
    as_warning,
    come_and_go_note,
    few_seeds_note,
    heard_note,
    horizon_note,
    short_notes,
)
from experiments.results.tables.published_cells import OUTSIDE, scored_steps
from experiments.results.tables.table import NotedTable, TextTable
from experiments.results.wording import told

GAP = 3  # between columns: two of padding, and one of the box


def print_summary(summary: Summary) -> None:
    """Print all tables that say something, each with its note."""
    console = wide_console()
    for note in (horizon_note(summary), *map(as_warning, summary.warnings())):
        _note(console, note)
    for remark in filter(None, (heard_note(summary.offline_clients_heard), come_and_go_note(summary))):
        _note(console, remark)
    for table in all_tables():
        if (how := table.in_terminal) is not None and table.says_something(summary):
            against = f", against {summary.reference_arm}" if how.is_against_reference else ""
            for caption, shown in table.with_captions(summary, as_printed=True):
                _print_figures(console, f"{summary.name}: {caption}{against}", shown)
            if note := told(summary.words, table.note(summary)):
                _note(console, note)
    if few_seeds := few_seeds_note(summary.rows):
        _note(console, few_seeds)


def print_noted(name: str, shown: NotedTable) -> None:
    """Print a table of the experiment `name`, and its notes below it."""
    console = wide_console()
    _print_figures(console, f"{name}: {shown.title}", shown.table)
    _print_notes(console, shown.notes)


def print_short(
    summary: Summary, arms: Sequence[str], report: Mapping[str, Any], console: Console | None = None
) -> None:
    """Print the warnings in short and one table; for the first arguments see `short_table`."""
    console = console or wide_console()
    _print_notes(console, short_notes(summary))
    shown = short_table(summary, arms, report)
    if shown is not None:
        _print_in_lines(console, shown.title, shown.table)
        _print_notes(console, shown.notes)


def print_short_sections(
    table: Mapping[str, Any], sections: Sequence[Section], console: Console | None = None
) -> None:
    """Print the warnings on many runs in short, and one table; the others are left to the page.

    `table` is that of `build_table`.
    """
    console = console or wide_console()
    _print_notes(console, folder_warnings(sections))
    for shown in short_folder_tables(table, sections):
        _print_in_lines(console, shown.title, shown.table)
        _print_notes(console, shown.notes)


def print_conclusions(sentences: Sequence[str]) -> None:
    """Print the first sentences and their notation, each on a line that only a terminal breaks."""
    console = wide_console()
    for line in in_terminal(sentences):
        console.print(plain(line), soft_wrap=not console.is_terminal)


def print_path(what: str, path: Path) -> None:
    """Print `path` on one line, however long, so that it can be copied."""
    wide_console().print(plain(f"{what}: {path}"), soft_wrap=True)


def print_unfinished(table: dict[str, Any]) -> None:
    """Print how many runs are finished and failed, for each experiment with unfinished runs."""
    for names, counts in unfinished(table):
        wide_console().print(plain(f"{names}: {counts}"), soft_wrap=True)


def print_sections(table: dict[str, Any], sections: Sequence[Section]) -> None:
    """Print the tables of many runs, preceded by the accuracies with drift cells of experiments alone.

    A section whose figures are among those is left to the page. `table` is that of `build_table`.
    """
    alone = names_alone(table, sections)
    scored = columns_with_drift(table, alone)
    if scored:
        print_drift(table, alone)
        print_marked(table, scored)
    for section in sections:
        if not is_in_matrices(section, scored):
            print_section(section)
        elif heard := section_heard_note(section):
            _note(wide_console(), f"{section.name}: {heard}")
    if any(is_in_matrices(section, scored) for section in sections):
        left = "Accuracy over virtual time, gains, times to targets and bytes are in table.html."
        _note(wide_console(), told(words_of(table, scored), left))


def print_section(section: Section, *, with_notes: bool = True) -> None:
    """Print a table of many runs with its notes, or with those alone without which it should not be read."""
    console = wide_console()
    if not with_notes:
        _print_notes(console, [runs_horizon(section), *folder_warnings([section])])
        _print_figures(console, section.name, runs_table(section, in_terminal=True))
        return
    for note in (runs_horizon(section), *runs_warnings(section)):
        _note(console, note)
    _print_figures(console, section.name, runs_table(section, in_terminal=True))
    for note in runs_notes(section, in_terminal=True):
        _note(console, note)


def print_marked(table: dict[str, Any], columns: Sequence[str]) -> None:
    """Print a warning for each of the experiments `columns` with marked seeds."""
    for note in marked_notes(table, columns):
        _note(wide_console(), note)


def print_drift(table: dict[str, Any], columns: Sequence[str]) -> None:
    """Print the accuracies without and with drift cells beside published values, then the models sent.

    `table` is that of `build_table`, `columns` the names of experiments.
    """
    console = wide_console()
    scored = columns_with_drift(table, columns)
    titles = told(words_of(table, scored), TITLES)
    for figure, title in titles.items() if scored else ():
        rows = {
            arm: ["\n".join(bracketed(accuracy_cell(table, figure, arm, column)).lines) for column in scored]
            for arm in table["arms"]
        }
        _print_by_arm(console, f"{table['name']}: {title}", scored, rows)
        for note in agreement_notes(table, figure, scored):
            _note(console, note)
    rows = {arm: [models_cell(table, arm, column) for column in columns] for arm in table["arms"]}
    _print_by_arm(console, f"{table['name']}: models sent", columns, rows)
    beside = f"; in brackets the published value, and ours minus it; {OUTSIDE}"
    published = beside if has_published(table) else ""
    console.print(plain(f"mean ± standard deviation over seeds{published}", style="dim"))
    for column in table["experiments"]:
        if steps := scored_steps(column["steps"], column["scored_steps"]):
            console.print(plain(f"{column['name']}: scored are {steps}"))


def _note(console: Console, text: str) -> None:
    console.print(plain(text, style="dim"))
    console.print()


def _print_notes(console: Console, notes: Sequence[str]) -> None:
    """Print the notes, and an empty line if there are any."""
    for note in notes:
        console.print(plain(note, style="dim"))
    if notes:
        console.print()


def _print_in_lines(console: Console, title: str, shown: TextTable) -> None:
    """Print a table with each figure beside its interval; above it, where the terminal is too narrow."""
    beside = TextTable(
        shown.headings,
        [(arm, [Cell(" ".join(cell.lines)) for cell in cells]) for arm, cells in shown.rows],
        shown.num_keys,
    )
    is_narrow = len(_fitting(beside, console.width)) > 1
    _print_figures(console, title, shown if is_narrow else beside)


def _print_figures(console: Console, title: str, shown: TextTable) -> None:
    """Print a row per arm, each figure above its interval; split into several tables on a narrow terminal."""
    console.print(plain(title, style="italic"))
    headings = [
        fill(heading, _width(shown, column), break_on_hyphens=False)
        for column, heading in enumerate(shown.headings)
    ]
    for columns in _fitting(shown, console.width):
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
        above = max(headings[column].count("\n") for column in columns)
        table.add_column(above * "\n" + "arm", overflow="fold")
        for column in columns:
            missing = above - headings[column].count("\n")
            table.add_column(plain(missing * "\n" + headings[column]), justify="right", overflow="fold")
        for arm, cells in shown.rows:
            table.add_row(*map(plain, (arm, *("\n".join(cells[column].lines) for column in columns))))
        console.print(table)
        console.print()


def _fitting(shown: TextTable, width: int) -> list[list[int]]:
    """Split the columns over tables of at most `width` letters; returns the column indices of each.

    Every table has the key columns. A column that does not fit even beside them alone has a wider table of
    its own.
    """
    keys = list(range(shown.num_keys))
    arm_width = max((len(arm) for arm, _ in shown.rows), default=0)
    keys_width = arm_width + GAP + sum(_width(shown, key) + GAP for key in keys)
    tables: list[list[int]] = []
    left = 0
    for column in range(shown.num_keys, len(shown.headings)):
        needed = _width(shown, column) + GAP
        if not tables or needed > left:
            tables.append([*keys])
            left = width - keys_width
        tables[-1].append(column)
        left -= needed
    return tables


def _width(shown: TextTable, column: int) -> int:
    """Width of a column in letters: that of its longest line in a cell, or word in the heading.

    A heading breaks between words only.
    """
    cells = [len(line) for _, cells in shown.rows for line in cells[column].lines]
    return max(*cells, *map(len, shown.headings[column].split(" ")))


def _print_by_arm(
    console: Console, title: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]
) -> None:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("arm", overflow="fold")
    for column in columns:
        table.add_column(plain(column), justify="right", overflow="fold")
    for arm, cells in rows.items():
        if set(cells) != {NOTHING}:  # it has run
            table.add_row(*map(plain, (arm, *cells)))
    console.print(plain(title, style="italic"))
    console.print(table)
    console.print()
