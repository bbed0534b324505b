"""Times that are texts: in ISO 8601, or as a format says."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools, Ints

MICROSECONDS_PER_S = 10**6

_WITH_OFFSET = r"^(?P<at>.*:.*[0-9])(?P<offset>Z|[+-][0-9]{2}:?[0-9]{2})$"
_ISO = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?$"
)

_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_DIGITS = {"Y": 4, "y": 2, "m": 2, "d": 2, "j": 3, "H": 2, "I": 2, "M": 2, "S": 2}
"""The directives that stand for a number, and its most digits."""

_OTHERS = {
    "f": "[0-9]{1,9}",
    "b": "[A-Za-z]+",
    "B": "[A-Za-z]+",
    "a": "[A-Za-z]+",
    "A": "[A-Za-z]+",
    "p": "[AaPp][Mm]",
    "z": "(Z|[+-][0-9]{2}:?[0-9]{2})",
    "%": "%",
}
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


class TextTimes(NamedTuple):
    """Texts as times: `microseconds` since 1970, in UTC for those with an offset.

    All are of shape (k,). `is_time` and `has_offset` say which of the texts are a time, and have an offset.
    """

    microseconds: Ints
    is_time: Bools
    has_offset: Bools


def iso_times(texts: Any) -> TextTimes:
    """The times of texts (k,) in ISO 8601: dates, or dates with a time, which may have an offset."""
    is_iso = np.asarray(pc.match_substring_regex(texts, _ISO).fill_null(False))
    parts = pc.extract_regex(texts, pattern=_WITH_OFFSET)
    local = pc.if_else(pc.is_valid(parts), pc.struct_field(parts, "at"), texts)
    local = pc.if_else(pa.array(is_iso), local, pa.scalar("1970-01-01"))
    try:
        times, valid = pc.cast(local, pa.timestamp("us")), is_iso
    except pa.ArrowInvalid:  # such as 2015-02-30, or nanoseconds
        castable = np.array([_is_time(text) for text in local.to_pylist()], dtype=np.bool_)
        times = pc.cast(pc.if_else(pa.array(castable), local, pa.scalar("1970-01-01")), pa.timestamp("us"))
        valid = is_iso & castable
    found = pc.struct_field(parts, "offset").fill_null("")
    encoded = pc.replace_substring(found, ":", "").dictionary_encode()
    names, of_text = encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)
    offsets = np.array([_offset_us(name) for name in names], dtype=np.int64)
    has_offset = np.array([bool(name) for name in names], dtype=np.bool_)
    return TextTimes(np.asarray(pc.cast(times, pa.int64())) - offsets[of_text], valid, has_offset[of_text])


def formatted_times(texts: Any, pattern: str) -> TextTimes:
    """The times of texts (k,) that are written as `pattern` says; a whole text must be.

    NOTE: pandas alone would take "now" and "today" for times, and 2024111 for one of %Y%m%d.
    """
    import pandas as pd

    fits = np.asarray(pc.match_substring_regex(texts, _regex(pattern)).fill_null(False))
    microseconds, is_time = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    rows = np.flatnonzero(fits)
    if len(rows):
        written = np.array(texts.take(pa.array(rows)).to_pylist(), dtype=object)
        found = pd.to_datetime(
            written, format=pattern, exact=True, errors="coerce", utc=has_offset(pattern), cache=False
        )
        known = ~np.asarray(found.isna())
        rows, units = rows[known], np.asarray(found.asi8)[known]
        factor = _NANOSECONDS[found.unit]
        microseconds[rows] = units * (factor // 1000) if factor >= 1000 else units // 1000
        is_time[rows] = True
    return TextTimes(microseconds, is_time, np.full(len(texts), has_offset(pattern)))


def has_offset(pattern: str) -> bool:
    """Whether times that are written as `pattern` says have an offset."""
    return "z" in _DIRECTIVE.findall(pattern)


def refuse_format(pattern: str) -> None:
    """Raise ValueError unless every time that is written as `pattern` says is one time.

    >>> refuse_format("%d.%m.%Y %H:%M")
    >>> refuse_format("%H:%M")
    Traceback (most recent call last):
    ValueError: '%H:%M' has no year: neither %Y nor %y
    """
    names = [name for name in _DIRECTIVE.findall(pattern) if name != "%"]
    unknown = [name for name in names if name not in (*_DIGITS, *_OTHERS)]
    twice = [name for name in names if names.count(name) > 1]
    choices = " ".join(f"%{name}" for name in (*_DIGITS, *_OTHERS))
    month = {"m", "b", "B"} & {*names}
    for is_so, problem in (
        (unknown, f"has %{''.join(unknown[:1])}, which is no directive; these are {choices}"),
        (twice, f"has %{''.join(twice[:1])} twice"),
        (not {"Y", "y"} & {*names}, "has no year: neither %Y nor %y"),
        ({"Y", "y"} <= {*names}, "has two years: %Y and %y"),
        (len(month | ({"j"} & {*names})) > 1, "has several of %m, %b, %B and %j"),
        ("d" in names and not month, "has a day and no month: neither %m nor %b nor %B"),
        (("I" in names) != ("p" in names), "has one of %I and %p without the other"),
        ({"H", "I"} <= {*names}, "has two hours: %H and %I"),
    ):
        if is_so:
            raise ValueError(f"{pattern!r} {problem}")


def _regex(pattern: str) -> str:
    """A regular expression of the texts that are written as `pattern` says.

    Numbers may lack leading zeros unless another number is next to them: where they end must be certain.

    >>> _regex("%d.%m.%Y")
    '^[0-9]{1,2}\\\\.[0-9]{1,2}\\\\.[0-9]{4}$'
    >>> _regex("%Y%m%d")
    '^[0-9]{4}[0-9]{2}[0-9]{2}$'
    """
    tokens = ["", *re.findall(r"%.|[^%]", pattern, re.DOTALL), ""]  # directives, and letters between them

    def written(before: str, token: str, after: str) -> str:
        name, most = token[1:], _DIGITS.get(token[1:])
        if most is None:
            return _OTHERS.get(name) or re.escape(token)
        touches = any(other[1:] in (*_DIGITS, "f") for other in (before, after))
        return f"[0-9]{{{most}}}" if touches or name in "Yy" else f"[0-9]{{1,{most}}}"

    return f"^{''.join(map(written, tokens, tokens[1:], tokens[2:]))}$"


def _is_time(text: str) -> bool:
    try:
        pc.cast(pa.scalar(text), pa.timestamp("us"))
    except pa.ArrowInvalid:
        return False
    return True


def _offset_us(offset: str) -> int:
    """The microseconds of an offset such as +0130; 0 for "" and "Z".

    >>> _offset_us("-0130")
    -5400000000
    """
    if offset in ("", "Z"):
        return 0
    seconds = int(offset[1:3]) * 3600 + int(offset[3:]) * 60
    return (-seconds if offset[0] == "-" else seconds) * MICROSECONDS_PER_S
