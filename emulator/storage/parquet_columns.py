"""A Parquet file of which one column at a time is read, straight into an array of the type that is wanted.

For files of many rows: besides the result, only a piece of a column is in memory. Smaller tables, and CSV,
are read whole by `emulator.storage.tables`, whose bounds hold here too. Arrays become numpy's by
`np.from_dlpack`, since other ways import pandas, where it is installed.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from emulator.arrays import Bools, Floats, Ints
from emulator.errors import DataFileError
from emulator.storage.bounded import is_file
from emulator.storage.reading.bounds import MOST_COLUMNS, MOST_REASON
from emulator.storage.reading.columns import is_text

MOST_ROWS = 2**31
"""Most rows of a file: row numbers fit into 32 bits."""

MOST_TEXTS = 2**24
"""Most distinct texts of a column, all of which are kept in memory."""

_ROWS = 2**18
"""Rows that are read at once."""

EARLIEST_US, LATEST_US = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The microseconds from 1970 to the beginning of the year 1, and to the end of 9999."""

NO_TIME = (
    "a time is a date or a timestamp (pandas.to_datetime makes one of a text such as 2015-01-31T12:00:00Z)"
)
OUT_OF_RANGE = "is out of range: years 1 to 9999 are read"

_MICROSECONDS = {"D": 86_400 * 10**6, "s": 10**6, "ms": 10**3, "us": 1}


Piece = tuple[int, Any]
"""The number of a first row, and an Arrow array of the values of it and the next ones."""


class Codes(NamedTuple):
    """A column of texts: `codes` (rows,) are indices into the distinct `texts`, which ascend."""

    codes: np.ndarray
    texts: tuple[str, ...]


class Columns(ABC):
    """Columns of numbers and texts, read in pieces when they are used; there are `num_rows` (>= 1) rows.

    A format says how a column becomes pieces: Arrow arrays, each with the number of its first row.
    """

    path: Path
    names: Sequence[str]
    num_rows: int

    def __contains__(self, name: str) -> bool:
        return name in self.names

    @abstractmethod
    def _numbers(self, name: str, *, whole: bool) -> Iterator[Piece]:
        """A column of numbers, or of whole ones; DataFileError if it has others."""

    def integers(self, name: str, least: int = -(2**63), most: int = 2**63 - 1) -> np.ndarray:
        """Read a column of whole numbers.

        Args:
            name: the column.
            least: the smallest value allowed.
            most: the largest value allowed.

        Returns:
            (rows,) the values, in the smallest signed type that holds `least` and `most`.

        Raises:
            DataFileError: a value is missing, not a whole number or out of range, or there is no such column.
        """
        kind = np.promote_types(np.min_scalar_type(-1 - most), np.min_scalar_type(least))
        values, rule = np.empty(self.num_rows, kind), f"must be from {least} to {most}"
        return self._filled(values, name, lambda numbers: (numbers < least) | (numbers > most), rule)

    def numbers(self, name: str) -> Floats:
        """Read a column of numbers.

        Returns:
            (rows,) the values in double precision.

        Raises:
            DataFileError: a value is missing or not finite, or the column has another type.
        """
        values, rule = np.empty(self.num_rows, np.float64), "must be a finite number"
        return self._filled(values, name, lambda numbers: ~np.isfinite(numbers), rule)

    def _filled(
        self, values: np.ndarray, name: str, is_bad: Callable[[np.ndarray], Bools], rule: str
    ) -> np.ndarray:
        """`values` (rows,) filled with a column of numbers; DataFileError, with the rule, for a bad one."""
        for first, piece in self._numbers(name, whole=np.issubdtype(values.dtype, np.integer)):
            self._refuse_missing(name, piece, first)
            numbers: Any = np.from_dlpack(piece)
            bad = is_bad(numbers)
            if bad.any():
                row = int(bad.argmax())
                raise DataFileError(self.path, f"{name} = {numbers[row]}: {rule}", first + row + 1)
            values[first : first + len(numbers)] = numbers
        return values

    def _refuse_missing(self, name: str, piece: pa.Array[Any], first: int) -> None:
        if piece.null_count:
            refuse_first(self.path, np.asarray(piece.is_null()), f"{name} is missing", first)


class ParquetColumns(Columns):
    """The columns of a Parquet file; `names` and `num_rows` are known without reading one."""

    def __init__(self, path: Path) -> None:
        """Read the schema of `path`.

        Raises:
            DataFileError: the file is missing, damaged or empty, has nested columns, two columns of one name,
                or too many columns or rows.
        """
        self.path = path
        if not is_file(path):
            raise DataFileError(path, "no such file")
        with damage_in_one_line(path):
            # NOTE: the metadata of a column in a row group is not read: if it is damaged, Arrow ends the
            # process.
            self._file = pq.ParquetFile(path)
            self._schema = self._file.schema_arrow
        self.names: list[str] = list(self._schema.names)
        self.num_rows = rows = int(self._file.metadata.num_rows)
        columns = self._file.metadata.num_columns
        if len(set(self.names)) < len(self.names):
            raise DataFileError(path, f"a column name occurs twice: {', '.join(self.names)}")
        if columns > MOST_COLUMNS or rows > MOST_ROWS:
            most = f"at most {MOST_COLUMNS} and {MOST_ROWS} are read"
            raise DataFileError(path, f"has {columns} columns and {rows} rows; {most}")
        if rows < 1:
            raise DataFileError(path, f"damaged: it states {rows} rows" if rows else "has no rows")

    def kind(self, name: str) -> pa.DataType:
        """The Arrow type of a column; of a dictionary, that of its values.

        Raises DataFileError if there is no such column.
        """
        if name not in self.names:
            raise DataFileError(self.path, f"column {name!r} is missing; it has {', '.join(self.names)}")
        kind: pa.DataType = self._schema.field(name).type
        return cast(pa.DataType, kind.value_type) if isinstance(kind, pa.DictionaryType) else kind

    def is_text(self, name: str) -> bool:
        """Whether a column holds texts; DataFileError if there is no such column."""
        return is_text(self.kind(name))

    def is_time(self, name: str) -> bool:
        """Whether a column holds dates or timestamps; DataFileError if there is no such column."""
        return pa.types.is_timestamp(self.kind(name)) or pa.types.is_date(self.kind(name))

    def times(self, name: str) -> Ints:
        """Read a column of dates or timestamps.

        Returns:
            (rows,) microseconds since 1970-01-01; those of a time zone in UTC, those without one as they are.

        Raises:
            DataFileError: a value is missing or outside the years 1 to 9999, or the column has another type.
        """
        kind = self.kind(name)
        self._require(name, self.is_time(name), NO_TIME)
        values = np.empty(self.num_rows, np.int64)
        for first, piece in self.pieces(name):
            self._refuse_missing(name, piece, first)
            instants, outside = microseconds_of(piece, kind)
            refuse_first(self.path, outside, f"{name} {OUT_OF_RANGE}", first)
            values[first : first + len(piece)] = instants
        return values

    def texts(self, name: str) -> Codes:
        """Read a column of texts.

        Raises:
            DataFileError: a text is missing or blank, the column has another type, or more than `MOST_TEXTS`
                distinct texts.
        """
        self._require(name, self.is_text(name), "it must hold texts")
        known: dict[str, int] = {}
        codes = np.empty(self.num_rows, np.int8)  # or a longer type, once there are more texts
        for first, piece in self.pieces(name, as_dictionary=True):
            self._refuse_missing(name, piece, first)
            used, occurring = np.from_dlpack(piece.indices), piece.indices.unique()
            texts: list[str] = list(map(str, piece.dictionary.take(occurring).to_pylist()))
            here = np.empty(len(piece.dictionary), dtype=np.int32)
            here[np.from_dlpack(occurring)] = [known.setdefault(text, len(known)) for text in texts]
            numbers = here[used]
            blank = [known[text] for text in texts if not text.strip()]
            if blank:
                refuse_first(self.path, np.isin(numbers, blank), f"{name} is missing", first)
            if len(known) > MOST_TEXTS:
                raise DataFileError(self.path, f"column {name!r} has more than {MOST_TEXTS} distinct texts")
            if len(known) > np.iinfo(codes.dtype).max:
                codes = codes.astype(np.promote_types(codes.dtype, np.min_scalar_type(-1 - len(known))))
            codes[first : first + len(piece)] = numbers
        texts = sorted(known)
        rank = np.argsort([known[text] for text in texts]).astype(codes.dtype)
        for first in range(0, len(codes), _ROWS):  # in pieces: not a second array of that length
            codes[first : first + _ROWS] = rank[codes[first : first + _ROWS]]
        return Codes(codes, tuple(texts))

    def pieces(self, name: str, as_dictionary: bool = False) -> Iterator[Piece]:
        """The column as it is, whatever its values, in pieces.

        Args:
            name: the column.
            as_dictionary: encode the pieces as dictionaries.

        Raises:
            DataFileError: the column is damaged.
        """
        with damage_in_one_line(self.path):
            reader = self._file
            if as_dictionary:
                reader = pq.ParquetFile(self.path, metadata=self._file.metadata, read_dictionary=[name])
            first = 0
            for batch in reader.iter_batches(batch_size=_ROWS, columns=[name], use_threads=False):
                [piece] = cast(Any, batch.columns)
                piece.validate(full=True)
                if first + len(piece) > self.num_rows:
                    break
                if as_dictionary != isinstance(piece, pa.DictionaryArray):
                    piece = piece.dictionary_encode() if as_dictionary else piece.dictionary_decode()
                yield first, piece
                first += len(piece)
            # NOTE: else Arrow keeps some ten megabytes of what it has freed.
            pa.default_memory_pool().release_unused()
            if first != self.num_rows:
                raise DataFileError(
                    self.path, f"damaged: it has {self.num_rows} rows, and column {name!r} a different number"
                )

    def _numbers(self, name: str, *, whole: bool) -> Iterator[Piece]:
        kind = self.kind(name)
        is_fit = pa.types.is_integer(kind) or (pa.types.is_floating(kind) and not whole)
        self._require(name, is_fit, f"it must hold {'whole numbers' if whole else 'numbers'}")
        return self.pieces(name)

    def _require(self, name: str, is_fit: bool, rule: str) -> None:
        if not is_fit:
            raise DataFileError(self.path, f"column {name!r} is {self.kind(name)}; {rule}")


def microseconds_of(piece: pa.Array[Any], kind: pa.DataType) -> tuple[Ints, Bools]:
    """The microseconds since 1970 of dates or timestamps of type `kind`, those of `ns` rounded down.

    Returns:
        (n,) the microseconds, 0 of a missing one; (n,) whether one is outside the years 1 to 9999.
    """
    unit = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date(kind) else cast(Any, kind).unit
    whole = pc.cast(piece, pa.int32() if unit == "D" else pa.int64())
    units: Any = np.from_dlpack(whole.fill_null(0))
    if unit == "ns":
        return units // 1000, np.zeros(len(units), np.bool_)
    factor = _MICROSECONDS[unit]
    outside = (units < EARLIEST_US // factor) | (units >= LATEST_US // factor)
    return np.where(outside, 0, units).astype(np.int64) * factor, outside


def refuse_first(path: Path, bad: Bools, problem: str, first: int = 0) -> None:
    """Raise DataFileError for the first of the rows (n,) that are `bad`; they begin with row `first`."""
    if bad.any():
        raise DataFileError(path, problem, first + int(bad.argmax()) + 1)


def first_unlike(column: pa.Array[Any] | pa.ChunkedArray[Any], kind: pa.DataType) -> int:
    """The first row, counted from 0, whose value Arrow does not cast to `kind`; there must be one."""
    low, high = 0, len(column)  # the row is in [low, high), and all rows before low can be cast
    while high - low > 1:
        middle = (low + high) // 2
        try:
            pc.cast(column.slice(low, middle - low), kind)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


_FORMATS = {".parquet": "parquet", ".arrow": "Arrow", ".feather": "Arrow"}


@contextmanager
def damage_in_one_line(path: Path) -> Iterator[None]:
    """Context that turns what a library raises about a damaged table into a DataFileError of one line."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError) as error:
        reason = " ".join(str(error).split())[:MOST_REASON]
        what = _FORMATS.get(path.suffix, "CSV")
        raise DataFileError(path, f"cannot be read as {what} ({reason})") from error
