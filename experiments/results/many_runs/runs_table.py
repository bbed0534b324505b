"""The text of a table of many runs: its columns and the notes beside it, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from emulator.errors import abbreviated, shorten
from experiments.results.many_runs.sections import Row, Section
from experiments.results.reading.differing_keys import short_names
from experiments.results.reading.recorded import REFERENCE, Target, written
from experiments.results.statistics.intervals import FEWEST_SEEDS
from experiments.results.statistics.medians import levels_as_text
from experiments.results.statistics.published import COMPARED
from experiments.results.statistics.scales import as_time, bytes_scale, percent_scale, points_scale
from experiments.results.statistics.significance import Difference, num_tests
from experiments.results.tables import all_tables
from experiments.results.tables.accuracy import MEAN_ACCURACY
from experiments.results.tables.cells import (
    NOTHING,
    Cell,
    short_interval,
    show_difference,
    show_share_of_seeds,
)
from experiments.results.tables.costs import RECLUSTERED
from experiments.results.tables.notes import (
    BOUNDS,
    DOTS,
    FEW_SEEDS,
    MOVES,
    OFFLINE_CLIENTS_HEARD,
    as_warning,
    heard_mark,
)
from experiments.results.tables.personal import PERSONAL
from experiments.results.tables.published_cells import OUTSIDE, compared
from experiments.results.tables.quantities import REFERENCE_CELL, Quantity, any_measured, column_cells
from experiments.results.tables.table import TextTable
from experiments.results.tables.targets import HELD, HELD_FROM, SPEEDUP, target_columns

TARGET = (HELD_FROM, SPEEDUP, HELD)
"""The columns of each target."""

DRIFT_HEADINGS = {
    "accuracy_omitting_drift": "accuracy (%) omitting drift cells",
    "accuracy_including_drift": "accuracy (%) including drift cells",
}

MOST_KEY_LETTERS = 40
"""Most letters of a value in a table."""

MOST_SEEDS = 10
"""Most seeds that a note lists."""

NamedCells = tuple[str, Sequence[Cell]]
"""A column: its heading, and a cell for each row."""


def runs_table(section: Section, *, in_terminal: bool = False) -> TextTable:
    """The section as text: the differing keys of each row, its accuracies, times to each target and bytes.

    Left out are columns that would say nothing: the run directory if the keys tell all rows apart, the
    difference if there is a single directory, offline clients if none are heard, accuracies with and without
    drift cells and what single tables measure (`InManyRuns`) if they are not known in any row. With
    `in_terminal`, so are columns that only the page shows.
    """
    rows = section.rows
    keys = _keys(section)
    columns = [
        *keys,
        (f"mean {_served(rows)}accuracy", column_cells(percent_scale, [row.mean_accuracy for row in rows])),
        (f"{_served(rows)}gain", [_difference_cell(row.gain_pp, row, absent=REFERENCE_CELL) for row in rows]),
        *_difference(section),
        *_identical(rows),
        *_heard(rows),
        *_of_tables(rows, in_terminal=in_terminal),
        *_times(section),
        ("bytes sent", column_cells(bytes_scale, [row.total_bytes for row in rows])),
        *_drift(rows),
    ]
    by_row = zip(rows, zip(*(cells for _, cells in columns), strict=True), strict=True)
    return TextTable(
        headings=[heading for heading, _ in columns],
        rows=[(row.arm, list(cells)) for row, cells in by_row],
        num_keys=len(keys),
    )


def short_runs_table(sections: Sequence[Section]) -> TextTable:
    """One table of all sections: what tells the rows apart, mean accuracy, and gains.

    Of one section, the rows are told apart by the keys in which configurations differ; of several, by their
    run directories. Where no arm is compared with a reference arm, differences from the first directory are
    in the place of gains. Intervals are those of gains and differences alone, and p-values are left out.
    """
    rows = [row for section in sections for row in section.rows]
    if len(sections) == 1:
        keys = _keys(sections[0], with_numbers=False)
    else:
        keys = [("experiment", [Cell(_directories(row.directories)) for row in rows])]
    differences = [column for section in sections for column in _difference(section)]
    accuracies = column_cells(percent_scale, [row.mean_accuracy for row in rows])
    columns = [*keys, (f"mean {_served(rows)}accuracy", [Cell(cell.figure) for cell in accuracies])]
    if len(sections) == 1 and differences and all(row.gain_pp is None for row in rows):
        found = [row.difference_pp for row in rows]
        columns += [(heading, _short(cells, found)) for heading, cells in differences]
    else:
        gains = [_difference_cell(row.gain_pp, row, absent=REFERENCE_CELL) for row in rows]
        columns.append((f"{_served(rows)}gain", _short(gains, [row.gain_pp for row in rows])))
    if any_measured(personal := [row[PERSONAL.key] for row in rows]):
        cells = column_cells(percent_scale, personal)
        columns.append((PERSONAL.heading, [Cell(cell.figure) for cell in cells]))
    if any_measured(reclustered := [row[RECLUSTERED.key] for row in rows]):
        columns.append((RECLUSTERED.heading, list(map(show_share_of_seeds, reclustered))))
    by_row = zip(rows, zip(*(cells for _, cells in columns), strict=True), strict=True)
    return TextTable(
        headings=[heading for heading, _ in columns],
        rows=[(row.arm, list(cells)) for row, cells in by_row],
        num_keys=len(keys),
    )


def _served(rows: Sequence[Row]) -> str:
    """What accuracies and gains are of, if clients of some row use parameters of their own."""
    return "served " if any_measured([row[PERSONAL.key] for row in rows]) else ""


def runs_notes(section: Section, *, in_terminal: bool = False) -> list[str]:
    """Notes that explain the section's table, which has all columns, or those of the terminal."""
    rows = section.rows
    reference = section.reference_arms[0] if len(section.reference_arms) == 1 else "the first arm"
    notes = [
        _gain_note(rows, reference),
        _difference_note(section),
        _shared_note(rows),
        section_heard_note(section) or "",
        *dict.fromkeys(of.note for of in _measured(rows, in_terminal=in_terminal)),
        _target_note(section, reference),
        _few_seeds_note(rows),
        _drift_note(rows),
    ]
    return [note for note in notes if note]


def _gain_note(rows: Sequence[Row], reference: str) -> str:
    gains = [row.gain_pp for row in rows if row.gain_pp is not None]
    has_intervals = any(row.mean_accuracy.ci95 is not None for row in rows)
    interval = ", with a 95 % interval (Student's t)" if has_intervals else ""
    return (
        f"Mean over {_seeds(rows)}{interval}. Gain is over {reference} of the same run directory, paired by "
        f"seed.{_tests(gains)} {MEAN_ACCURACY} Bytes are those sent up to the horizon."
    )


def _difference_note(section: Section) -> str:
    rows = section.rows
    differences = [row.difference_pp for row in rows if row.difference_pp is not None]
    if not differences:
        return ""
    return (
        f"Difference is from the same arm of the first run directory, {section.directories[0]}, in whose "
        f"rows it is marked reference{_other_arms(rows)}. "
        f"{_pairings(rows)}{_tests(differences)}"
    )


def _shared_note(rows: Sequence[Row]) -> str:
    is_shared = any(len(row.directories) > 1 for row in rows)
    return "A run that several run directories share stands in one row." if is_shared else ""


def _target_note(section: Section, reference: str) -> str:
    if not section.targets:
        return ""
    moves = MOVES if REFERENCE in section.targets else ""
    counted = ", counted from the first mass event of each run" if section.counts_from_event else ""
    return (
        f"Times to a target and speed-ups over {reference} are medians over seeds, with intervals of order "
        f"statistics{_levels(section.rows)} and without a test{counted}; held is the number of seeds that "
        f"hold the target up to the horizon. {BOUNDS}{moves}".strip()
    )


def _few_seeds_note(rows: Sequence[Row]) -> str:
    if all(len(row.seed_ids) >= FEWEST_SEEDS for row in rows):
        return ""
    return FEW_SEEDS.format(DOTS if any(len(row.seed_ids) == 2 for row in rows) else "")


def _drift_note(rows: Sequence[Row]) -> str:
    cells = [cell for row in rows for cell in row.drift.values() if cell]
    if not cells:
        return ""
    beside = f"; below it the published value, and our mean minus it; {OUTSIDE}"
    published = beside if any(cell["published"] for cell in cells) else ""
    return (
        "Accuracies with and without drift cells are of whole runs, by data step: mean ± sample "
        f"standard deviation over seeds{published}."
    )


def section_heard_note(section: Section) -> str | None:
    """A note on the rows in which offline clients are heard; None if there are none."""
    arms = dict.fromkeys(row.arm for row in section.rows if row.offline_clients_heard)
    return f"Offline clients heard: in rows of {', '.join(arms)}. {OFFLINE_CLIENTS_HEARD}" if arms else None


def folder_warnings(sections: Sequence[Section]) -> list[str]:
    """The limits of the comparisons of all sections in short; one that several share is stated once."""
    by_text: dict[str, list[str]] = {}
    for section in sections:
        for text in _limits(section):
            by_text.setdefault(text, []).append(section.name)
    rows = [row for section in sections for row in section.rows]
    heard = heard_mark(list(dict.fromkeys(row.arm for row in rows if row.offline_clients_heard)))
    few = any(len(row.seed_ids) < FEWEST_SEEDS for row in rows)
    return [
        *(
            as_warning(text if len(sections) == 1 else f"{abbreviated(names, ', ')}: {text}")
            for text, names in by_text.items()
        ),
        *([heard] if heard else []),
        *([FEW_SEEDS.format("")] if few else []),
    ]


def runs_horizon(section: Section) -> str:
    """A note on the stretch of virtual time that the section compares."""
    horizon = section.horizon
    set_by = horizon.ended_first() or "report.horizon_s"
    return (
        f"Compared up to {as_time(horizon.horizon_s)} of virtual time ({set_by}), from "
        f"{as_time(horizon.start_s)}, by which every run has been evaluated."
    )


def runs_warnings(section: Section) -> list[str]:
    """The limits of the section's comparison."""
    return list(map(as_warning, _limits(section)))


def _limits(section: Section) -> list[str]:
    """The limits of the section's comparison, as clauses without a full stop."""
    return [*section.notes, *section.horizon.warnings()]


def _keys(section: Section, *, with_numbers: bool = True) -> list[NamedCells]:
    """The columns that tell the rows apart: their number, the run directory where it is needed, the keys.

    The number is there if a row is identical to an earlier one, unless `with_numbers` is false; the number of
    seeds if it is not the same everywhere.
    """
    rows = section.rows
    columns = _key_columns(section)
    shown = set(zip([row.arm for row in rows], *(cells for _, cells in columns), strict=True))
    if len(shown) < len(rows):
        columns.insert(0, ("run directory", [Cell(_directories(row.directories)) for row in rows]))
    if with_numbers and _identical(rows):
        columns.insert(0, ("row", [Cell(str(number)) for number in range(1, len(rows) + 1)]))
    if len({len(row.seed_ids) for row in rows}) > 1:
        columns.append(("seeds", [Cell(str(len(row.seed_ids))) for row in rows]))
    return columns


def _key_columns(section: Section) -> list[NamedCells]:
    """The columns of the keys in which configurations differ."""
    return [
        (name, _key_cells([row.keys[index] for row in section.rows]))
        for index, name in enumerate(short_names(section.paths))
    ]


def _key_cells(values: Sequence[Any]) -> list[Cell]:
    """The values as text: floats with six digits, unless two different ones would look the same."""
    floats = {value for value in values if isinstance(value, float)}
    is_short = len({f"{value:g}" for value in floats}) == len(floats)

    def text(value: Any) -> str:
        if value is None:
            return NOTHING
        return f"{value:g}" if isinstance(value, float) and is_short else written(value)

    return [Cell(shorten(text(value), MOST_KEY_LETTERS)) for value in values]


def _directories(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _difference_cell(difference: Difference | None, row: Row, *, absent: Cell) -> Cell:
    """The cell of a difference; it states over how many seeds, if they are not all of the row's."""
    if difference is None:
        return absent
    shown = show_difference(difference, points_scale(0.0))
    num_seeds = len(difference.seed_ids)
    if num_seeds in (0, len(row.seed_ids)):
        return shown
    return _with_note(shown, f"over {num_seeds} seed{'s' if num_seeds > 1 else ''}")


def _short(cells: Sequence[Cell], differences: Sequence[Difference | None]) -> list[Cell]:
    """The figures and their intervals, without p-values; where seeds stand for one, their range alone."""
    return [
        Cell(cell.figure, short_interval(cell, difference, points_scale(0.0)))
        for cell, difference in zip(cells, differences, strict=True)
    ]


def _with_note(cell: Cell, note: str) -> Cell:
    return replace(cell, note=f"{cell.note}\n{note}".strip())


def _difference(section: Section) -> list[NamedCells]:
    """The column of differences from the first directory; none if there is no difference."""
    if all(row.difference_pp is None for row in section.rows):
        return []
    cells = []
    for row in section.rows:
        is_first = section.directories[0] in row.directories
        cell = _difference_cell(row.difference_pp, row, absent=REFERENCE_CELL if is_first else Cell(NOTHING))
        if row.difference_pp is not None and row.base_arm != row.arm:
            cell = _with_note(cell, f"from {row.base_arm}")
        cells.append(cell)
    return [("difference", cells)]


def _other_arms(rows: Sequence[Row]) -> str:
    """A clause on the rows that are compared with another arm than their own; empty without them."""
    bases = dict.fromkeys(
        row.base_arm for row in rows if row.difference_pp is not None and row.base_arm != row.arm
    )
    return f"; if that has no arm of the name, from its {', '.join(bases)}" if bases else ""


def _levels(rows: Sequence[Row]) -> str:
    """The levels of the intervals of times, as a clause; empty if there are none."""
    levels = levels_as_text(times["held_from_s"].level for row in rows for times in row.targets)
    return f" at {levels}" if levels else ""


def _identical(rows: Sequence[Row]) -> list[NamedCells]:
    """The column that names an earlier row with the same results; none if there is no such row."""
    if all(row.identical_to is None for row in rows):
        return []
    cells = [Cell(NOTHING if row.identical_to is None else f"row {row.identical_to + 1}") for row in rows]
    return [("identical to", cells)]


def _heard(rows: Sequence[Row]) -> list[NamedCells]:
    """The column that marks rows in which offline clients are heard; none if there is no such row."""
    if not any(row.offline_clients_heard for row in rows):
        return []
    cells = [Cell("heard" if row.offline_clients_heard else NOTHING) for row in rows]
    return [("offline clients", cells)]


def _measured(rows: Sequence[Row], *, in_terminal: bool) -> list[Quantity]:
    """The columns of single tables that say something of some row, each with its note."""
    return [
        of
        for table in all_tables()
        for of in table.in_many_runs
        if of.heading
        and (of.in_terminal or not in_terminal)
        and any_measured(found := [row[of.key] for row in rows])
        and of.only_if(found)
    ]


def _of_tables(rows: Sequence[Row], *, in_terminal: bool) -> list[NamedCells]:
    arms = [row.comparison for row in rows]
    return [(of.heading, of.cells(arms)) for of in _measured(rows, in_terminal=in_terminal)]


def _times(section: Section) -> list[NamedCells]:
    """The columns of each target."""
    return [
        (
            f"{_target_name(target)}: {column.heading}",
            column.cells([row.targets[index] for row in section.rows]),
        )
        for index, target in enumerate(section.targets)
        for column in target_columns(TARGET, counts_from_event=section.counts_from_event)
    ]


def _target_name(target: Target) -> str:
    return "reference's accuracy" if target == REFERENCE else f"{100 * float(target):g}\u00a0%"


def _drift(rows: Sequence[Row]) -> list[NamedCells]:
    """The columns of accuracies with and without drift cells that are known in some row."""
    by_figure = {figure: [row.drift[figure] for row in rows] for figure in COMPARED}
    return [
        (DRIFT_HEADINGS[figure], list(map(_drift_cell, cells)))
        for figure, cells in by_figure.items()
        if any(cells)
    ]


def _drift_cell(cell: Mapping[str, Any] | None) -> Cell:
    if cell is None:
        return Cell(NOTHING)
    ours, published, difference = compared(cell)
    return Cell(ours, f"{published}, {difference}" if published else "")


def _seeds(rows: Sequence[Row]) -> str:
    """The seeds of all rows, or their number if there are many; only "seeds" if rows have different ones."""
    seeds = {tuple(row.seed_ids) for row in rows}
    if len(seeds) != 1:
        return "seeds"
    (ids,) = seeds
    shown = f" ({', '.join(map(str, ids))})" if len(ids) <= MOST_SEEDS else ""
    return f"{len(ids)} seed{'s' if len(ids) > 1 else ''}{shown}"


def _tests(differences: Sequence[Difference]) -> str:
    """How p-values were computed; empty if there are none."""
    count = num_tests(differences)
    if count < 2:
        return " p is the p-value of a t test." if count else ""
    return (
        f" p is the p-value of a t test, corrected by Holm over all {count} tests of the column; intervals "
        f"are not corrected."
    )


def _pairings(rows: Sequence[Row]) -> str:
    """How the differences are paired."""
    sentences = {
        "seed": "It is paired by seed: trace, fleet and availability of each seed are the same.",
        "seed, other trace": "Same seed, other trace: it is paired by the number of the seed, since a key of "
        "the trace was swept.",
        "none": "Unpaired: the runs have other worlds, worlds that are not recorded, or other seeds, and the "
        "test is Welch's.",
        "identical": "Identical: every evaluation of every seed up to the horizon is the same.",
    }
    differences = [(row, row.difference_pp) for row in rows if row.difference_pp is not None]
    present = {difference.pairing for _, difference in differences}
    parts = [sentence for pairing, sentence in sentences.items() if pairing in present]
    if any(0 < len(difference.seed_ids) < len(row.seed_ids) for row, difference in differences):
        parts.append("A paired difference is over the seeds that both have.")
    return " ".join(parts)
