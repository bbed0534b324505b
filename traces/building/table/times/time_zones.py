"""Time zones by their IANA names, and local times in them."""

from __future__ import annotations

import difflib
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from emulator.arrays import Ints
from emulator.storage.parquet_columns import EARLIEST_US, LATEST_US
from traces.calendar import MICROSECONDS_PER_DAY

_SECOND_US = 10**6
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

OF_THE_MACHINE = {"localtime", "posixrules", "Factory"}
"""Names that mean another zone on another machine, or none."""


def zone_named(name: str) -> ZoneInfo:
    """The time zone with an IANA name.

    Raises ValueError, with names that are near, if there is none.

    >>> zone_named("europe/berlin")
    Traceback (most recent call last):
    ValueError: 'europe/berlin' is no time zone; it is an IANA name; did you mean Europe/Berlin?
    """
    names = available_timezones() - OF_THE_MACHINE
    if name in names:
        return ZoneInfo(name)
    by_lower = {known.lower(): known for known in sorted(names)}
    lower = name.lower()
    close = [lower] if lower in by_lower else difflib.get_close_matches(lower, by_lower, n=3, cutoff=0.7)
    near = [by_lower[key] for key in close]
    hint = f"did you mean {' or '.join(near)}?" if near else "such as Europe/Berlin"
    raise ValueError(f"{name!r} is no time zone; it is an IANA name; {hint}")


def local_times(instants: Ints, zone: ZoneInfo) -> Ints:
    """(n,) what clocks in `zone` show at `instants` (n,), microseconds since 1970 in UTC, years 1 to 9999.

    NOTE: the offset is looked up once for each day that occurs, and for each time of the few days in which it
    changes: pandas looks it up for every time, in Python. No zone has two changes within three days.
    """
    days, of_time = np.unique(instants // MICROSECONDS_PER_DAY, return_inverse=True)
    first = _offsets(days * MICROSECONDS_PER_DAY, zone)
    last = _offsets((days + 1) * MICROSECONDS_PER_DAY - _SECOND_US, zone)
    local: Ints = instants + first[of_time]
    changing = np.flatnonzero((first != last)[of_time])
    local[changing] = instants[changing] + _offsets(instants[changing], zone)
    return local


def _offsets(instants: Ints, zone: ZoneInfo) -> Ints:
    """(n,) the microseconds by which clocks in `zone` are ahead of UTC at `instants` (n,)."""
    # Local times exist from the second day on, and to the last but one.
    inside = np.clip(instants, EARLIEST_US + MICROSECONDS_PER_DAY, LATEST_US - 2 * MICROSECONDS_PER_DAY)
    offsets = np.empty(len(instants), np.int64)
    for number, instant in enumerate((inside // _SECOND_US).tolist()):
        offset = (_EPOCH + timedelta(seconds=instant)).astimezone(zone).utcoffset()
        assert offset is not None
        offsets[number] = offset // timedelta(microseconds=1)
    return offsets
