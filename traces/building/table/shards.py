"""The files of a table: one, or a folder of shards, read in batches of rows.

Untrusted: besides a batch, nothing is read into memory, and every value that does not fit is named with its
file, row and column.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from emulator.errors import DataFileError, UnknownNameError
from emulator.storage.bounded import is_file
from emulator.storage.parquet_columns import MOST_ROWS, damage_in_one_line
from emulator.storage.tables import MOST_CELLS, MOST_COLUMNS, MOST_REASON, SUFFIXES
from traces.building.folders import files_below
from traces.building.tally import Tally

MOST_HEADER_BYTES = 2**20
"""Most bytes of the first line of a CSV."""

MOST_SHARDS = 100_000

MOST_HELD = 2**26
"""Bytes of images after which a batch of them ends."""

TEXT = pa.dictionary(pa.int32(), pa.string())
"""How columns of texts are read: each text once in a batch."""

_BLOCK = 2**20
"""Bytes of a CSV that are read at once."""

_REMEDY = "save it as Parquet, in which numbers are no text, and leave out columns of texts"

_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_ROW = re.compile(r"Row #(\d+)")
_VALUE = re.compile(r"invalid value '(.*)'", re.DOTALL)
_COLUMN = re.compile(r"In CSV column #(\d+)")


class Batch(NamedTuple):
    """Some rows of a file: `first` is the number of the first one in its file, from 0 on."""

    path: Path
    first: int
    columns: Mapping[str, pa.Array[Any]]
    num_rows: int


@dataclass(frozen=True)
class Shards:
    """The files of one table, in the order of their names; `kinds` are the Arrow types of its columns.

    The type of a dictionary is that of its values. The types of a CSV are those of its first rows. Each pass
    over the files counts what it reads, and ends beyond `most_cells`.
    """

    files: tuple[Path, ...]
    kinds: Mapping[str, pa.DataType]
    is_csv: bool
    most_cells: int

    def tally(self) -> Tally:
        """The counts of one pass, none yet."""
        return Tally(self.most_cells, remedy=_REMEDY)

    def refuse_unknown(self, key: str, name: str) -> None:
        """Raise UnknownNameError, with the columns there are, unless `name` is one of them."""
        if name not in self.kinds:
            raise UnknownNameError("column", name, self.kinds, f"{self.files[0]}: {key}")

    def digest(self) -> str:
        """A digest of the names, sizes and times of change of all files."""
        state = hashlib.sha256()
        for path in self.files:
            status = path.stat()
            state.update(repr((path.name, status.st_size, status.st_mtime_ns)).encode())
        return state.hexdigest()

    def batches(
        self,
        types: Mapping[str, pa.DataType],
        most_rows: int,
        skip: int = 0,
        malformed: Callable[[], bool] | None = None,
        tally: Tally | None = None,
    ) -> Iterator[Batch]:
        """Read columns in batches of rows.

        Args:
            types: the columns, with the types that they are read as from a CSV. `TEXT` holds for both.
            most_rows: most rows of a batch of a Parquet file.
            skip: rows that are left out at first; the sum of the rows of some first batches.
            malformed: called for every line of a CSV with too few or too many cells, which is left out; False
                ends the reading. None: the first such line is an error.
            tally: counts rows and text; None: one of this pass alone.

        Yields:
            The batches; their borders depend on the files and `most_rows` only.

        Raises:
            DataFileError: a file is damaged, a value does not have the type of its column, or there are too
                many cells or too much text.
        """
        total = 0
        tally = tally or self.tally()
        for path in self.files:
            if self.is_csv:
                parts = _csv_batches(path, types, malformed)
            else:
                parts = _parquet_batches(path, types, most_rows, max(0, skip - total), tally)
            first = -1
            for first, columns in parts:
                [num_rows] = {len(column) for column in columns.values()}
                tally.add_rows(path, num_rows, len(self.kinds))
                if total + num_rows > MOST_ROWS:
                    raise DataFileError(path, f"the table has more than {MOST_ROWS} rows")
                if total >= skip:
                    yield Batch(path, first, columns, num_rows)
                total += num_rows
            if first < 0 and self.is_csv:
                raise DataFileError(path, "has no rows")


def find_shards(root: Path, *, most_cells: int = MOST_CELLS, skips_bad: bool = False) -> Shards:
    """The files of the table at `root`: a file, or all tables in a folder.

    Each pass over them reads at most `most_cells`. With `skips_bad`, lines of a CSV with too few or too many
    cells are no error here.

    Raises DataFileError if there are none, if they are of several kinds, or if their columns differ.
    """
    files = _files(root)
    kinds: dict[str, pa.DataType] = {}
    is_csv = not files[0].name.endswith(".parquet")
    tally = Tally(most_cells, remedy=_REMEDY)
    for path in files:
        if path.stat().st_size == 0:
            raise DataFileError(path, "is empty")
        if is_csv:
            _count_text(path, tally)
        own = _csv_kinds(path, skips_bad) if is_csv else _parquet_kinds(path)
        if path == files[0]:
            kinds = own
            continue
        if set(own) != set(kinds):
            here, there = (
                ", ".join(sorted(set(a) - set(b))) or "none" for a, b in ((own, kinds), (kinds, own))
            )
            raise DataFileError(
                path, f"has other columns than {files[0].name}: it alone has {here}, it lacks {there}"
            )
        for name in kinds if not is_csv else ():
            if own[name] != kinds[name]:
                raise DataFileError(
                    path, f"column {name!r} is {own[name]}, but {kinds[name]} in {files[0].name}"
                )
    return Shards(files, kinds, is_csv, most_cells)


def _files(root: Path) -> tuple[Path, ...]:
    if not root.is_dir():
        if not is_file(root):
            raise DataFileError(root, "no such file")
        if not root.name.endswith(SUFFIXES):
            raise DataFileError(root, f"a table is one of {', '.join(SUFFIXES)}, or a folder of them")
        return (root,)
    files = [
        path
        for path in files_below(root)
        if path.name.endswith(SUFFIXES) and not path.name.startswith((".", "_")) and is_file(path)
    ]
    if not files:
        raise DataFileError(root, f"has no table, no file that ends with {', '.join(SUFFIXES)}")
    if len(files) > MOST_SHARDS:
        raise DataFileError(root, f"has {len(files)} tables; at most {MOST_SHARDS} are read")
    other = next(
        (path for path in files if (path.suffix == ".parquet") != (files[0].suffix == ".parquet")), None
    )
    if other is not None:
        raise DataFileError(
            root, f"has both CSV and Parquet, {files[0].name} and {other.name}; give one kind"
        )
    return tuple(files)


def _checked(path: Path, names: Sequence[str]) -> None:
    if len(names) > MOST_COLUMNS:
        raise DataFileError(path, f"has {len(names)} columns; a table has at most {MOST_COLUMNS}")
    counts = Counter(names)
    twice = next((name for name in names if counts[name] > 1), None)
    if twice is not None:
        raise DataFileError(path, f"a column name occurs twice: {twice!r}")
    blank = next((number for number, name in enumerate(names, 1) if not name.strip()), None)
    if blank is not None:
        raise DataFileError(path, f"column {blank} has no name")


def _count_text(path: Path, tally: Tally) -> None:
    """Count the text of a CSV, for which a compressed one is decompressed.

    NOTE: not while it is parsed: a reader of Python's in the threads of pyarrow's CSV reader may be at work
    when the process ends, which then never ends.
    """
    if path.suffix != ".gz":
        tally.add_text(path, path.stat().st_size)
        return
    with damage_in_one_line(path), gzip.open(path) as file:
        while content := file.read(_BLOCK):
            tally.add_text(path, len(content))


def _csv_names(path: Path) -> list[str]:
    """The columns of a CSV, checked."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        line = file.readline(MOST_HEADER_BYTES)
    if len(line) >= MOST_HEADER_BYTES:
        raise DataFileError(path, f"its first line has more than {MOST_HEADER_BYTES:,} bytes")
    header = line.decode("utf-8-sig").strip("\r\n")
    try:
        names = next(csv.reader([header]), [])
    except csv.Error as error:  # such as a carriage return alone
        raise DataFileError(path, f"cannot be read as CSV ({error})") from error
    if len(names) <= 1:
        for separator, what in _OTHER_SEPARATORS.items():
            if separator in header:
                raise DataFileError(
                    path, f"is separated by {what}; a table is separated by commas: save it that way"
                )
    _checked(path, names)
    return names


def _csv_kinds(path: Path, skips_bad: bool) -> dict[str, pa.DataType]:
    """The columns of a CSV, with the types of its first rows."""
    with damage_in_one_line(path):
        _csv_names(path)
        malformed = (lambda: True) if skips_bad else None
        try:
            with _csv_reader(path, {}, malformed, use_threads=True) as reader:
                schema = reader.schema
        except pa.ArrowInvalid as error:
            raise _csv_error(path, {}, malformed, error) from error
    return {field.name: field.type for field in schema}


def _parquet_kinds(path: Path) -> dict[str, pa.DataType]:
    with damage_in_one_line(path):
        # NOTE: the metadata of a column in a row group is not read: if it is damaged, Arrow ends the process.
        file = pq.ParquetFile(path)
        schema, num_rows = file.schema_arrow, file.metadata.num_rows
    _checked(path, schema.names)
    if num_rows == 0:
        raise DataFileError(path, "has no rows")
    return {
        field.name: cast(Any, field.type).value_type
        if isinstance(field.type, pa.DictionaryType)
        else field.type
        for field in schema
    }


def _csv_batches(
    path: Path, types: Mapping[str, pa.DataType], malformed: Callable[[], bool] | None
) -> Iterator[tuple[int, Mapping[str, pa.Array[Any]]]]:
    with damage_in_one_line(path):
        first = 0
        try:
            with _csv_reader(path, types, malformed, use_threads=True) as reader:
                for batch in reader:
                    if len(batch):
                        yield first, {name: batch.column(name) for name in types}
                        first += len(batch)
        except pa.ArrowInvalid as error:
            raise _csv_error(path, types, malformed, error) from error


def _csv_reader(
    path: Path, types: Mapping[str, pa.DataType], malformed: Callable[[], bool] | None, *, use_threads: bool
) -> pyarrow.csv.CSVStreamingReader:
    def left_out(_: object) -> Literal["skip", "error"]:
        assert malformed is not None
        return "skip" if malformed() else "error"

    return pyarrow.csv.open_csv(
        path,
        pyarrow.csv.ReadOptions(block_size=_BLOCK, use_threads=use_threads),
        pyarrow.csv.ParseOptions(invalid_row_handler=None if malformed is None else left_out),
        pyarrow.csv.ConvertOptions(include_columns=list(types), column_types=dict(types)),
    )


def _csv_error(
    path: Path, types: Mapping[str, pa.DataType], malformed: Callable[[], bool] | None, error: pa.ArrowInvalid
) -> DataFileError:
    """The error of a CSV, with its row: it is read once more, by one thread, which counts the rows."""
    try:
        quiet = None if malformed is None else lambda: True
        with _csv_reader(path, types, quiet, use_threads=False) as reader:
            for _ in reader:
                pass
    except pa.ArrowInvalid as again:
        error = again
    text = " ".join(str(error).split())
    row, column, value = (pattern.search(text) for pattern in (_ROW, _COLUMN, _VALUE))
    number = None if row is None else int(row[1]) - 1
    if column is not None and value is not None:
        name = _csv_names(path)[int(column[1])]
        what = "a whole number" if pa.types.is_integer(types[name]) else "a number"
        return DataFileError(path, f"{name} = {value[1][:MOST_REASON]!r}: must be {what}", number)
    return DataFileError(path, f"cannot be read as CSV ({text[:MOST_REASON]})", number)


def _parquet_batches(
    path: Path, types: Mapping[str, pa.DataType], most_rows: int, skip: int, tally: Tally
) -> Iterator[tuple[int, Mapping[str, pa.Array[Any]]]]:
    texts = [name for name, kind in types.items() if kind == TEXT]
    with damage_in_one_line(path):
        # NOTE: unmapped, all columns of a row group would be in memory at once, whatever `buffer_size` is.
        file = pq.ParquetFile(path, memory_map=True, read_dictionary=texts)
        first = 0
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if first + size <= skip:
                yield from _nothing(first, size, types)
                first += size
                continue
            for columns in _group_batches(file, group, types, most_rows):
                tally.add_text(path, sum(map(_text_bytes, columns.values())))
                yield first, columns
                first += len(next(iter(columns.values())))
        if first != file.metadata.num_rows:
            raise DataFileError(path, f"damaged: it states {file.metadata.num_rows} rows and has {first}")


def _group_batches(
    file: pq.ParquetFile, group: int, types: Mapping[str, pa.DataType], most_rows: int
) -> Iterator[dict[str, pa.Array[Any]]]:
    """The columns of a row group, in batches.

    Images are read one by one, as a few bytes may unpack to hundreds of megabytes each, and make batches of
    at most `MOST_HELD` bytes and one image.
    """
    paths = [f"{name}.bytes" if pa.types.is_struct(kind) else name for name, kind in types.items()]
    images = any(pa.types.is_struct(kind) or _is_bytes(kind) for kind in types.values())
    held: list[dict[str, pa.Array[Any]]] = []
    num_bytes = 0
    for batch in file.iter_batches(1 if images else most_rows, [group], columns=paths):
        batch.validate(full=True)
        columns = {name: _as_text(batch.column(name), kind) for name, kind in types.items()}
        if not images:
            yield columns
            continue
        held.append(columns)
        num_bytes += batch.nbytes
        if len(held) == most_rows or num_bytes >= MOST_HELD:
            yield {name: pa.concat_arrays([piece[name] for piece in held]) for name in types}
            held, num_bytes = [], 0
    if held:
        yield {name: pa.concat_arrays([piece[name] for piece in held]) for name in types}


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _nothing(
    first: int, size: int, types: Mapping[str, pa.DataType]
) -> Iterator[tuple[int, Mapping[str, pa.Array[Any]]]]:
    """Rows that are skipped, for their number: one column without values."""
    if size:
        yield first, {next(iter(types)): pa.nulls(size)}


def _as_text(column: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    if kind != TEXT:
        return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    if not isinstance(column, pa.DictionaryArray):
        return column.dictionary_encode()
    if len(column.dictionary) <= len(column):
        return column
    # The dictionary of a row group comes with each of its batches: only what these rows use of it is kept.
    encoded = column.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, column.dictionary.take(encoded.dictionary))


def _text_bytes(column: pa.Array[Any]) -> int:
    """The bytes of the distinct texts of a column; 0 of others."""
    if not isinstance(column, pa.DictionaryArray) or not len(column.dictionary):
        return 0
    return int(pc.sum(pc.binary_length(cast(Any, column.dictionary))).as_py() or 0)


def missing(column: pa.Array[Any]) -> np.ndarray:
    """(rows,) whether each value of a column is null."""
    return np.asarray(pc.is_null(column))
