"""Mean and deviation of the features of a table, from blocks of rows; and the mean as a missing number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.checkpoints import naming_file
from traces.building.table.encoders.encoding import Standardised
from traces.building.table.encoders.moments import Moments
from traces.files.features import channels

FILLED_ROWS_BYTES = 2**23


class OfNumbers:
    """Mean and deviation of the numbers; other columns, of zeros and ones, are left as they are.

    Of numbers that make images of a `shape`, those of each channel.
    """

    def __init__(self, encoder: Standardised, shape: tuple[int, ...]) -> None:
        self.encoder = encoder
        self.shape = shape
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

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what has a mean and a deviation: features or channels."""
        if len(self.shape) == 1:
            return self.encoder.names
        return tuple(f"channel {number}" for number in range(1, channels(self.shape) + 1))

    def constant(self) -> Ints:
        """The numbers, as in `names`, of what has a single value."""
        squares = self._merged().squares
        return np.flatnonzero((squares == 0) & self._is_number())

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        is_number, moments = self._is_number(), self._merged()
        return np.where(is_number, moments.mean, 0.0), np.where(is_number, moments.deviation(), 1.0)

    def _is_number(self) -> Bools:
        is_number: Bools = self.encoder.is_number
        return is_number if len(self.shape) == 1 else np.ones(channels(self.shape), np.bool_)

    def _merged(self) -> Moments:
        return self.moments if len(self.shape) == 1 else self.moments.merged(channels(self.shape))


class OfImages:
    """Mean and deviation of each channel, from sums of whole numbers."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.channels = channels(shape)
        self.count, self.sum, self.squares = 0, [0] * self.channels, [0] * self.channels

    def add(self, block: np.ndarray, weight: np.ndarray) -> None:
        values = np.repeat(block, weight.astype(np.int64), axis=0).astype(np.int64)
        values = values.reshape(len(values), self.channels, *block.shape[-2:])
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
        block = values[first : first + step].reshape(-1, len(names))
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
    with naming_file(path):
        values.flush()
