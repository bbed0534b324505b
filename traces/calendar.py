"""Windows of time: intervals of some days, or months, quarters and years of the calendar."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, get_args

import numpy as np

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Number

CalendarWidth = Literal["month", "quarter", "year"]
CALENDAR: tuple[CalendarWidth, ...] = get_args(CalendarWidth)
MONTHS = {"month": 1, "quarter": 3, "year": 12}

MOST_DAYS = 1_000_000
"""Widest window."""

StepWidth = Annotated[float, Number(gt=0, le=MOST_DAYS)] | CalendarWidth

MICROSECONDS_PER_DAY = 86_400 * 10**6

MOST_WINDOWS = 2**24


def periods(days: Ints, unit: CalendarWidth) -> Ints:
    """(n,) the number of the month, quarter or year that each of `days` (n,), since 1970-01-01, falls into.

    >>> periods(np.array([-1, 0, 31, 365]), "quarter")
    array([-1,  0,  0,  4])
    """
    months: Ints = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months // MONTHS[unit]


def windows_of(at: Ints, width: float | CalendarWidth, origin: int, key: str) -> Ints:
    """The window that each time falls into, counted from the one of `origin`.

    Args:
        at: (n,) microseconds since 1970-01-01.
        width: days of a window, counted from `origin`; or a unit of the calendar.
        origin: microseconds since 1970-01-01; times before it are in windows below 0.
        key: the key that sets the width, for the message.

    Returns:
        (n,) numbers of windows.

    Raises:
        ConfigurationError: there would be more than `MOST_WINDOWS` windows.

    >>> days = np.array(["2015-01-31", "2015-02-01", "2016-01-01"], dtype="datetime64[us]").astype(np.int64)
    >>> windows_of(days, "month", int(days[0]), "step_width"), windows_of(days, 7, int(days[0]), "step_width")
    (array([ 0,  1, 12]), array([ 0,  0, 47]))
    """
    window = window_numbers(at, width, origin)
    if int(window.max(initial=0)) - int(window.min(initial=0)) >= MOST_WINDOWS:
        raise ConfigurationError(
            f"{key} = {width!r}: the times span more than {MOST_WINDOWS} windows; widen it"
        )
    return window


def window_numbers(at: Ints, width: float | CalendarWidth, origin: int) -> Ints:
    """`windows_of`, however many there are."""
    window: Ints
    if isinstance(width, str):
        first = periods(np.array([origin // MICROSECONDS_PER_DAY]), width)
        window = periods(at // MICROSECONDS_PER_DAY, width) - first
    else:
        window = (at - origin) // max(1, round(width * MICROSECONDS_PER_DAY))
    return window


def microseconds(day: date) -> int:
    """The microseconds from 1970-01-01 to the beginning of `day`.

    >>> microseconds(date(1970, 1, 2))
    86400000000
    """
    return (day - date(1970, 1, 1)).days * MICROSECONDS_PER_DAY
