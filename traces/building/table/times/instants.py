"""Times as tables write them: as dates, timestamps, texts, or numbers since 1970."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import EARLIEST_US, LATEST_US, OUT_OF_RANGE, microseconds_of
from emulator.storage.reading.shards import TEXT, Batch, missing
from traces.building.bad_rows import BadRows
from traces.building.table.times.time_texts import formatted_times, iso_times
from traces.building.table.times.time_zones import local_times, zone_named
from traces.building.table.times.unix_times import Unit, UnixTimes, of_texts

EXPECTED = "a date or a timestamp in ISO 8601, as 2015-01-31 or 2015-01-31T12:00:00Z"

NAIVE, OFFSET, UNIX = range(3)
"""How a time is written: without an offset from UTC, with one, or as a number since 1970."""

_WRITTEN = ("has no offset", "has an offset", "is a Unix time")


@dataclass(frozen=True)
class TimeOptions:
    """What the times of a column cannot say themselves.

    Attributes:
        unix: The unit of Unix times; None: it is told by their sizes.
        pattern: How texts are written; None: in ISO 8601.
        zone: The time zone whose days count; None: those of UTC, or of times without offset as they are.
    """

    unix: Unit | None = None
    pattern: str | None = None
    zone: str | None = None


@dataclass(frozen=True)
class _First:
    """How the time of the first row is written, and where that row is."""

    written: int
    shown: str = ""
    place: str = ""


def read_as(kind: pa.DataType, options: TimeOptions) -> pa.DataType:
    """The type as which the times of a CSV are read: numbers if its first ones are, else texts."""
    if options.pattern is not None:
        return TEXT
    if pa.types.is_integer(kind) or (pa.types.is_null(kind) and options.unix is not None):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(kind) else TEXT


class Instants:
    """The times of a column, batch by batch, in microseconds since 1970.

    Those with an offset, and Unix times, are those of UTC or, with a zone, of clocks there. Either all have
    an offset, or none has one.
    """

    def __init__(self, name: str, options: TimeOptions, bad: BadRows) -> None:
        self.name = name
        self.options = options
        self.bad = bad
        self._unix = UnixTimes(name, options.unix, bad)
        self._zone = None if options.zone is None else zone_named(options.zone)
        self._first: _First | None = None

    @property
    def has_zone(self) -> bool:
        """Whether the times are those of UTC because they had an offset."""
        return self._first is not None and self._first.written == OFFSET and self._zone is None

    def note(self) -> str | None:
        """What was decided about the times, for the user; None: nothing."""
        return self._unix.note()

    def read(self, batch: Batch, start: int) -> Ints:
        """(rows,) the times of a batch that begins at row `start` of the table; 0 where a row is bad.

        Raises DataFileError for a type or a text that is no time, for one before the year 1 or after 9999,
        and for times some of which have an offset.
        """
        instants = self._inside(batch, start, self._instants(batch, start))
        if self._zone is None:
            return instants
        return self._inside(batch, start, local_times(instants, self._zone))

    def _inside(self, batch: Batch, start: int, instants: Ints) -> Ints:
        outside = (instants < EARLIEST_US) | (instants >= LATEST_US)
        self.bad.refuse(batch, start, outside, lambda row: f"{self.name} {OUT_OF_RANGE}")
        return np.where(outside, 0, instants)

    def _instants(self, batch: Batch, start: int) -> Ints:
        column: Any = batch.columns[self.name]
        kind = column.type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if self.options.pattern is not None and pa.types.is_integer(kind):
            column = pc.cast(column, pa.string()).dictionary_encode()
        if isinstance(column, pa.DictionaryArray):
            return self._texts(batch, start, column)
        if self.options.pattern is not None:
            raise DataFileError(batch.path, f"column {self.name!r} is {kind}; --time-format is for texts")
        if is_number:
            self._first = self._first or _First(UNIX)
            return self._unix.read(batch, start, column)
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return self._stamps(batch, start, column)
        raise DataFileError(batch.path, f"column {self.name!r} is {kind}; a time is {EXPECTED}")

    def _stamps(self, batch: Batch, start: int, column: Any) -> Ints:
        """(rows,) the times of a column of dates or timestamps."""
        kind = column.type
        has_offset = bool(getattr(kind, "tz", None))
        if self._zone is not None and not has_offset:
            raise DataFileError(
                batch.path,
                f"column {self.name!r} is {kind}, without a time zone: its days are local ones already; "
                f"leave out --zone",
            )
        self.bad.refuse(batch, start, missing(column), lambda row: f"{self.name} is missing")
        self._first = self._first or _First(OFFSET if has_offset else NAIVE)
        instants, outside = microseconds_of(column, kind)
        return np.where(outside, LATEST_US, instants)

    def _texts(self, batch: Batch, start: int, column: Any) -> Ints:
        """(rows,) the times of a column of texts, each of which is parsed once."""
        texts: Any = pc.utf8_trim_whitespace(pc.cast(column.dictionary, pa.string()))
        codes = np.asarray(column.indices.fill_null(-1)).astype(np.int64)
        values, is_time, written = self._parsed(texts)
        row_is_bad = np.where(codes < 0, True, ~is_time[codes] if len(texts) else True)

        def problem(row: int) -> str:
            text = None if codes[row] < 0 else texts[int(codes[row])].as_py()
            return f"{self.name} = {text!r}: {self._rule(text)}" if text else f"{self.name} is missing"

        self.bad.refuse(batch, start, row_is_bad, problem)
        good = np.flatnonzero(~row_is_bad)
        if len(good):
            self._refuse_mixed(batch, texts, codes, good, written)
        instants = np.zeros(len(codes), dtype=np.int64)
        instants[good] = values[codes[good]]
        return instants

    def _parsed(self, texts: Any) -> tuple[Ints, Bools, np.ndarray]:
        """The microseconds (k,) of texts, whether each is a time (k,), and how it is written (k,)."""
        if self.options.pattern is not None:
            found = formatted_times(texts, self.options.pattern)
        else:
            found = iso_times(texts)
        values, is_time, written = (
            found.microseconds,
            found.is_time,
            np.where(found.has_offset, OFFSET, NAIVE),
        )
        if self.options.unix is not None:
            numbers, is_number = of_texts(texts, self.options.unix)
            values, is_time = np.where(is_number, numbers, values), is_time | is_number
            written[is_number] = UNIX
        return values, is_time, written

    def _rule(self, text: str) -> str:
        """What a text that is no time should be."""
        pattern = self.options.pattern
        if pattern is not None:
            example = datetime(2015, 1, 31, 12, tzinfo=UTC).strftime(pattern)
            return f"must be written as --time-format {pattern!r} says, as {example!r}"
        hint = "--time-format says how other texts are written, such as %d.%m.%Y"
        if text.lstrip("+-").isdigit():
            hint = "give --unix s, ms, us or ns for Unix times, or --time-format for dates such as 20150131"
        return f"must be {EXPECTED}; {hint}"

    def _refuse_mixed(self, batch: Batch, texts: Any, codes: Ints, good: Ints, written: np.ndarray) -> None:
        def shown(row: int) -> str:
            return texts[int(codes[row])].as_py() or ""

        row = int(good[0])
        if self._first is None:
            self._first = _First(
                int(written[codes[row]]), shown(row), f"{batch.path.name}, row {batch.first + row + 1}"
            )
        if self._first.written == NAIVE and self._zone is not None:
            raise DataFileError(
                batch.path,
                f"{self.name} = {shown(row)!r}: has no offset, so that its day is a local one already; leave "
                f"out --zone",
                batch.first + row + 1,
            )
        other = good[written[codes[good]] != self._first.written]
        if len(other):
            row = int(other[0])
            raise DataFileError(
                batch.path,
                f"{self.name} = {shown(row)!r}: {_WRITTEN[written[codes[row]]]}, and {self._first.shown!r} "
                f"in {self._first.place} {_WRITTEN[self._first.written]}; give all times an offset, or none",
                batch.first + row + 1,
            )
