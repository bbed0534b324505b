"""Columns of a `.csv`, `.csv.gz` or `.parquet` file, validated when they are read.

Errors name file, row and column. The size of a table is checked before it is allocated: from the lines of a
CSV, which may be compressed a thousandfold, and from the metadata and the dictionaries of a Parquet file,
where a text stored once may be used a million times.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from emulator.arrays import Bools, Floats, Ints
from emulator.assigning import DeviceIds
from emulator.errors import DataFileError
from emulator.storage.bounded import is_file
from emulator.storage.reading.bounds import MOST_BYTES, MOST_CELLS, MOST_COLUMNS, MOST_REASON

SUFFIXES = (".csv", ".csv.gz", ".parquet")

MOST_FIXED_BYTES = 16
"""Longest value of fixed length that is not a native number: decimals and UUIDs."""

BLANK = r"^\s*$"
"""Pattern of a text of nothing but white space."""

_ROWS = 2**18
"""Rows of a Parquet column read at once."""

_PIECE = 2**20
"""Bytes of a CSV scanned at once. Columns are counted in the first line, as far as the first piece has it."""


@dataclass(frozen=True)
class TableFile:
    """A table read from `path`, with at least one row."""

    path: Path
    table: pa.Table

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def columns(self) -> list[str]:
        return self.table.column_names

    def require(self, *names: str) -> None:
        """Raise DataFileError unless the table has all columns of `names`."""
        for name in names:
            if name not in self.columns:
                raise DataFileError(
                    self.path, f"column {name!r} is missing; it has {', '.join(self.columns)}"
                )

    def refuse_others(self, known: Collection[str]) -> None:
        """Raise DataFileError for a column not in `known`: a misspelt one must not be ignored."""
        for name in self.columns:
            if name not in known:
                raise DataFileError(
                    self.path, f"unknown column {name!r}; known are {', '.join(sorted(known))}"
                )

    def numbers(
        self, name: str, *, at_least: float | None = None, above: float | None = None, most: float = np.inf
    ) -> Floats:
        """(rows,) the column as float64.

        DataFileError unless all are finite, >= `at_least`, > `above` and <= `most`.
        """
        self.require(name)
        column = self.table.column(name)
        try:
            numbers = pc.cast(column, pa.float64())
            # NOTE: the ordinary conversion imports pandas, where it is installed.
            convert = np.asarray if numbers.null_count else np.from_dlpack
            values: Floats = np.concatenate([np.zeros(0), *map(convert, numbers.chunks)])
        except pa.ArrowInvalid as error:
            row = _first_non_number(column)
            shown = repr(self._python(name, row - 1, 1)[0])[:MOST_REASON]
            raise DataFileError(self.path, f"column {name!r} must hold numbers, not {shown}", row) from error
        except pa.ArrowNotImplementedError as error:
            raise DataFileError(self.path, f"column {name!r} must hold numbers ({error})") from error
        self._refuse(name, ~np.isfinite(values), "must be a finite number, not missing or NaN", values)
        if at_least is not None:
            self._refuse(name, values < at_least, f"must be at least {at_least:g}", values)
        if above is not None:
            self._refuse(name, values <= above, f"must be greater than {above:g}", values)
        self._refuse(name, values > most, f"must be at most {most:g}", values)
        return values

    def ids(self, name: str) -> Ints:
        """(rows,) the rank of each value among the distinct values, independent of the order of the rows."""
        return np.unique(np.array(self.values(name)), return_inverse=True)[1].astype(np.int64)

    def unique_ids(self, name: str) -> Ints:
        """(rows,) the same as `ids`; DataFileError if a value occurs in two rows."""
        ranks = self.ids(name)
        _, first, counts = np.unique(ranks, return_index=True, return_counts=True)
        if (counts > 1).any():
            rank = int(np.flatnonzero(counts > 1)[0])
            rows = np.flatnonzero(ranks == rank) + 1
            [value] = self._python(name, int(first[rank]), 1)
            raise DataFileError(self.path, f"{name} {value!r} is also in row {rows[0]}", row=int(rows[1]))
        return ranks

    def devices(self, name: str) -> DeviceIds:
        """The devices whose ids the column has, by rank as in `ids`, each with its first row.

        Ids are texts as they are written: in a CSV, `007` is not 7, though both have one rank.
        """
        _, first = np.unique(self.ids(name), return_index=True)
        column = self.table.column(name)
        if self.path.suffix != ".parquet" and not pa.types.is_string(column.type):
            as_text = pyarrow.csv.ConvertOptions(include_columns=[name], column_types={name: pa.string()})
            column = pyarrow.csv.read_csv(self.path, convert_options=as_text).column(name)
        return DeviceIds(self.path, name, list(map(str, column.take(first.tolist()).to_pylist())), first)

    def values(self, name: str) -> list[Any]:
        """(rows,) the column as Python values, to be ids; DataFileError if one is missing or nested."""
        self.require(name)
        self._refuse_missing(name)
        column = self.table.column(name)
        if pa.types.is_nested(column.type):
            raise DataFileError(self.path, f"column {name!r} is {column.type}; an id is a text or a number")
        return self._python(name)

    def texts(self, name: str, *, may_be_empty: bool = False) -> list[str]:
        """(rows,) the column as text; DataFileError if one is missing or blank.

        With `may_be_empty` these are empty texts instead.
        """
        self.require(name)
        if not may_be_empty:
            self._refuse_missing(name)
            return [str(value) for value in self._python(name)]
        missing = self._missing(name).tolist()
        return ["" if none else str(value) for none, value in zip(missing, self._python(name), strict=True)]

    def _python(self, name: str, first: int = 0, rows: int | None = None) -> list[Any]:
        """`rows` values of the column from row `first`, as Python values; all by default.

        DataFileError for values that Python cannot represent, such as a date after the year 9999.
        """
        column = self.table.column(name)
        try:
            values: list[Any] = column.slice(first, rows).to_pylist()
        except (OverflowError, ValueError, pa.ArrowException) as error:
            raise DataFileError(
                self.path, f"column {name!r} is {column.type}, and has values that cannot be read ({error})"
            ) from error
        return values

    def _refuse_missing(self, name: str) -> None:
        """Raise DataFileError for null, NaN and blank text."""
        missing = self._missing(name)
        if missing.any():
            raise DataFileError(self.path, f"{name} is missing", row=int(np.flatnonzero(missing)[0]) + 1)

    def _missing(self, name: str) -> Bools:
        """(rows,) whether the value is null, NaN or blank text: an empty cell of a CSV may be read as any.

        Texts have several types in a Parquet file, as their writer chose.
        """
        column = self.table.column(name)
        missing: Bools = np.asarray(column.is_null(nan_is_null=True))
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        plain: Any = pc.cast(column, kind)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            blank = pc.equal(pc.utf8_trim_whitespace(plain), cast(Any, pa.scalar("", kind)))
            missing = missing | np.asarray(blank.fill_null(False))
        elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            missing = missing | np.asarray(pc.match_substring_regex(plain, BLANK).fill_null(False))
        return missing

    def _refuse(self, name: str, bad: np.ndarray, rule: str, values: Floats) -> None:
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise DataFileError(self.path, f"{name} = {values[row]:g} {rule}", row=row + 1)


def read_table(path: Path) -> TableFile:
    """Read the table in `path`.

    DataFileError if the file is missing, unreadable, too large, without rows, neither CSV nor Parquet, or has
    two columns of the same name.
    """
    if not path.name.endswith(SUFFIXES):
        raise DataFileError(path, f"a table is one of {', '.join(SUFFIXES)}")
    if not is_file(path):
        raise DataFileError(path, "no such file")
    try:
        size = path.stat().st_size
        if size == 0:
            raise DataFileError(path, "is empty")
        if size > MOST_BYTES:
            raise DataFileError(path, f"has {size:,} bytes; a table has at most {MOST_BYTES:,}")
        table = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
        names = table.column_names
    except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError) as error:
        reason = " ".join(str(error).split())[:MOST_REASON]
        kind = next(suffix[1:] for suffix in SUFFIXES if path.name.endswith(suffix))
        raise DataFileError(path, f"cannot be read as {kind} ({reason})") from error
    if len(set(names)) < len(names):
        raise DataFileError(path, f"a column name occurs twice: {', '.join(names)}")
    if table.num_rows == 0:
        raise DataFileError(path, "has no rows")
    return TableFile(path, table)


def _read_csv(path: Path) -> pa.Table:
    """Read a CSV, gzipped if its name ends with .gz; DataFileError, before parsing, if it is too large."""
    num_bytes = lines = 0
    columns = 0
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        while piece := file.read(_PIECE):
            if num_bytes == 0:
                columns = 1 + _first_line(piece).count(b",")
            num_bytes += len(piece)
            lines += piece.count(b"\n") + piece.count(b"\r") - piece.count(b"\r\n")
            if num_bytes > MOST_BYTES:
                raise DataFileError(path, f"has more than {MOST_BYTES:,} bytes of text; a table has fewer")
            _refuse_too_large(path, lines, columns)
    return pyarrow.csv.read_csv(path)  # which recognises a gzipped file by its name


def _first_line(piece: bytes) -> bytes:
    return piece.replace(b"\r", b"\n").partition(b"\n")[0]


def _read_parquet(path: Path) -> pa.Table:
    """Read a Parquet file; DataFileError if it is too large, damaged, or has nested columns.

    Only this file is read: no dataset discovery, no columns from the names of folders. It is read column by
    column and piece by piece, since its pages may hold more rows than its metadata states.
    """
    # NOTE: the metadata of a column in a row group is not read: if it is damaged, Arrow ends the process.
    file = pq.ParquetFile(path)
    metadata, schema = file.metadata, file.schema_arrow
    rows, names = metadata.num_rows, schema.names
    _refuse_too_large(path, rows, metadata.num_columns)
    texts = _text_columns(path, metadata)
    if len(set(names)) < len(names):
        raise DataFileError(path, f"a column name occurs twice: {', '.join(names)}")
    columns: dict[str, pa.ChunkedArray[Any]] = {}
    num_bytes = 0
    # Texts stay dictionaries until their size without dictionaries is known.
    reader = pq.ParquetFile(path, metadata=metadata, read_dictionary=texts)
    for field in schema:
        columns[field.name], num_bytes = _read_column(path, reader, field, rows, num_bytes)
    table = pa.Table.from_arrays(list(columns.values()), names=list(columns))
    return table.replace_schema_metadata(cast(Any, schema.metadata))


def _text_columns(path: Path, metadata: pq.FileMetaData) -> list[str]:
    """The columns that hold texts; DataFileError if a column is nested or its values are too long."""
    texts = []
    for index in range(metadata.num_columns):
        column = metadata.schema.column(index)
        if column.max_repetition_level > 0 or column.path != column.name:
            raise DataFileError(path, f"column {column.path!r} is nested; a table has one value in each cell")
        if column.physical_type == "FIXED_LEN_BYTE_ARRAY" and (column.length or 0) > MOST_FIXED_BYTES:
            raise DataFileError(path, f"column {column.path!r} has {column.length} bytes in each cell")
        if column.physical_type == "BYTE_ARRAY":
            texts.append(column.path)
    return texts


def _read_column(
    path: Path, reader: pq.ParquetFile, field: pa.Field[Any], rows: int, num_bytes: int
) -> tuple[pa.ChunkedArray[Any], int]:
    """Read the column `field`; returns it, and the bytes of all columns read so far.

    `num_bytes` are those of the columns before it. DataFileError if the sum is more than `MOST_BYTES`, or if
    the column does not have `rows` rows.
    """
    kind = field.type.value_type if isinstance(field.type, pa.DictionaryType) else field.type
    pieces = []
    for batch in reader.iter_batches(batch_size=_ROWS, columns=[field.name], use_threads=False):
        [piece] = batch.columns
        piece.validate(full=True)  # finds, for example, texts that are not UTF-8 before they are used
        num_bytes += _plain_bytes(piece)
        if num_bytes > MOST_BYTES:
            raise DataFileError(path, f"its columns come to more than {MOST_BYTES:,} bytes")
        pieces.append(piece.cast(kind))
        if sum(map(len, pieces)) > rows:
            break
    column = pa.chunked_array(pieces, kind)
    if len(column) != rows:
        raise DataFileError(
            path, f"damaged: it has {rows} rows, and column {field.name!r} a different number"
        )
    return column, num_bytes


def _plain_bytes(piece: pa.Array[Any]) -> int:
    """Size of an array in bytes; in a dictionary array each text counts as often as it is used."""
    if not isinstance(piece, pa.DictionaryArray):
        return piece.nbytes
    lengths = pc.binary_length(cast(pa.StringArray, piece.dictionary))
    return piece.indices.nbytes + (pc.sum(lengths.take(piece.indices)).as_py() or 0)


def _refuse_too_large(path: Path, rows: int, columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise DataFileError(path, f"has {columns} columns; a table has at most {MOST_COLUMNS}")
    if rows * columns > MOST_CELLS:
        raise DataFileError(
            path, f"has {rows} lines or more x {columns} columns; a table has at most {MOST_CELLS:,} cells"
        )


def _first_non_number(column: pa.ChunkedArray[Any]) -> int:
    """The first row, counted from 1, whose value cannot be cast to a number; there must be one."""
    low, high = 0, len(column)  # the row is in [low, high), and all rows before low are numbers
    while high - low > 1:
        middle = (low + high) // 2
        try:
            pc.cast(column.slice(low, middle - low), pa.float64())
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low + 1
