"""The text of a table of many runs: its columns and the notes beside it, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.results.accuracy_tables import TargetRow
from experiments.results.formats import (
    Cell,
    bytes_scale,
    factor_scale,
    percent_scale,
    points_scale,
    show_difference,
    time_scale,
)
from experiments.results.many_runs.differing_keys import short_names
from experiments.results.many_runs.sections import Row, Section
from experiments.results.many_runs.significance import Difference, num_tests
from experiments.results.published import COMPARED
from experiments.results.recorded import REFERENCE, Target
from experiments.results.report.cells import NOTHING, compared
from experiments.results.report.columns import REFERENCE_CELL, Column, Tally, TextTable
from experiments.results.report.notes import BOUNDS, FEW_SEEDS, MEAN_ACCURACY, as_warning
from experiments.results.report.what_was_run import written

TARGET = (
    Column("held_from_s", "held from", time_scale),
    Column("speedup", "speed-up", factor_scale),
    Tally(),
)
"""The columns of each target."""

DRIFT_HEADINGS = {
    "accuracy_omitting_drift": "accuracy (%) omitting drift cells",
    "accuracy_including_drift": "accuracy (%) including drift cells",
}

NamedCells = tuple[str, Sequence[Cell]]
"""A column: its heading, and a cell for each row."""


def runs_table(section: Section) -> TextTable:
    """The section as text: the differing keys of each row, its accuracies, times to each target and bytes.

    Left out are columns that would say nothing: the run directory if the keys tell all rows apart, the
    difference if there is a single directory, and accuracies with and without drift cells if none is known.
    """
    rows = section.rows
    keys = _keys(section)
    columns = [
        *keys,
        ("mean accuracy", Column("mean_accuracy", "", percent_scale).cells(rows)),
        ("gain", _differences([row.gain_pp for row in rows], REFERENCE_CELL)),
        *_difference(section),
        *_identical(rows),
        *(column for index, target in enumerate(section.targets) for column in _times(rows, index, target)),
        ("bytes sent", Column("total_bytes", "", bytes_scale).cells(rows)),
        *(column for figure in COMPARED for column in _drift(rows, figure)),
    ]
    return TextTable(
        headings=[heading for heading, _ in columns],
        rows=[(row.arm, [cells[index] for _, cells in columns]) for index, row in enumerate(rows)],
        num_keys=len(keys),
    )


def runs_notes(section: Section) -> list[str]:
    """Notes that explain the section's table."""
    rows = section.rows
    gains, differences = (
        [item for item in column if item is not None]
        for column in ([row.gain_pp for row in rows], [row.difference_pp for row in rows])
    )
    reference = section.reference_arms[0] if len(section.reference_arms) == 1 else "the first arm"
    notes = [
        f"Mean over seeds, with a 95 % interval (Student's t). Gain is over {reference} of the same run "
        f"directory, paired by seed.{_tests(gains)} {MEAN_ACCURACY}"
    ]
    if differences:
        notes.append(
            f"Difference is from the same arm of {section.directories[0]}, or from its reference arm if it "
            f"has none of that name. {_pairings(differences)}{_tests(differences)}"
        )
    if any(len(row.directories) > 1 for row in rows):
        notes.append("Runs that several run directories share are in one row.")
    if section.targets:
        notes.append(
            f"Times to a target and speed-ups over {reference} are medians over seeds, with intervals of "
            f"order statistics and without a test; held is the number of seeds that hold the target up to "
            f"the horizon. {BOUNDS.strip()}"
        )
    if any(len(row.seed_ids) < 3 for row in rows):
        notes.append(FEW_SEEDS.format(""))
    if any(cell and cell["published"] for row in rows for cell in row.drift.values()):
        notes.append("Below an accuracy with drift cells is the published value, and our mean minus it.")
    return notes


def runs_horizon(section: Section) -> str:
    """A note on the stretch of virtual time that the section compares."""
    horizon = section.horizon
    set_by = horizon.ended_first() or "report.horizon_s"
    return (
        f"Compared up to {_time(horizon.horizon_s)} of virtual time ({set_by}), from "
        f"{_time(horizon.start_s)} on, where every run has been evaluated."
    )


def runs_warnings(section: Section) -> list[str]:
    """The limits of the section's comparison."""
    return [as_warning(text) for text in (*section.notes, *section.horizon.warnings())]


def _keys(section: Section) -> list[NamedCells]:
    """The columns that tell the rows apart: their number, the run directory where it is needed, the keys.

    The number is there if a row is identical to an earlier one.
    """
    rows = section.rows
    columns: list[NamedCells] = [
        (name, _key_cells([row.keys[index] for row in rows]))
        for index, name in enumerate(short_names(section.paths))
    ]
    if len({(row.arm, repr(row.keys)) for row in rows}) < len(rows):
        columns.insert(0, ("run directory", [Cell(_directories(row.directories)) for row in rows]))
    if _identical(rows):
        columns.insert(0, ("row", [Cell(str(number)) for number in range(1, len(rows) + 1)]))
    return columns


def _key_cells(values: Sequence[Any]) -> list[Cell]:
    """The values as text: floats with six digits, unless two different ones would look the same."""
    floats = {value for value in values if isinstance(value, float)}
    is_short = len({f"{value:g}" for value in floats}) == len(floats)
    return [
        Cell(
            NOTHING
            if value is None
            else f"{value:g}"
            if isinstance(value, float) and is_short
            else written(value)
        )
        for value in values
    ]


def _directories(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _differences(differences: Sequence[Difference | None], absent: Cell) -> list[Cell]:
    scale = points_scale(0.0)
    return [absent if item is None else show_difference(item, scale) for item in differences]


def _difference(section: Section) -> list[NamedCells]:
    differences = [row.difference_pp for row in section.rows]
    return [("difference", _differences(differences, Cell("first")))] if any(differences) else []


def _identical(rows: Sequence[Row]) -> list[NamedCells]:
    """The column that names an earlier row with the same results; none if there is no such row."""
    if all(row.identical_to is None for row in rows):
        return []
    cells = [Cell(NOTHING if row.identical_to is None else f"row {row.identical_to + 1}") for row in rows]
    return [("identical to", cells)]


def _times(rows: Sequence[Row], index: int, target: Target) -> list[NamedCells]:
    of_target: list[TargetRow] = [row.targets[index] for row in rows]
    name = "reference's accuracy" if target == REFERENCE else f"{100 * float(target):g}\u00a0%"
    return [(f"{name}: {column.heading}", column.cells(of_target)) for column in TARGET]


def _drift(rows: Sequence[Row], figure: str) -> list[NamedCells]:
    cells = [row.drift[figure] for row in rows]
    return [] if not any(cells) else [(DRIFT_HEADINGS[figure], [_drift_cell(cell) for cell in cells])]


def _drift_cell(cell: Mapping[str, Any] | None) -> Cell:
    if cell is None:
        return Cell(NOTHING)
    ours, published, difference = compared(cell)
    return Cell(ours, f"{published}, {difference}" if published else "")


def _tests(differences: Sequence[Difference]) -> str:
    """How p-values were computed; empty if there are none."""
    count = num_tests(differences)
    if count < 2:
        return " p is of a t test." if count else ""
    return (
        f" p is of a t test, corrected by Holm over all {count} tests of the column; intervals are not "
        f"corrected."
    )


def _pairings(differences: Sequence[Difference]) -> str:
    """How the differences are paired."""
    sentences = {
        "seed": "It is paired by seed: trace, fleet and availability of each seed are the same.",
        "seed, other trace": "Same seed, other trace: it is paired by the number of the seed, since a key of "
        "the trace was swept.",
        "none": "Unpaired: the runs have other worlds or other seeds, and the test is Welch's.",
        "identical": "Identical: every evaluation of every seed is the same.",
    }
    present = {item.pairing for item in differences}
    return " ".join(sentence for pairing, sentence in sentences.items() if pairing in present)


def _time(time_s: float) -> str:
    return time_scale(time_s)(time_s)
