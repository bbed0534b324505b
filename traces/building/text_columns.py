"""Small CSVs of data sets, whose columns are read as texts: a class '007' is no number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from emulator.errors import DataFileError
from emulator.storage.bounded import is_file
from emulator.storage.parquet_columns import Columns, Piece, damage_in_one_line, first_unlike
from emulator.storage.reading.columns import TEXT
from emulator.storage.reading.tally import Tally

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


class TextColumns(Columns):
    """The columns `wanted` of a CSV with a header, read as texts, without blanks at their ends.

    Others are not read. An empty cell is an empty text. Rows are counted from 1, without the header.
    """

    def __init__(
        self, path: Path, wanted: Sequence[str], tally: Tally, *, optional: Sequence[str] = ()
    ) -> None:
        """Read the columns `wanted`, and those of `optional` that are there; `tally` counts what is read.

        Raises:
            DataFileError: the file is missing, empty, too large or no CSV, its columns are not separated by
                commas, or one of `wanted` is missing.
        """
        self.path, names = path, header(path)
        for name in wanted:
            if name not in names:
                raise DataFileError(path, f"column {name!r} is missing; it has {', '.join(names)}")
        self.names = [*wanted, *(name for name in optional if name in names)]
        options = pyarrow.csv.ConvertOptions(
            include_columns=self.names, column_types=dict.fromkeys(self.names, TEXT)
        )
        self._batches: list[pa.RecordBatch] = []
        self.num_rows = 0
        tally.add_text(path, path.stat().st_size)
        with damage_in_one_line(path), pyarrow.csv.open_csv(path, convert_options=options) as reader:
            for batch in reader:
                tally.add_rows(path, len(batch), len(names))
                self.num_rows += len(batch)
                self._batches.append(batch)
        if self.num_rows == 0:
            raise DataFileError(path, "has no rows")

    def texts(self, name: str, *, may_be_empty: bool = False) -> list[str]:
        """(rows,) the texts of a column; DataFileError if one is empty, unless `may_be_empty`."""
        texts = [text for batch in self._batches for text in _stripped(batch.column(name))]
        if not may_be_empty and "" in texts:
            raise DataFileError(self.path, f"{name} is missing", row=texts.index("") + 1)
        return texts

    def _numbers(self, name: str, *, whole: bool) -> Iterator[Piece]:
        texts, kind = pa.array(self.texts(name), pa.string()), pa.int64() if whole else pa.float64()
        try:
            return iter([(0, pc.cast(texts, kind))])
        except pa.ArrowInvalid as error:
            row = first_unlike(texts, kind)
            what = "a whole number" if whole else "a number"
            problem = f"{name} = {texts[row].as_py()!r}: must be {what}"
            raise DataFileError(self.path, problem, row + 1) from error


def _stripped(column: Any) -> list[str]:
    """(rows,) the texts of a column without blanks at their ends, equal ones as one object."""
    texts = pc.utf8_trim_whitespace(column.dictionary).to_pylist()
    return [texts[code] for code in column.indices.to_pylist()]


def header(path: Path) -> list[str]:
    """The names of the columns; DataFileError if the file is missing, or they are not separated by commas."""
    if not is_file(path):
        raise DataFileError(path, "no such file")
    try:
        with path.open(encoding="utf-8-sig") as file:
            line = file.readline(2**16).rstrip("\r\n")
    except ValueError as error:
        raise DataFileError(path, "is not text in UTF-8") from error
    if not line.strip():
        raise DataFileError(path, "is empty; its first line must name the columns")
    other = next((what for mark, what in _SEPARATORS.items() if mark in line), None)
    if "," not in line and other is not None:
        raise DataFileError(path, f"its columns are separated by {other}; they must be by commas")
    return [name.strip().strip('"') for name in line.split(",")]
