"""What is found in a trace folder, one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from emulator.errors import DataFileError

MOST_LISTED = 100
"""Most rows, samples, classes or clients that are listed for one rule; the others are counted."""


@dataclass(frozen=True)
class Finding:
    """One line: the file or folder, the row (from 1) if it is in one, and the rule with the value or key."""

    path: Path
    problem: str
    row: int | None = None

    def __str__(self) -> str:
        return str(DataFileError(self.path, self.problem, self.row))


@dataclass
class RowFindings:
    """The rows of `path` that break one rule, found block by block.

    Attributes:
        listed: a line for each of the first `MOST_LISTED` rows.
        number: the number of all rows.
    """

    path: Path
    listed: list[Finding] = field(default_factory=list)
    number: int = 0

    def add(self, rows: Ints, problem: Callable[..., str], *columns: np.ndarray) -> None:
        """Add rows (n,), counted from 0; `problem` makes a line of a row's values in `columns`, each (n,)."""
        for place in range(min(len(rows), MOST_LISTED - len(self.listed))):
            text = problem(*(column[place] for column in columns))
            self.listed.append(Finding(self.path, text, int(rows[place]) + 1))
        self.number += len(rows)

    def lines(self) -> list[Finding]:
        """A line for each of the first rows, and one for the number of the others."""
        others = self.number - len(self.listed)
        if not others:
            return self.listed
        return [*self.listed, Finding(self.path, f"and {others} more rows like row {self.listed[0].row}")]


@dataclass
class Findings:
    """What was found in a trace folder, in the order of its files and rules.

    Attributes:
        violations: what breaks a rule of the format; a folder without any can be played.
        remarks: what is allowed, but may be a mistake or slows a run down.
    """

    violations: list[Finding] = field(default_factory=list)
    remarks: list[Finding] = field(default_factory=list)

    def add(self, error: DataFileError) -> None:
        """Add the violation that a reader refuses."""
        self.violations.append(Finding(Path(error.path), error.problem, error.row))

    def passes(self, check: Callable[[], object]) -> bool:
        """Whether `check` raises no DataFileError; if it does, that is a violation."""
        try:
            check()
        except DataFileError as error:
            self.add(error)
            return False
        return True

    def add_rows(self, path: Path, rows: Sequence[int] | Ints, problem: Callable[[int], str]) -> None:
        """Add a line for each of the first rows, counted from 0, and one line for the number of the others.

        `problem` is called with the place of a row among `rows`.
        """
        found = RowFindings(path)
        found.add(np.asarray(rows), problem, np.arange(len(rows)))
        self.violations.extend(found.lines())
