"""What a line that is not TOML, or a text in the place of a value, was probably meant to be.

Two tables of known misreadings: of values, and of what the parser says about a line. They know no key of a
configuration; those are in `experiments/remedies/misreadings.py`. Imported only once there is an error.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

from emulator.errors import shorten

LINES = Path(__file__).with_suffix(".toml")
"""The file of slips in a line: a pattern, and what to write."""

MOST_SHOWN = 80
"""Letters of a line that an error shows, and of a value that is looked up."""

MOST_LISTED = 10
"""Entries of a range that is written out."""

SECONDS = {
    "ms": 1e-3,
    "s": 1,
    "sec": 1,
    "min": 60,
    "m": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
}

NUMBER = r"([+-]?(?:0|[1-9](?:_?\d)*)(?:\.\d+)?(?:[eE][+-]?\d+)?)"


def _listed(first: str, last: str) -> str | None:
    span = range(int(first), int(last) + 1)
    return str([*span]) if 0 < len(span) <= MOST_LISTED else None


VALUES: tuple[tuple[str, Callable[..., str | None]], ...] = (
    (NUMBER, str),
    ("[Tt]rue|TRUE|[Yy]es|[Oo]n", lambda: "true"),
    ("[Ff]alse|FALSE|[Nn]o|[Oo]ff", lambda: "false"),
    (f"{NUMBER} ?%", lambda number: f"{float(number) / 100:g}"),
    (r"([1-9]\d{0,2}),(\d{3})", "{}{}".format),  # a comma between thousands
    (r"(\d+),(\d+)", "{}.{}".format),
    (r"(\.\d+)", "0{}".format),
    (r"(\d+\.)", "{}0".format),
    (f"{NUMBER} ?({'|'.join(SECONDS)})s?", lambda number, unit: f"{float(number) * SECONDS[unit]:.10g}"),
    (r"(\d{1,9})\.\.\.?(\d{1,9})", _listed),
)
"""Forms of a value in other languages and in prose, with what TOML has in their place."""


def meant(text: str) -> str | None:
    """The value that `text` was probably meant to be, as TOML has it; None if it has no form of `VALUES`.

    >>> [meant(text) for text in ("5%", "6.7h", "True", "0..2", "0,05", "60", "smartphones")]
    ['0.05', '24120', 'true', '[0, 1, 2]', '0.05', '60', None]
    """
    for form, value in VALUES:
        if len(text) <= MOST_SHOWN and (found := re.fullmatch(form, text)) is not None:
            return value(*found.groups())
    return None


def explained(error: tomllib.TOMLDecodeError, text: str) -> str:
    """The error with the line of `text` that it is about, and with what to write there, if that is known."""
    reason, _, place = str(error).rpartition(" (at ")
    number, column = (int(digits) for digits in re.findall(r"\d+", place) or (0, 0))
    line = text.split("\n")[number - 1] if number else ""
    shown = f": {shorten(line.strip(), MOST_SHOWN).partition('  #')[0].rstrip()}" if line else ""
    remedy = _remedy(reason[:MOST_SHOWN], line.strip()[:MOST_SHOWN], _value(line, column))
    return f"{error}{shown}{'; write ' if remedy else ''}{remedy}"


def _value(line: str, column: int) -> str:
    """The value at a column of a line, or around it."""
    before = line[:column][-MOST_SHOWN:-1] if column > MOST_SHOWN else line[: max(column - 1, 0)]
    begins = re.split(r"[=\[,{]", before)[-1]
    return re.split(r"[}\]#]|,\s", begins + line[max(column - 1, 0) :][:MOST_SHOWN])[0].strip()


def _remedy(reason: str, line: str, value: str) -> str:
    for form, remedy in tomllib.loads(LINES.read_text(encoding="utf-8")).items():
        if (found := re.search(form, f"{reason}\n{line}")) is not None:
            return str(remedy).format(*found.groups())
    if (written := meant(value)) is not None:
        return written
    word = re.match(r"[A-Za-z~./][\w~./+-]*", value)
    return f'"{word[0]}", in quotes' if word is not None and reason == "Invalid value" else ""
