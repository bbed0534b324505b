"""Small CSVs of data sets, whose columns are read as texts: a class '007' is no number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from emulator.arrays import Floats, Ints
from emulator.errors import DataFileError
from emulator.storage.bounded import is_file
from emulator.storage.reading.bounds import MOST_BYTES, MOST_REASON
from emulator.storage.reading.tally import Tally

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


class TextColumns:
    """The columns `wanted` of a CSV with a header, read as texts, without blanks at their ends.

    Others are not read. An empty cell is an empty text. Rows are counted from 1, without the header.
    """

    def __init__(
        self, path: Path, wanted: Iterable[str], tally: Tally, *, optional: Iterable[str] = ()
    ) -> None:
        """Read the columns `wanted`, and those of `optional` that are there; `tally` counts what is read.

        Raises:
            DataFileError: the file is missing, empty, too large or no CSV, its columns are not separated by
                commas, or one of `wanted` is missing.
        """
        self.path = path
        names = header(path)
        for name in wanted:
            if name not in names:
                raise DataFileError(path, f"column {name!r} is missing; it has {', '.join(names)}")
        used = [*wanted, *(name for name in optional if name in names)]
        options = pyarrow.csv.ConvertOptions(
            include_columns=used,
            column_types=dict.fromkeys(used, pa.dictionary(pa.int32(), pa.string())),
            strings_can_be_null=False,
        )
        self._columns: dict[str, list[str]] = {name: [] for name in used}
        self.num_rows = 0
        tally.add_text(path, path.stat().st_size)
        try:
            with pyarrow.csv.open_csv(path, convert_options=options) as reader:
                for batch in reader:
                    tally.add_rows(path, len(batch), len(names))
                    self.num_rows += len(batch)
                    for name in used:
                        self._columns[name] += _stripped(batch.column(name))
        except (pa.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())[:MOST_REASON]
            raise DataFileError(path, f"cannot be read as CSV ({reason})") from error
        if self.num_rows == 0:
            raise DataFileError(path, "has no rows")

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def texts(self, name: str, *, may_be_empty: bool = False) -> list[str]:
        """(rows,) the texts of a column; DataFileError if one is empty, unless `may_be_empty`."""
        texts = self._columns[name]
        if not may_be_empty and "" in texts:
            raise DataFileError(self.path, f"{name} is missing", row=texts.index("") + 1)
        return texts

    def integers(self, name: str) -> Ints:
        """(rows,) a column of whole numbers; DataFileError if one is none."""
        numbers: Ints = self._cast(name, pa.int64(), "a whole number", int)
        return numbers

    def numbers(self, name: str) -> Floats:
        """(rows,) a column of finite numbers; DataFileError if one is none."""
        numbers: Floats = self._cast(name, pa.float64(), "a number", float)
        if not np.isfinite(numbers).all():
            row = int((~np.isfinite(numbers)).argmax())
            raise DataFileError(self.path, f"{name} = {numbers[row]}: must be a finite number", row=row + 1)
        return numbers

    def _cast(
        self, name: str, kind: pa.DataType, what: str, python: Callable[[str], int | float]
    ) -> np.ndarray:
        texts = self.texts(name)
        try:
            return np.asarray(pc.cast(pa.array(texts, pa.string()), kind))
        except pa.ArrowInvalid as error:
            for row, text in enumerate(texts, start=1):
                try:
                    python(text)
                except ValueError:
                    raise DataFileError(self.path, f"{name} = {text!r}: must be {what}", row) from error
            raise DataFileError(self.path, f"column {name!r} must hold {what} ({error})") from error


def _stripped(column: Any) -> list[str]:
    """(rows,) the texts of a column without blanks at their ends, equal ones as one object."""
    texts = pc.utf8_trim_whitespace(column.dictionary).to_pylist()
    return [texts[code] for code in column.indices.to_pylist()]


def header(path: Path) -> list[str]:
    """The names of the columns; DataFileError if the file is missing, or they are not separated by commas."""
    if not is_file(path):
        raise DataFileError(path, "no such file")
    if path.stat().st_size > MOST_BYTES:
        raise DataFileError(path, f"has more than {MOST_BYTES:,} bytes; a table has fewer")
    try:
        with path.open(encoding="utf-8-sig") as file:
            line = file.readline(2**16).rstrip("\r\n")
    except ValueError as error:
        raise DataFileError(path, "is not text in UTF-8") from error
    if not line.strip():
        raise DataFileError(path, "is empty; its first line must name the columns")
    if "," not in line:
        for separator, what in _SEPARATORS.items():
            if separator in line:
                raise DataFileError(path, f"its columns are separated by {what}; they must be by commas")
    return [name.strip().strip('"') for name in line.split(",")]
