"""Unix times: numbers of seconds, milliseconds, microseconds or nanoseconds since 1970."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.reading.shards import Batch, missing
from traces.building.bad_rows import BadRows

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

    def __init__(self, name: str, unit: Unit | None, bad: BadRows) -> None:
        self.name = name
        self.unit = unit
        self.bad = bad
        self.span: tuple[int, int] | None = None
        self._first: str | None = None  # the number that the unit is told by, and where it is

    def read(self, batch: Batch, start: int, column: pa.Array[Any]) -> Ints:
        """(rows,) the times of a batch that begins at row `start` of the table; 0 where a row is bad.

        Raises DataFileError for a number that is no Unix time, and for numbers that differ in their unit.
        """
        if pa.types.is_floating(column.type):
            if column.type != pa.float64():
                raise DataFileError(
                    batch.path,
                    f"column {self.name!r} is {column.type}, which has too few digits for Unix times; save "
                    f"them as whole numbers, or as doubles",
                )
            numbers = column.to_numpy(zero_copy_only=False)
            unknown = ~np.isfinite(numbers)
        else:
            whole = pc.cast(column, column.type if pa.types.is_uint64(column.type) else pa.int64())
            numbers, unknown = np.asarray(whole.fill_null(0)), missing(column)
        self.bad.refuse(
            batch,
            start,
            unknown,
            lambda row: (
                f"{self.name} = {numbers[row]}: must be a finite number"
                if np.isinf(numbers[row])
                else f"{self.name} is missing"
            ),
        )
        good = ~unknown
        if self.unit is None or self._first is not None:
            good &= self._of_one_unit(batch, start, numbers, good)
        return self._scaled(batch, start, numbers, good)

    def _of_one_unit(self, batch: Batch, start: int, numbers: np.ndarray, good: Bools) -> Bools:
        """(rows,) whether each number has the size of a Unix time; those of all `good` rows have one unit."""
        # NOTE: clipped, as the smallest number of 64 bits has no size among them.
        size = np.abs(np.maximum(numbers, -_MOST) if numbers.dtype == np.int64 else numbers)
        number = np.searchsorted(SIZES, size, side="right")
        too_small = good & (number == 0)
        self.bad.refuse(
            batch,
            start,
            too_small,
            lambda row: (
                f"{self.name} = {numbers[row]}: too small for a Unix time; give --unix s if it is one, "
                f"--time-format for dates such as 20240131, or --step or --order for other numbers"
            ),
        )
        has_size: Bools = ~too_small
        rows = np.flatnonzero(good & has_size)
        if len(rows) == 0:
            return has_size
        if self.unit is None:
            self.unit = UNITS[int(number[rows[0]]) - 1]
            self._first = f"{numbers[rows[0]]} in {batch.path.name}, row {batch.first + int(rows[0]) + 1}"
        other = rows[number[rows] != UNITS.index(self.unit) + 1]
        if len(other):
            row = int(other[0])
            raise DataFileError(
                batch.path,
                f"{self.name} = {numbers[row]}: has the size of Unix {NAMES[UNITS[int(number[row]) - 1]]}, "
                f"and {self._first} that of {NAMES[self.unit]}; write all of them in one unit, or give "
                f"--unix {self.unit} if they are",
                batch.first + row + 1,
            )
        return has_size

    def _scaled(self, batch: Batch, start: int, numbers: np.ndarray, good: Bools) -> Ints:
        if not good.any():
            return np.zeros(len(numbers), dtype=np.int64)
        assert self.unit is not None
        times, is_time = microseconds_of(numbers, self.unit)
        name = NAMES[self.unit]
        self.bad.refuse(
            batch,
            start,
            good & ~is_time,
            lambda row: f"{self.name} = {numbers[row]}: is no time in {name} since 1970",
        )
        good &= is_time
        if self._first is not None:
            unlikely = (times < EARLIEST_US + (self.unit == "ns") * YEAR_US) | (times >= LATEST_US)
            self.bad.refuse(
                batch, start, good & unlikely, lambda row: self._unlikely(numbers[row], int(times[row]))
            )
            good &= ~unlikely
        if good.any():
            self._widen(int(times[good].min()), int(times[good].max()))
        return np.where(good, times, 0)

    def _unlikely(self, number: Any, time: int) -> str:
        assert self.unit is not None
        first = 1991 if self.unit == "ns" else 1990
        readings = "".join(f"; it may be {each}" for each in other_readings(int(number), self.name))
        return (
            f"{self.name} = {number}: by its size {NAMES[self.unit]} since 1970, yet {_shown(time)} is not "
            f"in {first} to 2100: give --unix {self.unit} if it is right{readings}; give --order instead of "
            f"--time for numbers that only order rows"
        )

    def _widen(self, first: int, last: int) -> None:
        if self.span is not None:
            first, last = min(first, self.span[0]), max(last, self.span[1])
        self.span = first, last

    def note(self) -> str | None:
        """Which unit was told by the sizes of the numbers, and what that makes of them; None: none was."""
        if self._first is None or self.span is None or self.unit is None:
            return None
        first, last = map(_shown, self.span)
        return (
            f"{self.name}: the numbers are Unix {NAMES[self.unit]}, {first} to {last}; --unix UNIT says "
            f"otherwise"
        )


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
