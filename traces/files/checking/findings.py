"""What is found in a trace folder, one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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

    def add_rows(
        self,
        path: Path,
        rows: Sequence[int] | Ints,
        problem: Callable[[int], str],
        *,
        is_remark: bool = False,
    ) -> None:
        """Add a line for each of the first rows, counted from 0, and one line for the number of the others.

        `problem` is called with the place of a row among `rows`.
        """
        found = self.remarks if is_remark else self.violations
        listed = min(len(rows), MOST_LISTED)
        found += [Finding(path, problem(place), int(rows[place]) + 1) for place in range(listed)]
        if len(rows) > listed:
            found.append(Finding(path, f"and {len(rows) - listed} more rows like row {int(rows[0]) + 1}"))
