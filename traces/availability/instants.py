"""The instants of a table of hours: virtual seconds, or dates and Unix times, counted from one of them on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools, Floats, Ints
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import EARLIEST_US, OUT_OF_RANGE, microseconds_of
from emulator.storage.reading.bounds import MOST_REASON
from emulator.storage.tables import TableFile

VIRTUAL, REAL = ("start_s", "end_s"), ("start", "end")
"""The columns of an interval in virtual seconds, and in dates or Unix times."""

FIRST_S, LAST_S = 631_152_000, 4_102_444_800
"""The Unix seconds of 1990 and of 2100. A larger number is one of milliseconds."""

DAY_US = 86_400 * 10**6
EXPECTED = (
    "a time with a zone, as 2015-01-31T12:00:00Z (tz_localize in pandas), or Unix seconds or milliseconds"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Instants:
    """When the interval of each row of a table starts and ends, in seconds; both of shape (rows,).

    `zero_us`, in microseconds since 1970, is when 0 s is; None: the seconds are virtual ones. `notes` are
    for the user.
    """

    start_s: Floats
    end_s: Floats
    zero_us: int | None = None
    notes: tuple[str, ...] = ()

    def shown(self, time_s: float) -> str:
        """A second as the instant that it is."""
        return f"{time_s:.15g}" if self.zero_us is None else iso_time(self.zero_us + round(time_s * 1e6))


def iso_time(time_us: int) -> str:
    """The instant `time_us` microseconds after 1970 began, in UTC.

    >>> iso_time(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    return f"{(_EPOCH + timedelta(microseconds=time_us)).replace(tzinfo=None).isoformat()}Z"


def instant_columns(table: TableFile) -> tuple[str, ...]:
    """The columns of instants that a table may have: one pair, or if it has neither, both.

    DataFileError for columns of both.
    """
    real, virtual = ([name for name in names if name in table.columns] for names in (REAL, VIRTUAL))
    if real and virtual:
        pairs = "start and end hold dates or Unix times, start_s and end_s virtual seconds: keep one pair"
        raise DataFileError(table.path, f"has both {real[0]} and {virtual[0]}; {pairs}")
    return REAL if real else VIRTUAL if virtual else (*VIRTUAL, *REAL)


def read_instants(table: TableFile, origin: datetime | None = None, align: str = "origin") -> Instants:
    """Read the intervals of a table's rows; dates and Unix times from `origin` or, without it, the earliest.

    A missing `end` is the last instant of the table. `align` is the setting of `intervals`. DataFileError,
    with the row, for what is no instant, a row that starts before the origin, and one that ends before.
    """
    if instant_columns(table) != REAL:
        return _virtual(table, origin)
    (start_us, unknown, unit), (end_us, is_open, end_unit) = (_microseconds(table, name) for name in REAL)
    _refuse(table, "start", unknown, "is missing")
    if end_unit not in (unit, None):
        raise DataFileError(table.path, f"start holds {unit}, and end {end_unit}; write both alike")
    last_us = max(int(start_us.max()), int(end_us[~is_open].max(initial=EARLIEST_US)))
    end_us = np.where(is_open, last_us, end_us)
    _refuse(table, "end", end_us < start_us, "is before the start")
    zero_us = int(start_us.min()) if origin is None else (origin - _EPOCH) // timedelta(microseconds=1)
    early = (
        f"is before devices.availability.origin = {iso_time(zero_us)}; set an earlier one, or leave it out"
    )
    _refuse(table, "start", start_us < zero_us, early)

    zero = iso_time(zero_us)
    if align == "time_of_day":
        zero = f"{iso_time(zero_us - zero_us % DAY_US)}, a midnight in UTC"
    without = f", the end of {int(is_open.sum()):,} without one" if is_open.any() else ""
    notes = (f"virtual time 0 is {zero}", f"{unit} until {iso_time(last_us)}{without}")
    return Instants((start_us - zero_us) / 1e6, (end_us - zero_us) / 1e6, zero_us, notes)


def _virtual(table: TableFile, origin: datetime | None) -> Instants:
    table.require(*VIRTUAL)
    if origin is not None or any(pa.types.is_temporal(table.plain(name).type) for name in VIRTUAL):
        problem = "start_s and end_s are virtual seconds; name them start and end if they are dates"
        raise DataFileError(table.path, f"{problem}, else leave out devices.availability.origin")
    return Instants(table.numbers("start_s"), table.numbers("end_s"))


def _microseconds(table: TableFile, name: str) -> tuple[Ints, Bools, str | None]:
    """The times (rows,) since 1970, which of them are missing, and what they are; None if all are missing."""
    table.require(name)
    column, missing = table.plain(name), table.missing(name)
    kind = column.type
    if missing.all():
        return np.zeros(len(table), np.int64), missing, None
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        times_us, outside = microseconds_of(column.combine_chunks(), kind)
        _refuse(table, name, outside, OUT_OF_RANGE)
        return times_us, missing, "dates"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        from traces.building.table.times.time_texts import iso_times  # which no other table needs

        texts = pc.utf8_trim_whitespace(pc.cast(column, pa.string())).combine_chunks()
        times = iso_times(texts.fill_null(""))
        _refuse(table, name, ~(times.is_time & times.has_offset | missing), f"must be {EXPECTED}")
        return times.microseconds, missing, "dates"
    if pa.types.is_integer(kind) or pa.types.is_float64(kind):
        times_us, unit = _of_numbers(table, name, missing)
        return times_us, missing, unit
    without = ", without a time zone" if pa.types.is_temporal(kind) else ""
    raise DataFileError(table.path, f"column {name!r} is {kind}{without}; it must hold {EXPECTED}")


def _of_numbers(table: TableFile, name: str, missing: Bools) -> tuple[Ints, str]:
    """The times (rows,) of Unix seconds or milliseconds, any where one is missing, and which they are."""
    column: Any = pc.cast(table.plain(name), pa.float64(), safe=False).combine_chunks()
    numbers: Any = np.from_dlpack(column.fill_null(np.nan))
    unit, per_s = ("Unix seconds", 1) if numbers[~missing][0] <= LAST_S else ("Unix milliseconds", 1000)
    outside = ~((numbers >= FIRST_S * per_s) & (numbers <= LAST_S * per_s) | missing)
    rule = (
        f"is outside of 1990 to 2100 in {unit}, the first row's unit; virtual seconds are called {name}_s, "
        f"and micro- or nanoseconds are to be divided first"
    )
    _refuse(table, name, outside, rule)
    return np.rint(np.where(missing, 0, numbers) * (1e6 / per_s)).astype(np.int64), unit


def _refuse(table: TableFile, name: str, bad: Bools, rule: str) -> None:
    """DataFileError for the first of the `bad` rows (rows,), with what is written there."""
    if bad.any():
        row = int(np.argmax(bad))
        cell = table.plain(name).slice(row, 1)
        kind = pa.timestamp(cell.type.unit, "UTC") if pa.types.is_timestamp(cell.type) else cell.type
        text = cell.cast(kind).cast(pa.string())[0].as_py()
        shown = "" if text is None else f" = {text[:MOST_REASON]}"
        raise DataFileError(table.path, f"{name}{shown} {rule}", row=row + 1)
