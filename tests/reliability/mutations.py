"""Inputs for the fuzzer: a valid file with a few mutations, all drawn from one key.

Mutations know no file format, only numbers and words that are known to break readers. A reader may add a
generator of its own for files that are well formed but have odd contents.
"""

from __future__ import annotations

import copy
import random
import struct
from typing import Any, Protocol

NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    127,
    128,
    255,
    256,
    32767,
    65535,
    65536,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**53,
    2**63 - 1,
)
TEXTS = (
    *(b"", b"0", b"-1", b"1e308", b"1e999", b"-1e999", b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"null"),
    *(b"true", b"1" * 400, b"9" * 5000, b"9223372036854775808", b"-9223372036854775809", b"0x" + b"f" * 300),
    *(b"1e-400", b"0.1", b"1_000", b"2021-01-01", b"9999-12-31T23:59:60Z", b"1.5", b"99999999999999999999"),
    *(
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\r",
        b"\n",
        b"\r\n",
        b",",
        b'"',
        b"'",
        b'"""',
        b"'''",
    ),
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b"[[",
        b"]]",
        b"[" * 3000,
        b'{"a":' * 3000,
        b"a." * 3000,
        b"," * 20000,
        b"=",
        b"#",
    ),
    *(
        b"../../etc/passwd",
        b"/etc/passwd",
        b"~",
        b"~nobody/x",
        b"/dev/zero",
        b"<script>",
        b"${x}",
        b"\\",
        b"\\ud800",
    ),
    *("\u2028".encode(), "\U0001f600".encode(), b"a" * 10000, b"\x1b[2J"),
)


class InputSource(Protocol):
    """What this module needs of a reader: valid files, words of its format, and an optional generator."""

    @property
    def seeds(self) -> tuple[bytes, ...]: ...

    @property
    def words(self) -> tuple[bytes, ...]: ...

    def odd(self, draw: random.Random) -> bytes | None:
        """A well-formed file with odd contents; None if the reader has no generator for that."""
        ...


def make_input(reader: InputSource, key: str) -> bytes:
    """The input of `key`: a valid or an odd file, with up to six mutations."""
    draw = random.Random(key)
    content = reader.odd(draw) if draw.random() < 0.5 else None
    if content is not None and draw.random() < 0.6:
        return content
    content = content or draw.choice(reader.seeds)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        content = draw.choice(CHANGES)(content, draw, reader)
    return content


def _flip(content: bytes, draw: random.Random, reader: InputSource) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _truncate(content: bytes, draw: random.Random, reader: InputSource) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def _remove(content: bytes, draw: random.Random, reader: InputSource) -> bytes:
    first, last = _span(content, draw)
    return content[:first] + content[last:]


def _duplicate(content: bytes, draw: random.Random, reader: InputSource) -> bytes:
    first, last = _span(content, draw)
    return content[:last] + content[first:last] * draw.choice((1, 1, 2, 50)) + content[last:]


def _splice(content: bytes, draw: random.Random, reader: InputSource) -> bytes:
    donor = draw.choice(reader.seeds)
    return content[: draw.randrange(len(content) + 1)] + donor[draw.randrange(len(donor) + 1) :]


def _insert(content: bytes, draw: random.Random, reader: InputSource) -> bytes:
    position = draw.randrange(len(content) + 1)
    return content[:position] + draw.choice(TEXTS + reader.words) + content[position:]


def _overwrite(content: bytes, draw: random.Random, reader: InputSource) -> bytes:
    """Overwrite one to eight bytes by a number, in either byte order: often in the header."""
    number = draw.choice(NUMBERS)
    packed = struct.pack(
        draw.choice("<>") + draw.choice("bBhHiIqQ").lower().replace("b", "q"), number & 0x7FFF
    )
    if draw.random() < 0.7:
        size = draw.choice((1, 2, 4, 8))
        order = draw.choice(("little", "big"))
        packed = (number % 2 ** (8 * size)).to_bytes(size, order)
    position = draw.randrange(min(len(content), draw.choice((32, 10**6))) + 1)
    return content[:position] + packed + content[position + len(packed) :]


def _replace_word(content: bytes, draw: random.Random, reader: InputSource) -> bytes:
    """Replace a sequence of letters and digits."""
    position = draw.randrange(len(content) + 1)
    first = last = position
    while first > 0 and content[first - 1 : first].isalnum():
        first -= 1
    while last < len(content) and content[last : last + 1].isalnum():
        last += 1
    return content[:first] + draw.choice(TEXTS + reader.words) + content[last:]


CHANGES = (_flip, _truncate, _remove, _duplicate, _splice, _insert, _overwrite, _replace_word, _replace_word)


def _span(content: bytes, draw: random.Random) -> tuple[int, int]:
    first = draw.randrange(len(content) + 1)
    return first, min(len(content), first + draw.choice((1, 2, 4, 16, 64, 300)))


ODD_VALUES: tuple[Any, ...] = (
    *(
        0,
        1,
        -1,
        2,
        10**6,
        2**31,
        2**63 - 1,
        -(2**63),
        1.5,
        -0.0,
        1e-320,
        1e308,
        True,
        False,
        "",
        "a",
        "0",
        "x" * 5000,
    ),
    *(
        [],
        [[]],
        {},
        [0],
        [1.5],
        ["a"],
        [True],
        {"kind": "x"},
        {"a": 1},
        [{}],
        "<script>alert(1)</script>",
        "../..",
        "\0",
    ),
    *(
        "~nobody/x",
        "a" * 300 + ".csv",
        "nowhere.csv",
        "data.parquet",
        "flops",
        "R",
        [1, 2, 3],
        ["0", "1"],
        [["0"]],
    ),
)


def odd_document(document: Any, draw: random.Random, values: tuple[Any, ...] = ODD_VALUES) -> Any:
    """`document` (dicts and lists, changed in place) with values replaced, removed, doubled or nested."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        slots: list[tuple[Any, Any]] = []
        _collect(document, slots)
        if not slots:
            return document
        holder, key = draw.choice(slots)
        match draw.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(key, holder[key])
            case 1:
                holder[draw.choice(("kind", "name", "x", "", "é", "a" * 3000))] = holder[key]
            case 2:
                value = holder[key]
                for _ in range(draw.choice((1, 5, 40, 400))):
                    value = [value]
                holder[key] = value
            case _:
                holder[key] = copy.deepcopy(draw.choice(values))
    return document


def _collect(document: Any, slots: list[tuple[Any, Any]]) -> None:
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        slots.append((document, key))
        if isinstance(value, dict | list):
            _collect(value, slots)
