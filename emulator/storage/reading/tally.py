"""Counting what is read of a data set that is built, while it is read: cells and bytes of text.

Data sets are untrusted: a few megabytes unpack to billions of rows. What a build holds in memory is in
proportion to the cells counted here, at most `BYTES_OF_A_CELL` bytes each.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from emulator.errors import DataFileError
from emulator.storage.reading.bounds import MOST_BYTES

MOST_TEXT = MOST_BYTES
"""Most bytes of text of a data set, when decompressed."""

CELLS_OF_A_ROW = 10
"""A row counts as at least that many cells: its client, label and time are sorted in memory."""

CELLS_OF_A_SAMPLE = 32
"""An image or object counts as that many cells: it is in memory with its name and its box."""

CELLS_OF_A_NAME = 32
"""Cells that a distinct name counts as, besides one for each of its letters: names stay in memory."""

BYTES_OF_A_CELL = 6
"""Bytes of memory that a build takes for each cell at most: 1.5 GiB for 2^28 cells."""


class Tally:
    """What one pass over a data set has read: rows, distinct names, and bytes of text.

    Attributes:
        most_cells: The most cells of rows and names together, as `--most-cells` says.
        least: The fewest cells that a row counts as.
        remedy: What to do about too much text.
    """

    def __init__(
        self, most_cells: int, least: int = CELLS_OF_A_ROW, remedy: str = "leave out columns or rows of it"
    ) -> None:
        self.most_cells = most_cells
        self.least = least
        self.remedy = remedy
        self.rows = self.names = self.cells = self.text = 0

    def add_rows(self, path: Path, num_rows: int, num_columns: int) -> None:
        """Count rows; DataFileError if there are too many cells."""
        self.rows += num_rows
        self.cells += num_rows * max(num_columns, self.least)
        if self.cells > self.most_cells:
            least = f" (a row counts as {self.least} cells or more)" if num_columns < self.least else ""
            raise self._too_many(path, f"has {self.rows:,} rows or more x {num_columns} columns{least}")

    def add_names(self, path: Path, names: Iterable[str]) -> None:
        """Count names that stay in memory; DataFileError if there are too many cells."""
        for name in names:
            self.names += 1
            self.cells += CELLS_OF_A_NAME + len(name)
        if self.cells > self.most_cells:
            raise self._too_many(
                path,
                f"has {self.rows:,} rows or more with {self.names:,} different names (a name counts as "
                f"{CELLS_OF_A_NAME} cells, and one for each letter)",
            )

    def add_text(self, path: Path, num_bytes: int) -> None:
        """Count bytes of text; DataFileError if there are too many."""
        self.text += num_bytes
        if self.text > MOST_TEXT:
            raise DataFileError(path, f"has more than {MOST_TEXT:,} bytes of text: {self.remedy}")

    def _too_many(self, path: Path, problem: str) -> DataFileError:
        return DataFileError(
            path,
            f"{problem}; at most {self.most_cells:,} cells are read: raise --most-cells if "
            f"{BYTES_OF_A_CELL} bytes for each fit into memory",
        )
