"""The text of a table of many runs: its columns and the notes beside it, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from emulator.errors import abbreviated, shorten
from experiments.results.many_runs.sections import Row, Section
from experiments.results.reading.differing_keys import short_names
from experiments.results.reading.recorded import REFERENCE, Target, written
from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.medians import levels_as_text
from experiments.results.statistics.scales import PickScale, as_time, bytes_scale, percent_scale, points_scale
from experiments.results.statistics.significance import Difference, num_tests
from experiments.results.tables import all_tables
from experiments.results.tables.accuracy import MEAN_ACCURACY
from experiments.results.tables.cells import NOTHING, Cell, in_short, show_difference
from experiments.results.tables.costs import RECLUSTERED
from experiments.results.tables.notes import BOUNDS, MOVES, as_warning, few_seeds_note, heard_mark, heard_note
from experiments.results.tables.personal import PERSONAL
from experiments.results.tables.published_cells import OUTSIDE, beside_paper
from experiments.results.tables.quantities import REFERENCE_CELL, Quantity, any_measured, column_cells
from experiments.results.tables.table import TextTable
from experiments.results.tables.targets import HELD, HELD_FROM, SPEEDUP, target_columns
from experiments.results.wording import in_its_words

TARGET = (HELD_FROM, SPEEDUP, HELD)
"""The columns of each target."""

DRIFT_HEADINGS = {
    "accuracy_omitting_drift": "accuracy (%) omitting drift cells",
    "accuracy_including_drift": "accuracy (%) including drift cells",
}

PAIRINGS = {
    "seed": "It is paired by seed: trace, fleet and availability of each seed are the same.",
    "seed, other trace": "Same seed, other trace: it is paired by the number of the seed, since a key of "
    "the trace was swept.",
    "none": "Unpaired: the runs have other worlds, worlds that are not recorded, or other seeds, and the "
    "test is Welch's.",
    "identical": "Identical: every evaluation of every seed up to the horizon is the same.",
}
"""How differences are paired."""

SHARED = "A run that several run directories share stands in one row."

MOST_KEY_LETTERS = 40
"""Most letters of a value in a table."""

MOST_SEEDS = 10
"""Most seeds that a note lists."""

NamedCells = tuple[str, Sequence[Cell]]
"""A column: its heading, and a cell for each row."""


def in_columns(arms: Sequence[str], columns: Sequence[NamedCells], num_keys: int = 0) -> TextTable:
    """The table with these columns, which has a row for each of `arms`."""
    return TextTable(
        headings=[heading for heading, _ in columns],
        rows=[(arm, [cells[index] for _, cells in columns]) for index, arm in enumerate(arms)],
        num_keys=num_keys,
    )


@in_its_words
def runs_table(section: Section, *, in_terminal: bool = False) -> TextTable:
    """The section as text: the differing keys of each row, its accuracies, times to each target and bytes.

    Left out are columns that would say nothing: the run directory if the keys tell all rows apart, the
    difference if there is a single directory, offline clients if none are heard, accuracies with and without
    drift cells and what single tables measure (`in_many_runs`) if they are not known in any row. With
    `in_terminal`, so are columns that only the page shows.
    """
    rows = section.rows
    keys, served = _keys(section), "served " if has_personal(rows) else ""
    columns = [
        *keys,
        (f"mean {served}accuracy", column_cells(percent_scale, [row.mean_accuracy for row in rows])),
        (f"{served}gain", _gains(rows)),
        *_telling(
            ("difference", _differences(section)),
            _texts("identical to", map(_earlier, rows)),
            _texts("offline clients", ["heard" if row.offline_clients_heard else NOTHING for row in rows]),
        ),
        *(
            (of.heading, of.cells([row.comparison for row in rows]))
            for of in _measured(rows, in_terminal=in_terminal)
        ),
        *_times(section),
        ("bytes sent", column_cells(bytes_scale, [row.total_bytes for row in rows])),
        *_telling(
            *(
                (title, [beside_paper(row.drift[name]) for row in rows])
                for name, title in DRIFT_HEADINGS.items()
            )
        ),
    ]
    return in_columns([row.arm for row in rows], columns, len(keys))


def _texts(heading: str, texts: Iterable[object]) -> NamedCells:
    """A column of texts, or of numbers that are counts."""
    return heading, [Cell(str(text)) for text in texts]


def _telling(*columns: NamedCells) -> list[NamedCells]:
    """Those of the columns in which some cell says something."""
    nothing = (NOTHING, REFERENCE_CELL.figure)
    return [column for column in columns if any(cell.figure not in nothing for cell in column[1])]


def short_runs_table(sections: Sequence[Section]) -> TextTable:
    """One table of all sections: what tells the rows apart, mean accuracy, and gains.

    Of one section, the rows are told apart by the keys in which configurations differ; of several, by their
    run directories. Where no arm is compared with a reference arm, differences from the first directory are
    in the place of gains. Intervals are those of gains and differences alone, and p-values are left out.
    """
    rows = [row for section in sections for row in section.rows]
    keys = [_texts("experiment", map(_directories, rows))]
    served = "served " if has_personal(rows) else ""
    name, gains, found = f"{served}gain", _gains(rows), [row.gain_pp for row in rows]
    if len(sections) == 1:
        keys = _keys(sections[0], with_numbers=False)
        differences = [row.difference_pp for row in rows]
        if any(differences) and not any(found):
            name, gains, found = "difference", _differences(sections[0]), differences
    columns = [
        *keys,
        (f"mean {served}accuracy", _figures(percent_scale, [row.mean_accuracy for row in rows])),
        (name, [in_short(*of_row, points_scale(0.0)) for of_row in zip(gains, found, strict=True)]),
    ]
    if served:
        columns.append((PERSONAL.heading, _figures(percent_scale, [row[PERSONAL.key] for row in rows])))
    if any_measured([row[RECLUSTERED.key] for row in rows]):
        columns.append((RECLUSTERED.heading, RECLUSTERED.cells([row.comparison for row in rows])))
    return in_columns([row.arm for row in rows], columns, len(keys))


def _figures(pick_scale: PickScale, found: Sequence[Estimate]) -> list[Cell]:
    """The cells of a column without their intervals."""
    return [Cell(cell.figure) for cell in column_cells(pick_scale, found)]


def has_personal(rows: Sequence[Row]) -> bool:
    """Whether clients of some row use parameters of their own."""
    return any_measured([row[PERSONAL.key] for row in rows])


@in_its_words
def runs_notes(section: Section, *, in_terminal: bool = False) -> list[str]:
    """Notes that explain the section's table, which has all columns, or those of the terminal."""
    rows = section.rows
    reference = section.reference_arms[0] if len(section.reference_arms) == 1 else "the first arm"
    notes = [
        _gain_note(rows, reference),
        _difference_note(section),
        SHARED if any(len(row.directories) > 1 for row in rows) else "",
        section_heard_note(section),
        *dict.fromkeys(of.note for of in _measured(rows, in_terminal=in_terminal)),
        _target_note(section, reference),
        few_seeds_note([row.comparison for row in rows]),
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
    rows = [(row, row.difference_pp) for row in section.rows if row.difference_pp is not None]
    if not rows:
        return ""
    others = dict.fromkeys(row.base_arm for row, _ in rows if row.base_arm != row.arm)
    other = f"; if that has no arm of the name, from its {', '.join(others)}" if others else ""
    present = {difference.pairing for _, difference in rows}
    paired = [sentence for pairing, sentence in PAIRINGS.items() if pairing in present]
    if any(0 < len(difference.seed_ids) < len(row.seed_ids) for row, difference in rows):
        paired.append("A paired difference is over the seeds that both have.")
    return (
        f"Difference is from the same arm of the first run directory, {section.directories[0]}, in whose "
        f"rows it is marked reference{other}. "
        f"{' '.join(paired)}{_tests([difference for _, difference in rows])}"
    )


def _target_note(section: Section, reference: str) -> str:
    if not section.targets:
        return ""
    moves = MOVES if REFERENCE in section.targets else ""
    levels = levels_as_text(times["held_from_s"].level for row in section.rows for times in row.targets)
    at = f" at {levels}" if levels else ""
    counted = ", counted from the first mass event of each run" if section.counts_from_event else ""
    return (
        f"Times to a target and speed-ups over {reference} are medians over seeds, with intervals of order "
        f"statistics{at} and without a test{counted}; held is the number of seeds that "
        f"hold the target up to the horizon. {BOUNDS}{moves}".strip()
    )


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


def section_heard_note(section: Section) -> str:
    """A note on the rows in which offline clients are heard; empty if there are none."""
    return heard_note(_heard(section.rows), where="in rows of ")


def _heard(rows: Sequence[Row]) -> list[str]:
    """The arms of the rows in which offline clients are heard."""
    return list(dict.fromkeys(row.arm for row in rows if row.offline_clients_heard))


def folder_warnings(sections: Sequence[Section]) -> list[str]:
    """The limits of the comparisons of all sections in short; one that several share is stated once."""
    by_text: dict[str, list[str]] = {}
    for section in sections:
        for text in section.warnings:
            by_text.setdefault(text, []).append(section.name)
    rows = [row for section in sections for row in section.rows]
    limits = [
        as_warning(text if len(sections) == 1 else f"{abbreviated(names, ', ')}: {text}")
        for text, names in by_text.items()
    ]
    few = few_seeds_note([row.comparison for row in rows], has_dots=False)
    return [*limits, *filter(None, [heard_mark(_heard(rows)), few])]


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
    return list(map(as_warning, section.warnings))


def _keys(section: Section, *, with_numbers: bool = True) -> list[NamedCells]:
    """The columns that tell the rows apart: their number, the run directory where it is needed, the keys.

    The number is there if a row is identical to an earlier one, unless `with_numbers` is false; the number of
    seeds if it is not the same everywhere.
    """
    rows = section.rows
    columns: list[NamedCells] = [
        _texts(name, _key_texts([row.keys[index] for row in rows]))
        for index, name in enumerate(short_names(section.paths))
    ]
    shown = set(zip([row.arm for row in rows], *(cells for _, cells in columns), strict=True))
    if len(shown) < len(rows):
        columns.insert(0, _texts("run directory", map(_directories, rows)))
    if with_numbers and any(row.identical_to is not None for row in rows):
        columns.insert(0, _texts("row", range(1, len(rows) + 1)))
    seeds = [len(row.seed_ids) for row in rows]
    if len(set(seeds)) > 1:
        columns.append(_texts("seeds", seeds))
    return columns


def _key_texts(values: Sequence[Any]) -> list[str]:
    """The values as text: floats with six digits, unless two different ones would look the same."""
    floats = {value for value in values if isinstance(value, float)}
    if len({f"{value:g}" for value in floats}) == len(floats):
        values = [f"{value:g}" if isinstance(value, float) else value for value in values]
    return [NOTHING if value is None else shorten(written(value), MOST_KEY_LETTERS) for value in values]


def _directories(row: Row) -> str:
    first, *others = row.directories
    return f"{first} and {len(others)} more" if others else first


def _earlier(row: Row) -> str:
    """The number of the earlier row with the same results; a dash without one."""
    return NOTHING if row.identical_to is None else f"row {row.identical_to + 1}"


def _gains(rows: Sequence[Row]) -> list[Cell]:
    """The cells of the gains over the reference arm."""
    return [REFERENCE_CELL if row.gain_pp is None else _difference_cell(row.gain_pp, row) for row in rows]


def _differences(section: Section) -> list[Cell]:
    """The cells of the differences from the first directory."""
    cells = []
    for row in section.rows:
        if row.difference_pp is not None:
            cells.append(_difference_cell(row.difference_pp, row, row.base_arm))
        else:
            cells.append(REFERENCE_CELL if section.directories[0] in row.directories else Cell(NOTHING))
    return cells


def _difference_cell(difference: Difference, row: Row, base_arm: str = "") -> Cell:
    """The cell of a difference; it states over how many seeds, if not all of the row's, and from which arm.

    That is `base_arm`, if it is another one than the row's.
    """
    shown, num_seeds = show_difference(difference, points_scale(0.0)), len(difference.seed_ids)
    notes = [shown.note]
    if num_seeds not in (0, len(row.seed_ids)):
        notes.append(f"over {num_seeds} seed{'s' if num_seeds > 1 else ''}")
    if base_arm not in ("", row.arm):
        notes.append(f"from {base_arm}")
    return replace(shown, note="\n".join(filter(None, notes)))


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
