"""Columns of a table of any format, read whole and validated when they are used.

Errors name file, row and column. The size of a table is checked before it is allocated: from the lines of a
CSV, which may be compressed a thousandfold, and from the metadata and the dictionaries of a Parquet file,
where a text stored once may be used a million times.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools, Floats, Ints
from emulator.assigning import DeviceIds
from emulator.errors import DataFileError, nearest, shorten
from emulator.storage.bounded import is_file
from emulator.storage.parquet_columns import damage_in_one_line, first_unlike, refuse_first
from emulator.storage.reading.bounds import MOST_BYTES, MOST_CELLS, MOST_COLUMNS, MOST_REASON
from emulator.storage.reading.columns import TEXT, is_bytes, is_text, refuse_twice
from emulator.storage.reading.csv_file import CsvFile
from emulator.storage.reading.dialects import SEPARATORS
from emulator.storage.reading.parquet_file import parquet_schema
from emulator.storage.reading.shards import Shards, find_shards
from emulator.storage.reading.tally import Tally
from emulator.storage.reading.text import form_at, pieces_of, refuse_encoding
from emulator.storage.table_paths import Given, TablePath, format_of

MOST_FIXED_BYTES = 16
"""Longest value of fixed length that is not a native number: decimals and UUIDs."""

BLANK = r"^\s*$"
"""Pattern of a text of nothing but white space."""

_ROWS = 2**18
"""Rows of a Parquet column read at once."""

_BY_VALUE: Any = [("value", "ascending"), ("text", "ascending")]


class Ids(NamedTuple):
    """The D distinct ids of a column, ascending.

    `ranks` (rows,) has the id of each row; `texts`, as they are written, and `first` (D,) have the text and
    the first row of each.
    """

    ranks: Ints
    texts: pa.ChunkedArray[Any]
    first: Ints


@dataclass(frozen=True)
class TableFile:
    """A table read from `path`, with at least one row.

    Attributes:
        path: The file.
        table: Its columns; of those with the same name the first one.
        csv: How texts are read from it again; None unless it is a CSV.
        twice: Names that several columns have, which may not be used.
        notes: What is to be told about how it was read.
        doubt: A clause on why its first line may be no header; none if it looks like one.
    """

    path: Path
    table: pa.Table
    csv: CsvFile | None = None
    twice: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    doubt: str = ""
    _ids: dict[str, Ids] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def columns(self) -> list[str]:
        return self.table.column_names

    def require(self, *names: str) -> None:
        """Raise DataFileError unless the table has all columns of `names`, each once, and can read them."""
        for name in names:
            if name not in self.columns:
                raise DataFileError(self.path, f"column {name!r} is missing; {self.has}")
            if self.csv is not None and pa.types.is_binary(self.table.column(name).type):
                refuse_encoding(self.path, self.csv.form)
        refuse_twice(self.path, names, self.twice)

    @property
    def has(self) -> str:
        """A clause on which columns there are, for an error about one that is not."""
        return f"it has {', '.join(self.columns)}{self.doubt}"

    def refuse_others(self, known: Collection[str]) -> None:
        """Raise DataFileError for a column not in `known`: a misspelt one must not be ignored."""
        for name in self.columns:
            if name not in known:
                choices = ", ".join(sorted(known))
                raise DataFileError(self.path, f"unknown column {name!r}; known are {choices}{self.doubt}")

    def unread(self, known: Collection[str]) -> tuple[str, ...]:
        """A note that names the columns not in `known`, which nothing reads; none without such columns.

        DataFileError for a column that is near a known name which the table lacks: it may be that, misspelt.
        """
        lacking = sorted({*known} - {*self.columns})
        others = [name for name in self.columns if name not in known]
        for name in others:
            if (near := nearest(name, lacking)) is not None:
                hint = f"did you mean {_alike(name, near, lacking)}? If not, give it a name less like that"
                choices = ", ".join(sorted(known))
                raise DataFileError(self.path, f"unknown column {name!r}; {hint}; known are {choices}")
        return (f"not read: {shorten(', '.join(others), MOST_REASON)}",) if others else ()

    def numbers(
        self, name: str, *, at_least: float = -np.inf, above: float = -np.inf, most: float = np.inf
    ) -> Floats:
        """(rows,) the column as float64.

        DataFileError unless all are finite, >= `at_least`, > `above` and <= `most`.
        """
        self.require(name)
        column = self.table.column(name)
        if self.csv is not None and self.csv.dialect.decimal == "," and pa.types.is_string(column.type):
            column = pc.replace_substring(column, ",", ".")  # of a column in which a text is, which is named
        try:
            numbers = pc.cast(column, pa.float64())
            # NOTE: the ordinary conversion imports pandas, where it is installed.
            convert = np.asarray if numbers.null_count else np.from_dlpack
            values: Floats = np.concatenate([np.zeros(0), *map(convert, numbers.chunks)])
        except pa.ArrowInvalid as error:
            row = first_unlike(column, pa.float64())
            shown = repr(self._python(self.table.column(name).slice(row, 1), name)[0])[:MOST_REASON]
            problem = f"column {name!r} must hold numbers, not {shown}"
            raise DataFileError(self.path, problem, row + 1) from error
        except pa.ArrowNotImplementedError as error:
            raise DataFileError(self.path, f"column {name!r} must hold numbers ({error})") from error
        for bad, rule in (
            (~np.isfinite(values), "must be a finite number, not missing or NaN"),
            (values < at_least, f"must be at least {at_least:g}"),
            (values <= above, f"must be greater than {above:g}"),
            (values > most, f"must be at most {most:g}"),
        ):
            refuse_first(self.path, bad, f"{name} = {values[bad.argmax()]:g} {rule}")
        return values

    def ids(self, name: str) -> Ints:
        """(rows,) the rank of each id among the distinct ones, independent of the order of the rows.

        Ids are texts as they are written, but for blanks around them: in a CSV, `007` is not 7. Numbers rank
        as numbers.
        """
        return self.distinct(name).ranks

    def unique_ids(self, name: str) -> Ints:
        """(rows,) the same as `ids`; DataFileError if a value occurs in two rows."""
        ids = self.distinct(name)
        again = np.delete(np.arange(len(self)), ids.first)
        if len(again):
            rank = int(ids.ranks[again].min())
            first, second = np.flatnonzero(ids.ranks == rank)[:2] + 1
            shown = self._python(self.table.column(name).slice(second - 1, 1), name)[0]
            raise DataFileError(self.path, f"{name} {shown!r} is also in row {first}", row=int(second))
        return ids.ranks

    def devices(self, name: str) -> DeviceIds:
        """The devices whose ids the column has, by rank as in `ids`, each with its first row."""
        ids = self.distinct(name)
        return DeviceIds(self.path, name, self.texts_of(name, ids), ids.first, self.notes)

    def distinct(self, name: str) -> Ids:
        """The ids in a column, each once; DataFileError if one is missing or nested."""
        if name not in self._ids:
            self._ids[name] = self._distinct(name)
            # NOTE: else Arrow keeps some sixty megabytes of what it has freed, of a million ids.
            pa.default_memory_pool().release_unused()
        return self._ids[name]

    def _distinct(self, name: str) -> Ids:
        column = self._id_column(name)
        is_written = self.csv is None or pa.types.is_string(column.type)
        written: Any = column if is_written else cast(CsvFile, self.csv).texts(name)
        keys: Any = column if is_written else pc.utf8_trim_whitespace(written)
        if pa.types.is_integer(column.type) and keys.equals(column.cast(pa.string())):
            keys = column  # the same ids, of which numbers take less memory
        encoded: Any = keys.combine_chunks().dictionary_encode()
        codes: Any = np.from_dlpack(encoded.indices)
        first = np.full(len(encoded.dictionary), len(self))
        np.minimum.at(first, codes, np.arange(len(self)))
        values: Any = column.take(first)
        texts: Any = written.take(first)
        if pa.types.is_float16(values.type):  # which Arrow does not sort
            values = texts = values.cast(pa.float32())
        try:
            rows = pa.table({"value": values, "text": values if is_written else texts})
            order: Any = np.asarray(pc.sort_indices(rows, sort_keys=_BY_VALUE))
        except pa.ArrowException as error:
            raise self._no_id(name) from error
        return Ids(np.argsort(order)[codes], texts.take(order), first[order])

    def _id_column(self, name: str) -> pa.ChunkedArray[Any]:
        """The column, decoded; DataFileError if a value is missing, or it is nested."""
        self.require(name)
        self._refuse_missing(name)
        if pa.types.is_nested(self.table.column(name).type):
            raise self._no_id(name)
        return self.plain(name)

    def _no_id(self, name: str) -> DataFileError:
        kind = self.table.column(name).type
        return DataFileError(self.path, f"column {name!r} is {kind}; an id is a text or a number")

    def values(self, name: str) -> list[Any]:
        """(rows,) the column as Python values, to be ids; DataFileError if one is missing or nested."""
        return self._python(self._id_column(name), name)

    def texts(self, name: str, *, may_be_empty: bool = False) -> list[str]:
        """(rows,) the column as text; DataFileError if one is missing or blank.

        With `may_be_empty` these are empty texts instead.
        """
        self.require(name)
        if not may_be_empty:
            self._refuse_missing(name)
        missing, values = self.missing(name).tolist(), self._python(self.table.column(name), name)
        return ["" if none else str(value) for none, value in zip(missing, values, strict=True)]

    def plain(self, name: str) -> pa.ChunkedArray[Any]:
        """The column, decoded if it is stored as a dictionary."""
        column = self.table.column(name)
        return pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column

    def texts_of(self, name: str, ids: Ids) -> list[str]:
        """(D,) the text of each of the `ids` of a column, as it is written."""
        return [str(text) for text in self._python(ids.texts, name)]

    def values_of(self, name: str, ids: Ids) -> list[Any]:
        """(D,) the value of each of the `ids` of a column."""
        return self._python(self._id_column(name).take(cast(Any, ids.first)), name)

    def _python(self, column: pa.ChunkedArray[Any], name: str) -> list[Any]:
        """Values of a column as Python's.

        DataFileError for those that Python cannot represent, such as a date after the year 9999.
        """
        try:
            return column.to_pylist()
        except (OverflowError, ValueError, pa.ArrowException) as error:
            problem = f"column {name!r} is {column.type}, and has values that cannot be read ({error})"
            raise DataFileError(self.path, problem) from error

    def _refuse_missing(self, name: str) -> None:
        """Raise DataFileError for null, NaN and blank text."""
        refuse_first(self.path, self.missing(name), f"{name} is missing")

    def missing(self, name: str) -> Bools:
        """(rows,) whether the value is null, NaN or blank text: an empty cell of a CSV may be read as any.

        Texts have several types in a Parquet file, as their writer chose.
        """
        column = self.table.column(name)
        missing: Bools = np.asarray(column.is_null(nan_is_null=True))
        plain: Any = self.plain(name)
        kind = plain.type
        if is_text(kind):
            blank: Any = pc.equal(pc.utf8_trim_whitespace(plain), cast(Any, pa.scalar("", kind)))
        elif is_bytes(kind):
            blank = pc.match_substring_regex(plain, BLANK)
        else:
            return missing
        missing |= np.asarray(blank.fill_null(False))
        return missing


def _alike(name: str, near: str, known: Sequence[str]) -> str:
    """The known name that an unknown one may be; all of those that differ in their unit, if it has another.

    >>> known = ["latency_ms", "latency_s", "start", "start_s"]
    >>> _alike("latncy_s", "latency_s", known), _alike("latency", "latency_s", known)
    ("'latency_s'", "one of 'latency_ms', 'latency_s', by its unit")
    """
    what, _, unit = near.partition("_")
    units = [repr(other) for other in known if other.partition("_")[0] == what]
    its_unit, is_written_alike = name.strip().partition("_")[2], name.strip().casefold() == near
    if len(units) == 1 or (its_unit == unit and (unit or is_written_alike)):
        return repr(near)
    return f"one of {', '.join(units)}, by its unit"


def find_table(where: TablePath, locate: Callable[[str], Path]) -> TableFile:
    """Read the table that a configuration names; see `read_table`."""
    return read_table(locate(where.path), where)


def read_table(path: Path, given: Given = Given()) -> TableFile:  # noqa: B008  (it is frozen)
    """Read the table in `path`, in any of `TABLE_SUFFIXES`.

    Args:
        path: the file.
        given: what is given of how a CSV is written.

    Raises:
        DataFileError: the file is missing, unreadable, too large or without rows; it has another suffix; or
            how it is written cannot be told, or is not as given.
    """
    form = format_of(path)
    if not is_file(path):
        raise DataFileError(path, "no such file")
    with damage_in_one_line(path):
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise DataFileError(path, f"has {size:,} bytes; a table has at most {MOST_BYTES:,}")
        if form == "CSV":
            _refuse_too_much_text(path, given)
        shards = find_shards(path, given=given, finds_types=False)
        csv = shards.csv(path) if shards.is_csv else None
        table = _read_batches(path, shards) if csv is None else csv.table()
    if len(table) == 0:
        raise DataFileError(path, "has no rows")
    if csv is not None and len(shards.kinds) < len(csv.names):
        places = {name: number for number, name in reversed([*enumerate(csv.names)])}
        table = table.select([places[name] for name in shards.kinds])
    doubt = f"; {shards.doubt}" if shards.doubt else ""
    return TableFile(path, table, csv, shards.twice, shards.notes, doubt)


def _refuse_too_much_text(path: Path, given: Given) -> None:
    """Raise DataFileError for a CSV with more text, or more cells, than a table has."""
    num_bytes = lines = columns = 0
    form = form_at(path, given)
    for piece in pieces_of(path, form):
        if num_bytes == 0:  # of the first line as far as this piece has it
            head = piece.replace(b"\r", b"\n").partition(b"\n")[0]
            columns = 1 + max(head.count(mark.encode()) for mark in form.mark or SEPARATORS)
        num_bytes += len(piece)
        lines += piece.count(b"\n") + piece.count(b"\r") - piece.count(b"\r\n")
        if num_bytes > MOST_BYTES:
            raise DataFileError(path, f"has more than {MOST_BYTES:,} bytes of text; a table has fewer")
        _refuse_too_large(path, lines, columns)


def _read_batches(path: Path, shards: Shards) -> pa.Table:
    """All columns of a Parquet or an Arrow file; DataFileError if it is too large, damaged or nested.

    Texts stay dictionaries until their size without dictionaries is known.
    """
    kinds, pieces = shards.kinds, list[pa.RecordBatch]()
    refuse_twice(path, kinds, shards.twice)
    rows = num_bytes = 0
    if shards.format == "Parquet":
        _refuse_too_large(path, parquet_schema(path)[1], len(kinds))
    types = {name: _packed(path, name, kind) for name, kind in kinds.items()}
    for batch in shards.batches(types, _ROWS, tally=Tally(2 * MOST_CELLS, least=1)):
        rows, num_bytes = rows + batch.num_rows, num_bytes + sum(map(_plain_bytes, batch.columns.values()))
        _refuse_too_large(path, rows, len(kinds))
        if num_bytes > MOST_BYTES:
            raise DataFileError(path, f"its columns come to more than {MOST_BYTES:,} bytes")
        plain = {name: column.cast(kinds[name]) for name, column in batch.columns.items()}
        pieces.append(pa.RecordBatch.from_pydict(plain))
    return pa.Table.from_batches(pieces, pa.schema(kinds, cast(Any, shards.metadata)))


def _packed(path: Path, name: str, kind: pa.DataType) -> pa.DataType:
    """The type as which a column is read, of texts that of a dictionary; DataFileError for long values."""
    if pa.types.is_nested(kind):
        raise DataFileError(path, f"column {name!r} is nested; a table has one value in each cell")
    is_fixed = pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind)
    if is_fixed and cast(Any, kind).byte_width > MOST_FIXED_BYTES:
        raise DataFileError(path, f"column {name!r} has {cast(Any, kind).byte_width} bytes in each cell")
    return TEXT if is_text(kind) else pa.dictionary(pa.int32(), pa.binary()) if is_bytes(kind) else kind


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
