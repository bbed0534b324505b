"""Times as tables write them: as dates, timestamps, texts, or numbers since 1970."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import LATEST_US, microseconds_of
from emulator.storage.reading.shards import TEXT, Batch, missing
from traces.building.bad_rows import BadRows
from traces.building.rows import Names
from traces.building.rules import INSTANTS, MIXED_TIMES, PRESENT, TIMES, WRITTEN_TIMES, Cells, keep, refuse
from traces.building.table.key_columns import Column, coded
from traces.building.table.times.time_texts import formatted_times, iso_times
from traces.building.table.times.time_zones import local_times, zone_named
from traces.building.table.times.unix_times import Unit, UnixTimes, of_texts

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

    @property
    def way(self) -> str:
        return _WRITTEN[self.written]


class TimeColumn(Column):
    """A column of times, in microseconds since 1970.

    Those with an offset, and Unix times, are those of UTC or, with a zone, of clocks there. Either all have
    an offset, or none has one.
    """

    never = np.int64(2**63 - 1)

    def __init__(self, name: str, options: TimeOptions, bad: BadRows, *, optional: bool = False) -> None:
        super().__init__(name, bad, optional=optional)
        self.options = options
        self._unix = UnixTimes(self, options.unix)
        self._zone = None if options.zone is None else zone_named(options.zone)
        self._first: _First | None = None

    def read_as(self, kind: pa.DataType) -> pa.DataType:
        if self.options.pattern is not None:
            return TEXT
        if pa.types.is_integer(kind) or (pa.types.is_null(kind) and self.options.unix is not None):
            return pa.int64()
        return pa.float64() if pa.types.is_floating(kind) else TEXT

    def finish(self) -> tuple[np.ndarray, Names]:
        self.notes = self._unix.notes()
        self.has_zone = self._first is not None and self._first.written == OFFSET and self._zone is None
        self.unit = f"times {'with' if self.has_zone else 'without'} a time zone"
        return super().finish()

    def values(self, batch: Batch, start: int, present: Bools | None) -> Ints:
        """(rows,) the times of a batch that begins at row `start` of the table; 0 where a row is bad.

        Raises DataFileError for a type or a text that is no time, for one before the year 1 or after 9999,
        and for times some of which have an offset.
        """
        instants = self._inside(batch, start, self._instants(batch, start, present))
        if self._zone is None:
            return instants
        return self._inside(batch, start, local_times(instants, self._zone))

    def _inside(self, batch: Batch, start: int, instants: Ints) -> Ints:
        return np.where(self.keep(INSTANTS, batch, start, None, value=instants), instants, 0)

    def _instants(self, batch: Batch, start: int, present: Bools | None) -> Ints:
        column: Any = batch.columns[self.name]
        kind = column.type
        has_pattern = self.options.pattern is not None
        if isinstance(column, pa.DictionaryArray) or (has_pattern and pa.types.is_integer(kind)):
            return self._texts(batch, start, present)
        if has_pattern:
            raise DataFileError(batch.path, f"column {self.name!r} is {kind}; --time-format is for texts")
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            self._first = self._first or _First(UNIX)
            return self._unix.read(batch, start, present)
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise DataFileError(batch.path, f"column {self.name!r} is {kind}; a time is {TIMES}")
        has_offset = bool(getattr(kind, "tz", None))
        if self._zone is not None and not has_offset:
            raise DataFileError(
                batch.path,
                f"column {self.name!r} is {kind}, without a time zone: its days are local ones already; "
                f"leave out --zone",
            )
        self.keep(PRESENT, batch, start, present, is_missing=missing(column))
        self._first = self._first or _First(OFFSET if has_offset else NAIVE)
        instants, outside = microseconds_of(column, kind)
        return np.where(outside, LATEST_US, instants)

    def _texts(self, batch: Batch, start: int, present: Bools | None) -> Ints:
        """(rows,) the times of a column of texts, each of which is parsed once."""
        texts, codes = coded(batch.columns[self.name])
        times, is_time, written = self._parsed(texts)
        cells = Cells(name=self.name, codes=codes, value=texts, is_time=is_time, written=written)
        cells.is_missing = missing(texts)
        cells.expected = lambda code: self._rule(texts[code].as_py())
        cells.way = lambda code: _WRITTEN[written[code]]
        kept = keep(WRITTEN_TIMES, cells, self.bad, batch, start, present)
        good = np.flatnonzero(kept)
        if len(good):
            if self._first is None:
                code, place = int(codes[good[0]]), f"{batch.path.name}, row {batch.first + int(good[0]) + 1}"
                self._first = _First(int(written[code]), texts[code].as_py(), place)
            cells.first = self._first
            cells.is_local = self._first.written == NAIVE and self._zone is not None
            refuse(MIXED_TIMES, cells, batch.path, batch.num_rows, batch.first)
        return np.where(kept, times[codes], 0)

    def _parsed(self, texts: Any) -> tuple[Ints, Bools, np.ndarray]:
        """The microseconds (k,) of texts, whether each is a time (k,), and how it is written (k,)."""
        pattern, unix = self.options.pattern, self.options.unix
        found = iso_times(texts) if pattern is None else formatted_times(texts, pattern)
        times, is_time, written = found.microseconds, found.is_time, np.where(found.has_offset, OFFSET, NAIVE)
        if unix is not None:
            numbers, is_number = of_texts(texts, unix)
            times, is_time = np.where(is_number, numbers, times), is_time | is_number
            written[is_number] = UNIX
        return times, is_time, written

    def _rule(self, text: str) -> str:
        """What a text that is no time should be."""
        pattern = self.options.pattern
        if pattern is not None:
            example = datetime(2015, 1, 31, 12, tzinfo=UTC).strftime(pattern)
            return f"must be written as --time-format {pattern!r} says, as {example!r}"
        hint = "--time-format says how other texts are written, such as %d.%m.%Y"
        if text.lstrip("+-").isdigit():
            hint = "give --unix s, ms, us or ns for Unix times, or --time-format for dates such as 20150131"
        return f"must be {TIMES}; {hint}"
