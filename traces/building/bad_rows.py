"""Rows that cannot be used: the first one ends a build, unless it may leave some out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.reading.shards import Batch
from traces.building.remarks import count_cause, left_out


class BadRows:
    """The rows that are left out, at most `most`; `rows` are their numbers in the table, from 0 on.

    `causes` counts them by cause, and `malformed` lines of a CSV that are no rows at all.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows: set[int] = set()
        self.causes: dict[str, int] = {}
        self.malformed = 0
        self.first: str | None = None

    def __len__(self) -> int:
        return len(self.rows) + self.malformed

    def refuse(self, batch: Batch, start: int, bad: Bools, problem: Callable[[int], str]) -> None:
        """Leave out the rows where `bad` (rows of the batch,).

        Args:
            batch: the rows.
            start: the number of the first one in the table.
            bad: which ones are bad.
            problem: says what is wrong with one, by its number in the batch.

        Raises:
            DataFileError: there are more than may be left out; it names the first one of this batch.
        """
        if not bad.any():
            return
        numbers = np.flatnonzero(bad)
        first = int(numbers[0])
        error = DataFileError(batch.path, problem(first), batch.first + first + 1)
        new = [row for row in numbers.tolist() if start + row not in self.rows]
        if len(self) + len(new) <= self.most:
            for row in new:
                count_cause(self.causes, problem(row))
        self.rows.update((start + numbers).tolist())
        self.first = self.first or str(error)
        if len(self) > self.most == 0:
            raise error
        if len(self) > self.most:
            many = f"more than --skip-bad {self.most} rows are bad: {len(self)}"
            raise DataFileError(batch.path, f"{many}; the first: {self.first}") from error

    def remark(self) -> str | None:
        """What was left out, by the commonest cause; None if nothing was."""
        causes = {**self.causes, "too few or too many cells in the line": self.malformed}
        return left_out(len(self), "bad rows", causes, self.first) if len(self) else None

    def malformed_line(self) -> bool:
        """Leave out a line that has too few or too many cells; False if that is one too many."""
        self.malformed += 1
        return len(self) <= self.most

    def mask(self, num_rows: int) -> Bools:
        """(num_rows,) whether each row of the table is bad."""
        bad = np.zeros(num_rows, dtype=np.bool_)
        bad[self.numbers()] = True
        return bad

    def numbers(self) -> Ints:
        """The numbers of all bad rows, ascending."""
        return np.array(sorted(self.rows), dtype=np.int64)

    def as_json(self) -> dict[str, Any]:
        """The bad rows and their causes, which `restore` takes over."""
        return {"rows": self.numbers().tolist(), "causes": dict(self.causes)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Inverse of `as_json`."""
        self.rows.update(state["rows"])
        self.causes = dict(state["causes"])
