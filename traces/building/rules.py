"""The rules that the rows of a data set keep: each one a condition, and a message with its remedy.

A rule looks at the cells of a batch, columns of shape (rows,) and what else it is about, by name. In its
message `{name}` is what the cells have under that name, of a column the value in the row that breaks it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools
from emulator.storage.reading.shards import Batch
from traces.building.bad_rows import BadRows
from traces.building.pixels import leads_out


class Cells(SimpleNamespace):
    """What rules look at: columns (rows,), arrays or lists, and whatever else, by name."""

    def at(self, row: int) -> dict[str, object]:
        """All of it, of columns the value in a row."""
        return {
            name: value[row] if isinstance(value, np.ndarray | list) else value
            for name, value in vars(self).items()
        }


class Rule(NamedTuple):
    """Rows where `broken` (rows,) is true are refused as `says` says, a format or a function of the row."""

    broken: Callable[[Cells], Bools]
    says: str | Callable[[Cells, int], str]

    def problem(self, cells: Cells, row: int) -> str:
        """What is wrong with a row that breaks it."""
        return self.says.format(**cells.at(row)) if isinstance(self.says, str) else self.says(cells, row)


def keep(rules: tuple[Rule, ...], cells: Cells, bad: BadRows, batch: Batch, start: int) -> Bools:
    """(rows,) whether each row of a batch, whose first one is number `start` of the table, keeps all rules.

    Others are left out, each by the first rule that it breaks; DataFileError if they are too many.
    """
    broken = [np.asarray(rule.broken(cells)) for rule in rules]
    refused: Bools = np.logical_or.reduce(broken)
    bad.refuse(batch, start, refused, lambda row: _first_problem(rules, broken, cells, row))
    return ~refused


def refuse(rules: tuple[Rule, ...], cells: Cells, path: Path, num_rows: int) -> None:
    """Raise DataFileError, with its row, for the first of the rows of a file that breaks one of the rules."""
    keep(rules, cells, BadRows(0), Batch(path, 0, {}, num_rows), 0)


def _first_problem(rules: tuple[Rule, ...], broken: list[Bools], cells: Cells, row: int) -> str:
    return next(rule.problem(cells, row) for rule, rows in zip(rules, broken, strict=True) if rows[row])


# -- data sets of images -------------------------------------------------------------------------------------


def _lead_out(cells: Cells) -> Bools:
    return np.array([leads_out(name) for name in cells.file], dtype=np.bool_)


FILES = (Rule(_lead_out, "{column} {file!r}: leads out of {folder}"),)

OBJECTS = (
    Rule(
        lambda cells: cells.label < 0, "class {text!r}: must be a number from 0 to {last}, or one of {names}"
    ),
    *FILES,
    Rule(
        lambda cells: (cells.box[:, 2:] <= cells.box[:, :2]).any(axis=1),
        lambda cells, row: f"x0,y0,x1,y1 = {cells.box[row].tolist()}: the box is empty",
    ),
)

CATEGORIES = (Rule(lambda cells: cells.label < 0, "category {category!r}: is none of the {number} of fMoW"),)

LABEL_IDS = (
    Rule(
        lambda cells: cells.label < 0,
        "label_id = {label}: no class; samples without classes cannot be played",
    ),
)

CIFAR_LABELS = (
    Rule(
        lambda cells: cells.label >= cells.size,
        "{name} label {label}: must be below {size}; is it of another version?",
    ),
)

PATHS_ONCE = (Rule(lambda cells: cells.first < cells.number, "path {path!r} is also in row {first}"),)
PATHS_OF_IMAGES = (Rule(lambda cells: ~cells.known, "path {path!r}: no such image below {root}"),)

FRAMES_ONCE = (Rule(lambda cells: cells.again, "{keys[0]} and {keys[1]}: occur twice"),)
FRAMES = (
    Rule(lambda cells: ~cells.known, "{keys[0]} = {time}, {keys[1]} = {camera}: {images} has no such frame"),
)
