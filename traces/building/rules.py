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


class Cells(SimpleNamespace):
    """What rules look at: columns (rows,) and whatever else, by name."""

    def at(self, row: int) -> dict[str, object]:
        """All of it, of columns the value in a row."""
        return {
            name: value[row] if isinstance(value, np.ndarray) else value for name, value in vars(self).items()
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
