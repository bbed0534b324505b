"""Times as data sets write them, in microseconds since 1970."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Ints
from emulator.storage.parquet_columns import EARLIEST_US, LATEST_US, OUT_OF_RANGE

FORMAT = "2015-01-31T12:00:00Z"
_MICROSECOND = np.timedelta64(1, "us")


class TimeError(ValueError):
    """A text that is no time; `number` says which of the texts, from 0 on."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(problem)
        self.number = number


def parse_times(texts: Sequence[str]) -> Ints:
    """(n,) the times in `texts`, ISO 8601: all with a time zone, or all without.

    Returns:
        Microseconds since 1970-01-01, in UTC if they have time zones.

    Raises:
        TimeError: a text is none or is outside the years 1 to 9999, or some have a time zone and others have
            none.

    >>> parse_times(["1970-01-01T00:00:01Z", "1970-01-01T01:00:00+01:00"]).tolist()
    [1000000, 0]
    >>> parse_times(["1970-01-02"]).tolist()
    [86400000000]
    """
    times = _parsed(texts)
    outside = (times < EARLIEST_US) | (times >= LATEST_US)
    if outside.any():
        number = int(outside.argmax())
        raise TimeError(number, f"{texts[number]!r} {OUT_OF_RANGE}")
    return times


def _parsed(texts: Sequence[str]) -> Ints:
    given = pa.array(texts, pa.string())
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return np.asarray(pc.cast(pc.cast(given, kind), pa.int64())).astype(np.int64)
        except pa.ArrowInvalid:
            continue
    return _one_by_one(texts)


def parse_pattern(text: str, pattern: str) -> int:
    """Microseconds since 1970 of the time in `text`, written as `pattern` says (as `strptime` reads it).

    Raises ValueError if it is not, or if the pattern is none.

    >>> parse_pattern("cam1_19700101_000002", "cam1_%Y%m%d_%H%M%S")
    2000000
    """
    try:
        return _microseconds(datetime.strptime(text, pattern))
    except (re.error, OverflowError) as error:  # a directive that occurs twice; a time zone at the year 1
        raise ValueError(f"{error}") from error


def _one_by_one(texts: Sequence[str]) -> Ints:
    """What is left for the texts that Arrow does not read, such as those without seconds or with offsets."""
    values = np.empty(len(texts), np.int64)
    zoned: bool | None = None
    for number, text in enumerate(texts):
        try:
            time = datetime.fromisoformat(text)
            values[number] = _microseconds(time)
        except (ValueError, OverflowError) as error:
            raise TimeError(
                number, f"{text!r} is not a time; it must be written as {FORMAT} (ISO 8601)"
            ) from error
        has_zone = time.tzinfo is not None
        if zoned not in (None, has_zone):
            raise TimeError(
                number,
                f"{text!r} has {'a' if has_zone else 'no'} time zone, unlike those before it; give all of "
                f"them one, or none",
            )
        zoned = has_zone
    return values


def _microseconds(time: datetime) -> int:
    instant = time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    return int((np.datetime64(instant, "us") - np.datetime64(0, "us")) / _MICROSECOND)
