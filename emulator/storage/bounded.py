"""Reading untrusted files within stated bounds, and parsing TOML and JSON safely.

Input files are untrusted: one may be a pipe that never ends, be larger than memory, or be nested too deeply
for the interpreter. Every problem found here is a ValueError (or the system's OSError), from which the reader
of the format makes its one-line error.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

MOST_TOML_BYTES = 2**20
"""Largest configuration or profile. Our longest has 5 thousand bytes, and TOML is parsed in Python."""

MOST_JSON_BYTES = 2**26
"""Largest manifest, timing or summary: two kilobytes for each run of the largest possible experiment."""

MOST_DEPTH = 32
"""Most levels of nested tables or lists; our configurations have five."""

MOST_KEY_PARTS = 16
"""Most parts of a dotted key in TOML, whose parser takes time quadratic in their number."""

# Strings and comments of TOML, in which a dot, a bracket or a line end has no meaning.
_TOML_TEXTS = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"*|'
    r"'''(?:[^']|'(?!''))*+'*|"
    r'"(?:[^"\\\n]|\\.)*+"?|'
    r"'[^'\n]*+'?|"
    r"\#[^\n]*+",
    re.DOTALL,
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BETWEEN_KEYS = re.compile(r"[\n=,\[\]{}]")


def is_file(path: Path) -> bool:
    """Whether `path` is a regular file; False also for a path that cannot exist."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, in a folder without access, or with a null byte
        return False


def has_controls(text: str) -> bool:
    """Whether `text` has control characters that a terminal acts on; tab and newline do not count."""
    return _CONTROLS.search(text) is not None


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file; ValueError if it is not one, or larger than `most_bytes`."""
    if not is_file(path):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)  # not by the size that the system reports
    if len(content) > most_bytes:
        raise ValueError(f"it has more than the {most_bytes:,} bytes that are read of such a file")
    return content


def read_text(path: Path, most_bytes: int) -> str:
    """Like `read_bytes`, decoded as UTF-8; a UnicodeDecodeError is a ValueError too."""
    return read_bytes(path, most_bytes).decode("utf-8")


def read_toml(path: Path, most_bytes: int = MOST_TOML_BYTES) -> dict[str, Any]:
    """The document in a TOML file of at most `most_bytes`; an error shows the line, and its remedy."""
    text = toml_text(path, most_bytes)
    try:
        return toml_document(text)
    except tomllib.TOMLDecodeError as error:
        from emulator.storage.slips import explained  # which nothing else needs

        raise ValueError(explained(error, text)) from error


def toml_text(path: Path, most_bytes: int) -> str:
    """The text of a TOML file for `toml_document`; for the errors see `read_text`."""
    # NOTE: TOML itself refuses a lone carriage return, and the mark that Notepad writes at the beginning.
    return read_text(path, most_bytes).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: Path) -> Any:
    """The document in a JSON file of at most `MOST_JSON_BYTES`."""
    return json_document(read_text(path, MOST_JSON_BYTES))


def toml_document(text: str) -> dict[str, Any]:
    """Parse TOML.

    ValueError if `text` is not TOML, is nested deeper than `MOST_DEPTH`, has a key of more than
    `MOST_KEY_PARTS` parts, or has an integer of more than 64 bits, which TOML does not allow.
    """
    bare = _TOML_TEXTS.sub(lambda match: "" if match[0][0] == "#" else "_", text)
    if max(key.count(".") for key in _BETWEEN_KEYS.split(bare)) >= MOST_KEY_PARTS:
        raise ValueError(f"a key has more than {MOST_KEY_PARTS} parts")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MOST_DEPTH}") from None
    _refuse_extremes(document)
    return document


def json_document(text: str) -> Any:
    """Parse JSON.

    ValueError if `text` is not JSON (NaN and Infinity are not), is nested deeper than `MOST_DEPTH`, or has an
    integer of more than 64 bits or a text that cannot be encoded as UTF-8.
    """
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError(f"nested deeper than {MOST_DEPTH}") from None
    _refuse_extremes(document)
    return document


def _refuse_wide(lowest: int, highest: int) -> None:
    if lowest < -(2**63) or highest >= 2**63:
        raise ValueError("a whole number has more than 64 bits")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_extremes(document: Any) -> None:
    """Raise ValueError for too many levels, integers of more than 64 bits and text not encodable as UTF-8."""
    level = [document]
    for _ in range(MOST_DEPTH):
        inner: list[Any] = []
        for value in level:
            if type(value) is dict:
                inner += value
                inner += value.values()
            elif type(value) is list:
                if set(map(type, value)) == {int}:  # NOTE: at once, since a log has millions of ids
                    _refuse_wide(min(value), max(value))
                else:
                    inner += value
            elif type(value) is int:
                _refuse_wide(value, value)
            elif type(value) is str and not value.isascii():
                value.encode()
        if not inner:
            return
        level = inner
    raise ValueError(f"nested deeper than {MOST_DEPTH}")
