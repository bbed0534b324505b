"""Times as data sets write them, in microseconds since 1970."""

from __future__ import annotations

import re
from calendar import month_abbr, month_name
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Ints
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import EARLIEST_US, LATEST_US, OUT_OF_RANGE
from traces.building.text_columns import TextColumns

_FLAGS = re.IGNORECASE | re.DOTALL

_DIRECTIVES = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "0[1-9]|1[0-2]",
    "d": "0[1-9]|[12][0-9]|3[01]",
    "j": "00[1-9]|0[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6]",
    "H": "[01][0-9]|2[0-3]",
    "I": "0[1-9]|1[0-2]",
    "M": "[0-5][0-9]",
    "S": "[0-5][0-9]",
    "f": "[0-9]{1,6}(?![0-9])",
    "b": "|".join(name for name in month_abbr if name),
    "B": "|".join(name for name in month_name if name),
    "p": "AM|PM",
}
"""The directives that may stand beside a `*`, and what is written for them: of one length only, except `%f`,
which ends with the last digit, and `%B`."""


def parse_times(texts: Sequence[str], error: Callable[[int, str], Exception]) -> Ints:
    """(n,) the times in `texts`, ISO 8601: all with a time zone, or all without.

    Args:
        texts: (n,) the times as they are written.
        error: what to raise about a text, by its number and what is wrong with it.

    Returns:
        Microseconds since 1970-01-01, in UTC if they have time zones.

    Raises:
        Exception: a text is none or is outside the years 1 to 9999, or some have a time zone and others have
            none; what `error` makes.

    >>> parse_times(["1970-01-01T00:00:01Z", "1970-01-01T01:00:00+01:00"], IndexError).tolist()
    [1000000, 0]
    >>> parse_times(["1970-01-02"], IndexError).tolist()
    [86400000000]
    """
    times = _parsed(texts, error)
    outside = (times < EARLIEST_US) | (times >= LATEST_US)
    if outside.any():
        number = int(outside.argmax())
        raise error(number, f"{texts[number]!r} {OUT_OF_RANGE}")
    return times


def times_of(table: TextColumns, column: str) -> Ints:
    """(rows,) the times in a column of a table, as `parse_times` reads them; DataFileError if one is none."""
    return parse_times(
        table.texts(column), lambda row, problem: DataFileError(table.path, f"{column}: {problem}", row + 1)
    )


def _parsed(texts: Sequence[str], error: Callable[[int, str], Exception]) -> Ints:
    """The same for texts of any year."""
    given = pa.array(texts, pa.string())
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        with suppress(pa.ArrowInvalid):
            return np.asarray(pc.cast(pc.cast(given, kind), pa.int64())).astype(np.int64)
    # What Arrow does not read, such as times without seconds, or with different offsets.
    values = np.empty(len(texts), np.int64)
    zoned: list[bool] = []
    for number, text in enumerate(texts):
        try:
            time = datetime.fromisoformat(text)
            values[number] = _microseconds(time)
        except (ValueError, OverflowError) as cause:
            problem = f"{text!r} is not a time; it must be written as 2015-01-31T12:00:00Z (ISO 8601)"
            raise error(number, problem) from cause
        zoned.append(time.tzinfo is not None)
        if zoned[-1] != zoned[0]:
            what = f"{text!r} has {'a' if zoned[-1] else 'no'} time zone"
            raise error(number, f"{what}, unlike those before it; give all of them one, or none")
    return values


def parse_pattern(text: str, pattern: str) -> int:
    """Microseconds since 1970 of the time in `text`, written as `pattern` says (as `strptime` reads it).

    A `*` stands for any text, also an empty one; numbers then have all their digits.

    Raises ValueError if it is not, if it is in two places, or if the pattern is none.

    >>> parse_pattern("cam1_19700101_000002", "cam1_%Y%m%d_%H%M%S")
    2000000
    >>> parse_pattern("cam1_19700101_000002_b", "*_%Y%m%d_%H%M%S_*")
    2000000
    """
    if "*" in pattern:
        text, pattern = _without_stars(text, pattern)
    try:
        return _microseconds(datetime.strptime(text, pattern))
    except (re.error, OverflowError) as error:  # a directive that occurs twice; a time zone at the year 1
        raise ValueError(f"{error}") from error


def refuse_pattern(pattern: str) -> None:
    """Raise ValueError if `pattern` has a `*`, and a directive that does not go with it."""
    if "*" in pattern:
        _pieces(pattern)


def _without_stars(text: str, pattern: str) -> tuple[str, str]:
    """What the directives of a pattern with `*` stand for in `text`, and these, both separated by blanks.

    Each piece of the pattern between two `*` is looked for from the left, and then from the right. If both
    find the directives in the same places, there is no other reading. NOTE: one without directives is not
    looked for from the right: time would grow with a power of the number of `*`.
    """
    pieces = _pieces(pattern)
    found = _from_left(pieces).fullmatch(text)
    if found is None:
        raise ValueError("no part of it is so written")
    names = list(found.groupdict())
    spans, from_right = [found.span(name) for name in names], []
    for number, piece in ((number, piece) for number, piece in enumerate(pieces) if piece.groupindex):
        rest, places = _from_left(pieces[number:]), range(len(text), -1, -1) if number else [0]
        last = next(match for at in places if (match := rest.fullmatch(text, at)) is not None)
        from_right += [last.span(name) for name in piece.groupindex]
    values, other = (" ".join(text[start:end] for start, end in where) for where in (spans, from_right))
    if spans != from_right:
        raise ValueError(
            f"two parts of it are so written, {values!r} and {other!r}: the pattern must say more of the name"
        )
    return values, " ".join(f"%{name}" for name in names)


@lru_cache(maxsize=16)
def _pieces(pattern: str) -> tuple[re.Pattern[str], ...]:
    """The regular expressions of what is between the `*` of a pattern, with a group for each directive."""
    names = [name for name in re.findall("%(.?)", pattern, re.DOTALL) if name != "%"]
    unknown = next((name for name in names if name not in _DIRECTIVES), None)
    if unknown is not None:
        choices = " ".join(f"%{name}" for name in (*_DIRECTIVES, "%"))
        raise ValueError(f"%{unknown} does not go with *; these do: {choices}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"%{twice} occurs twice")
    if not names:
        raise ValueError("has no directive, such as %Y")
    expressions = {"%%": "%"} | {f"%{name}": f"(?P<{name}>{_DIRECTIVES[name]})" for name in names}

    def compiled(piece: str) -> re.Pattern[str]:
        parts = re.split(r"(%.)", piece, flags=re.DOTALL)
        return re.compile("".join(expressions.get(part) or re.escape(part) for part in parts), _FLAGS)

    return tuple(map(compiled, pattern.split("*")))


@lru_cache(maxsize=256)
def _from_left(pieces: tuple[re.Pattern[str], ...]) -> re.Pattern[str]:
    """The regular expression that finds each piece as far to the left as those before it allow.

    What a `*` stands for and the piece behind it are one atomic group: the first place of a piece is right if
    any is.
    """
    first, *others = (piece.pattern for piece in pieces)
    if others:
        others[-1] += r"\Z"
    return re.compile(first + "".join(f"(?>.*?{piece})" for piece in others), _FLAGS)


def _microseconds(time: datetime) -> int:
    instant = time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    return int(np.datetime64(instant, "us").astype(np.int64))
