"""Unix times: numbers of seconds, milliseconds, microseconds or nanoseconds since 1970."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.reading.shards import Batch
from traces.building.rules import NUMBERS, UNIX_SIZES, UNIX_TIMES, UNIX_UNITS, UNIX_YEARS, Cells, keep, refuse
from traces.building.table.key_columns import Column, numbers_in

Unit = Literal["s", "ms", "us", "ns"]

UNITS: tuple[Unit, ...] = ("s", "ms", "us", "ns")
NAMES: dict[Unit, str] = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

SIZES = (10**8, 10**11, 10**14, 10**17)
"""The smallest sizes that are taken for Unix times of each of `UNITS`: 1973 in each, as the last one of the
unit before is a time in 5138."""

MICROSECONDS: dict[Unit, int] = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}
"""Microseconds of a unit; of nanoseconds a thousand is one."""

EARLIEST_US, LATEST_US = 631_152_000_000_000, 4_133_980_800_000_000
"""The microseconds to the beginning of 1990, and to the end of 2100: where the unit is told by the size, a
number outside is hardly a Unix time. Nor are nanoseconds of 1990: .NET's ticks of this century read so."""

YEAR_US = 365 * 86_400 * 10**6

TICKS = {".NET ticks": 621_355_968_000_000_000, "Windows file times": 116_444_736_000_000_000}
"""What 1970 is in times of 100 nanoseconds that begin earlier."""

SHORTEST_S, LONGEST_S = 60, 10**7
"""The shortest and the longest time, four months, that a device is taken to have been on."""

_MOST = 2**63 - 1


class UnixTimes:
    """The Unix times of a column, batch by batch, in microseconds; all of them have one unit.

    Without a `unit`, it is told by the sizes of all numbers, which must agree. `span` has the first and the
    last time; None: there is none yet.
    """

    def __init__(self, column: Column, unit: Unit | None) -> None:
        self.column = column
        self.unit = unit
        self.span: tuple[int, int] | None = None
        self._first: str | None = None  # the number that the unit is told by, and where it is

    def read(self, batch: Batch, start: int, present: Bools | None) -> Ints:
        """(rows,) the times of a batch that begins at row `start` of the table; 0 where a row is bad.

        Rows that are not `present` (rows,) are not looked at. Raises DataFileError for a number that is no
        Unix time, and for numbers that differ in their unit.
        """
        column = batch.columns[self.column.name]
        if pa.types.is_floating(column.type) and column.type != pa.float64():
            few = f"is {column.type}, which has too few digits for Unix times"
            raise DataFileError(
                batch.path, f"column {self.column.name!r} {few}; save them as whole numbers, or as doubles"
            )
        name, unit = self.column.name, self.unit
        numbers, is_missing = numbers_in(column)
        cells = Cells(name=name, value=numbers, is_missing=is_missing)
        at = self.column.bad, batch, start
        good = keep(NUMBERS, cells, *at, present)
        if unit is None or self._first is not None:
            # NOTE: clipped, as the smallest number of 64 bits has no size among them.
            clipped = np.maximum(numbers, -_MOST) if numbers.dtype == np.int64 else numbers
            size = cells.size = np.searchsorted(SIZES, np.abs(clipped), side="right")
            good = keep(UNIX_SIZES, cells, *at, good)
        if not good.any():
            return np.zeros(len(numbers), dtype=np.int64)
        if unit is None:
            row = int(good.argmax())
            unit = self.unit = UNITS[int(size[row]) - 1]
            self._first = f"{numbers[row]} in {batch.path.name}, row {batch.first + row + 1}"
        cells.unit, cells.known = unit, NAMES[unit]
        if self._first is not None:
            cells.first = self._first
            cells.is_other = good & (size != UNITS.index(unit) + 1)
            cells.own = lambda row: NAMES[UNITS[size[row] - 1]]
            refuse(UNIX_UNITS, cells, batch.path, batch.num_rows, batch.first)
        times, cells.is_time = microseconds_of(numbers, unit)
        good = keep(UNIX_TIMES, cells, *at, good)
        if self._first is not None:
            cells.time, cells.year = times, 1991 if unit == "ns" else 1990
            cells.earliest, cells.latest = EARLIEST_US + (unit == "ns") * YEAR_US, LATEST_US
            cells.shown = lambda row: _shown(int(times[row]))
            cells.readings = lambda row: "; it may be ".join(["", *other_readings(int(numbers[row]), name)])
            good = keep(UNIX_YEARS, cells, *at, good)
        if good.any():
            first, last = self.span or (_MOST, -_MOST)
            self.span = min(first, int(times[good].min())), max(last, int(times[good].max()))
        return np.where(good, times, 0)

    def notes(self) -> tuple[str, ...]:
        """Which unit was told by the sizes of the numbers, and what that makes of them, if one was."""
        if self._first is None or self.span is None or self.unit is None:
            return ()
        first, last = map(_shown, self.span)
        told = f"the numbers are Unix {NAMES[self.unit]}, {first} to {last}; --unix UNIT says otherwise"
        return (f"{self.column.name}: {told}",)


def microseconds_of(numbers: np.ndarray, unit: Unit) -> tuple[Ints, Bools]:
    """The microseconds (n,) of Unix times, and whether each is one (n,): it fits into 64 bits.

    Nanoseconds are rounded down, fractions of other units to the nearest microsecond.

    >>> microseconds_of(np.array([1.5, np.inf]), "s")
    (array([1500000,       0]), array([ True, False]))
    >>> microseconds_of(np.array([-1, 1999]), "ns")[0]
    array([-1,  1])
    """
    factor = MICROSECONDS[unit]
    most = _MOST // factor
    if numbers.dtype.kind == "f":
        is_time = np.abs(numbers) < float(most)
        known = np.where(is_time, numbers, 0.0)
        times = np.floor(known) if unit == "ns" else np.rint(known * factor)
        whole = times.astype(np.int64)
    else:
        is_time = (numbers <= most) & (numbers >= -most)
        whole = np.where(is_time, numbers, 0).astype(np.int64) * factor
    return whole // 1000 if unit == "ns" else whole, is_time


def of_texts(texts: pa.Array[Any], unit: Unit) -> tuple[Ints, Bools]:
    """The microseconds (k,) of texts that are whole numbers, and whether each is one (k,)."""
    is_whole = np.asarray(pc.match_substring_regex(texts, r"^[+-]?[0-9]{1,18}$").fill_null(False))
    numbers = pc.cast(pc.if_else(pa.array(is_whole), texts, pa.scalar("0")), pa.int64())
    times, is_time = microseconds_of(np.asarray(numbers), unit)
    return times, is_whole & is_time


def other_readings(number: int, column: str) -> list[str]:
    """What a number that is hardly a Unix time may be, each with what to do.

    >>> other_readings(49_105_962_326_000, "t")  # WISDM's
    ['13.6 hours in nanoseconds since the start of a device']
    >>> other_readings(638_396_640_000_000_000, "t")
    ['2024-01-01T00:00:00Z in .NET ticks: write (t - 621355968000000000) / 10, and give --unix us']
    """
    ticks = {name: (number - start) // 10 for name, start in TICKS.items()}
    found = [
        f"{_shown(time)} in {name}: write ({column} - {TICKS[name]}) / 10, and give --unix us"
        for name, time in ticks.items()
        if EARLIEST_US <= time < LATEST_US
    ]
    for unit, per_s in zip(UNITS, (1, 10**3, 10**6, 10**9), strict=True):
        if SHORTEST_S <= number / per_s <= LONGEST_S:
            hours = f"{number / per_s / 3600:.3g} hours"
            found.append(f"{hours} in {NAMES[unit]} since the start of a device")
    return found


def _shown(time: int) -> str:
    """A time in microseconds since 1970 in ISO 8601, to the second."""
    return f"{np.datetime64(time, 'us').astype('datetime64[s]')}Z"
