"""Mean and deviation of the features of a table, from blocks of rows; and the mean as a missing number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from emulator.errors import DataFileError
from traces.building.table.encoding import Standardised
from traces.building.table.moments import Moments

FILLED_ROWS_BYTES = 2**23


class OfNumbers:
    """Mean and deviation of the numbers; other columns, of zeros and ones, are left as they are."""

    def __init__(self, encoder: Standardised) -> None:
        self.encoder = encoder
        self.moments = Moments(len(encoder.names))
        self.has_missing = False

    def add(self, block: np.ndarray, weight: np.ndarray) -> None:
        self.has_missing |= bool(np.isnan(block).any())
        self.moments.add(block, weight)

    def as_json(self) -> dict[str, Any]:
        return {"missing": self.has_missing, **self.moments.as_json()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.has_missing = bool(state["missing"])
        self.moments.restore(state)

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        is_number = self.encoder.is_number
        return np.where(is_number, self.moments.mean, 0.0), np.where(is_number, self.moments.deviation(), 1.0)


class OfImages:
    """Mean and deviation of each channel, from sums of whole numbers."""

    def __init__(self) -> None:
        self.count, self.sum, self.squares = 0, [0, 0, 0], [0, 0, 0]

    def add(self, block: np.ndarray, weight: np.ndarray) -> None:
        values = np.repeat(block, weight.astype(np.int64), axis=0).astype(np.int64)
        self.count += values[:, 0].size
        self.sum = [old + int(new) for old, new in zip(self.sum, values.sum(axis=(0, 2, 3)), strict=True)]
        values *= values
        self.squares = [
            old + int(new) for old, new in zip(self.squares, values.sum(axis=(0, 2, 3)), strict=True)
        ]

    def as_json(self) -> dict[str, Any]:
        return {"count": self.count, "sum": self.sum, "squares": self.squares}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.count, self.sum, self.squares = int(state["count"]), list(state["sum"]), list(state["squares"])

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        count = max(self.count, 1)
        mean = np.array([value / count for value in self.sum])
        variance = np.array(
            [
                (count * square - value**2) / count**2
                for value, square in zip(self.sum, self.squares, strict=True)
            ]
        )
        return mean / 255, np.where(variance > 0, np.sqrt(variance), 255.0) / 255


def fill_missing(path: Path, statistics: OfNumbers, root: Path) -> None:
    """Replace NaN in the features by the mean of its column; a second time it changes nothing."""
    moments, names = statistics.moments, statistics.encoder.names
    values = np.lib.format.open_memmap(path, mode="r+")
    means = moments.mean.astype(np.float32)
    step = max(1, FILLED_ROWS_BYTES // (4 * len(names)))
    for first in range(0, len(values), step):
        block = values[first : first + step]
        row, column = np.nonzero(np.isnan(block))
        if len(row):
            unknown = column[moments.count[column] == 0]
            if len(unknown):
                raise DataFileError(
                    root,
                    f"feature {names[int(unknown[0])]!r} has no value in the rows that means are taken of; "
                    f"leave it out, raise retain, or give --missing zero",
                )
            block[row, column] = means[column]
    values.flush()
