"""What the features of a table are written by: an encoder of its rows, with their mean and deviation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools
from emulator.errors import DataFileError
from emulator.storage.checkpoints import naming_file
from emulator.storage.reading.shards import Batch
from traces.building.bad_rows import BadRows
from traces.building.sums import ByteSums, Moments
from traces.files.features import channels

COARSE = 2.0**16
"""Above this ratio of mean to deviation, standardised numbers of 32 bits have fewer than 8 bits left."""

FILLED_ROWS_BYTES = 2**23

MOST_NAMED = 5
"""Most features that a note names."""

BYTES, NUMBERS = np.dtype(np.uint8), np.dtype("<f4")


class Encoder(ABC):
    """Makes the rows of a batch rows of `features.npy`.

    Attributes:
        bad: Counts the rows that are left out.
        types: The columns that are read, with their types.
        rows: Rows to encode at once.
        shape: The shape of a sample.
        dtype: `BYTES`, or `NUMBERS`.
        names: Of numbers, what has a mean and a deviation, before `standardised`.
        shown: The features as `trace.toml` names them.
    """

    bad: BadRows
    types: Mapping[str, pa.DataType]
    rows: int
    shape: tuple[int, ...]
    dtype: np.dtype
    names: tuple[str, ...] = ()
    shown: tuple[str, ...]

    @abstractmethod
    def encode(self, batch: Batch, start: int, keep: Bools) -> np.ndarray:
        """Encode a batch.

        Args:
            batch: the rows, of which the first is number `start` of the table.
            start: number of the first row.
            keep: (rows,) which rows are used; values of others are not looked at.

        Returns:
            The features of the kept rows, of `dtype`; bad rows, if they may be left out, are zero.

        Raises:
            DataFileError: a value is missing or breaks a rule, and may not be left out.
        """

    def no_sums(self) -> ByteSums | Moments:
        """The sums of no rows."""
        return ByteSums.none(channels(self.shape)) if self.dtype == BYTES else Moments(len(self.names))

    def sums(self, values: np.ndarray, weight: np.ndarray) -> ByteSums | Moments:
        """The sums of encoded rows (k, ...), each as often as `weight` (k,) says."""
        return ByteSums.of(values, weight) if self.dtype == BYTES else Moments.of(values, weight)

    def standardised(self, moments: Moments) -> tuple[tuple[str, ...], Moments, Bools]:
        """The names of what has a mean and a deviation, its moments, and which of it is standardised."""
        return self.names, moments, np.ones(len(self.names), np.bool_)

    def finish(self, path: Path, sums: Any, root: Path) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the deviation of each feature or channel; gaps in `path` are filled first.

        DataFileError, with the table `root`, where there is nothing to fill them with.
        """
        if isinstance(sums, ByteSums):
            return sums.standard()
        _, moments, is_number = self.standardised(sums)
        return np.where(is_number, moments.mean, 0.0), np.where(is_number, moments.deviation(), 1.0)

    def notes(self, sums: Any) -> list[str]:
        """What the user may not have meant, of numbers that vary little or not at all."""
        if isinstance(sums, ByteSums):
            return []
        names, moments, is_number = self.standardised(sums)
        is_constant = (moments.squares == 0) & is_number
        is_coarse = (np.abs(moments.mean) > COARSE * moments.deviation()) & is_number & ~is_constant
        coarse, constant = (
            ", ".join(names[number] for number in np.flatnonzero(which)[:MOST_NAMED])
            for which in (is_coarse, is_constant)
        )
        notes = [
            f"{coarse}: vary little about a large mean, and lose digits as numbers of 32 bits; subtract a "
            f"constant first"
        ] * bool(coarse)
        return notes + [f"{constant}: constant in the training rows"] * bool(constant)


def fill_missing(path: Path, moments: Moments, names: tuple[str, ...], root: Path) -> None:
    """Replace NaN in the features by the mean of its column; a second time it changes nothing."""
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
