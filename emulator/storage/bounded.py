"""Files from outside, read within stated bounds; and TOML and JSON out of them, without what only harms.

Whoever hands a file over may mean ill: it may be no file but a pipe that never ends, larger than memory, or
nested until the interpreter gives up. All that is found here is a ValueError (or the OSError of the system),
which the reader of the format turns into its one line.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

MOST_TOML_BYTES = 2**20
"""Of a configuration or a profile. The longest of ours has 12 thousand, and TOML is parsed in Python."""

MOST_JSON_BYTES = 2**26
"""Of a manifest, a timing or a summary: two kilobytes for each of the most runs that an experiment has."""

MOST_DEPTH = 32
"""Tables or lists inside one another; a configuration of ours has five."""

MOST_KEY_PARTS = 16
"""Names in one dotted key of TOML, whose parser takes the square of their number."""

# What in TOML may hold a dot, a bracket or a line's end that means nothing.
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
    """Whether there is a regular file; False too for a path that cannot be one."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, behind a folder that may not be entered, or with a null byte
        return False


def has_controls(text: str) -> bool:
    """Whether `text` has characters that a terminal obeys instead of showing; tab and newline are none."""
    return _CONTROLS.search(text) is not None


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file of at most `most_bytes`; ValueError for any other."""
    if not is_file(path):
        raise ValueError("it is no regular file")
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)  # whatever the system says of its size
    if len(content) > most_bytes:
        raise ValueError(f"it has more than the {most_bytes:,} bytes that are read of such a file")
    return content


def read_text(path: Path, most_bytes: int) -> str:
    """As `read_bytes`, as UTF-8."""
    return read_bytes(path, most_bytes).decode("utf-8")


def read_toml(path: Path, most_bytes: int = MOST_TOML_BYTES) -> dict[str, Any]:
    """The document in a TOML file of at most `most_bytes`."""
    # NOTE: line ends as Python's text files have them, since TOML itself refuses a lone carriage return.
    return toml_document(read_text(path, most_bytes).replace("\r\n", "\n").replace("\r", "\n"))


def read_json(path: Path) -> Any:
    """The document in a JSON file of at most `MOST_JSON_BYTES`."""
    return json_document(read_text(path, MOST_JSON_BYTES))


def toml_document(text: str) -> dict[str, Any]:
    """What `text` says in TOML; ValueError for what is no TOML, nested deeper than `MOST_DEPTH` or a whole
    number of more than 64 bits, which TOML does not have."""
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
    """What `text` says in JSON; ValueError for what is no JSON (NaN and Infinity are none), and as above."""
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
    raise ValueError(f"{name} is no number")


def _refuse_extremes(document: Any) -> None:
    """ValueError for depth, for whole numbers beyond 64 bits and for text that cannot be written as UTF-8."""
    level = [document]
    for _ in range(MOST_DEPTH):
        inner: list[Any] = []
        for value in level:
            if type(value) is dict:
                inner += value
                inner += value.values()
            elif type(value) is list:
                if set(map(type, value)) == {int}:  # NOTE: ids, of which a log has millions
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
