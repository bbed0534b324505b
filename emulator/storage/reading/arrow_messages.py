"""The messages of an Arrow file or stream, as far as it takes to bound what reading them would allocate.

A compressed buffer begins with the number of its bytes when decompressed, which Arrow believes and allocates.
So these numbers are added up here before any batch is given to Arrow. The layout is that of the specification
(https://arrow.apache.org/docs/format/Columnar.html, sections "Encapsulated message format" and "IPC file
format"): messages of a flatbuffer, `Message.fbs`, and a body.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

MAGIC = b"ARROW1"
_AHEAD = len(MAGIC) + 2  # of the messages of a file, with padding
_BEHIND = len(MAGIC) + 4  # of its footer: the footer's size, and the magic again

MOST_METADATA = 2**26
"""Most bytes of the metadata of a message: a schema has some hundreds for each column."""

_CONTINUES = 0xFFFFFFFF
_V4, _V5 = 3, 4
_NOT_COMPRESSED = -1


class Kind(IntEnum):
    """The kinds of messages that there are in a file, numbered as in the format."""

    SCHEMA = 1
    DICTIONARY = 2
    BATCH = 3


class Message(NamedTuple):
    """A message: `num_bytes` are those of its body when decompressed.

    `num_rows` are of a batch, or of a dictionary `dictionary`, to which it adds if `is_delta`.
    """

    kind: Kind
    num_rows: int = 0
    num_bytes: int = 0
    dictionary: int = 0
    is_delta: bool = False


def stream_of(content: memoryview) -> memoryview:
    """The messages in an Arrow file or stream; ValueError if it is neither, or is truncated."""
    if bytes(content[: len(MAGIC)]) != MAGIC:
        return content
    if len(content) < _AHEAD + _BEHIND or bytes(content[-len(MAGIC) :]) != MAGIC:
        raise ValueError("it is truncated: the end of an Arrow file is missing")
    [footer] = struct.unpack_from("<i", content, len(content) - _BEHIND)
    end = len(content) - _BEHIND - footer
    if footer < 0 or end < _AHEAD:
        raise ValueError("its footer is damaged")
    return content[_AHEAD:end]


def messages_of(content: memoryview) -> Iterator[Message]:
    """The messages of a stream, in order; the bodies are not read, but for the sizes of compressed buffers.

    Raises:
        ValueError: it is damaged or truncated, or of a version before Arrow 1.0.
    """
    at = 0
    while at < len(content):
        if len(content) - at < 8:
            raise ValueError("it is truncated")
        mark, size = struct.unpack_from("<Ii", content, at)
        if mark != _CONTINUES:
            raise ValueError("it is no Arrow, or of a version before 0.15")
        if size == 0:
            return
        at += 8
        if not 0 < size <= min(MOST_METADATA, len(content) - at):
            raise ValueError("it is truncated, or its metadata are damaged")
        try:
            message, body_size = _message(content[at : at + size], content[at + size :])
        except (struct.error, IndexError) as error:
            raise ValueError("its metadata are damaged") from error
        yield message
        at += size + body_size


@dataclass(frozen=True)
class _Table:
    """A table of a flatbuffer: its fields by number; one that is not there has its default."""

    content: memoryview
    at: int

    def _field(self, number: int) -> int | None:
        [back] = _unpacked("<i", self.content, self.at)
        size, _ = _unpacked("<HH", self.content, self.at - back)
        slot = 4 + 2 * number
        if slot + 2 > size:
            return None
        [offset] = _unpacked("<H", self.content, self.at - back + slot)
        return self.at + offset if offset else None

    def number(self, number: int, layout: str) -> int:
        """A number of this layout, 0 by default."""
        at = self._field(number)
        return 0 if at is None else int(_unpacked(layout, self.content, at)[0])

    def has(self, number: int) -> bool:
        return self._field(number) is not None

    def table(self, number: int) -> _Table:
        """Raises ValueError if it is not there."""
        at = self._field(number)
        if at is None:
            raise ValueError("its metadata are damaged")
        return _Table(self.content, at + _unpacked("<I", self.content, at)[0])

    def vector(self, number: int, item: int) -> memoryview:
        """The bytes of a vector of items of that many bytes each; none by default."""
        at = self._field(number)
        if at is None:
            return self.content[:0]
        at += _unpacked("<I", self.content, at)[0]
        size = 4 + item * _unpacked("<I", self.content, at)[0]
        if at + size > len(self.content):
            raise ValueError("its metadata are damaged")
        return self.content[at + 4 : at + size]


def _unpacked(layout: str, content: memoryview, at: int) -> tuple[int, ...]:
    if at < 0:  # which Python would count from the end
        raise ValueError("its metadata are damaged")
    return struct.unpack_from(layout, content, at)


def _message(metadata: memoryview, rest: memoryview) -> tuple[Message, int]:
    """A message, whose body `rest` begins with, and the bytes of its body."""
    root = _Table(metadata, *_unpacked("<I", metadata, 0))
    version, kind, body_size = root.number(0, "<h"), root.number(1, "<B"), root.number(3, "<q")
    if not 0 <= body_size <= len(rest):
        raise ValueError("it is truncated")
    if version not in (_V4, _V5) or (version == _V4 and root.has(4)):
        # NOTE: Arrow 0.17 said there, in metadata of its own, that buffers are compressed.
        raise ValueError("it is of a version before Arrow 1.0, or of one that is not known: write it again")
    if kind == Kind.SCHEMA:
        return Message(Kind.SCHEMA), body_size
    body = rest[:body_size]
    header = root.table(2)
    if kind == Kind.BATCH:
        return Message(Kind.BATCH, header.number(0, "<q"), _num_bytes(header, body)), body_size
    if kind == Kind.DICTIONARY:
        values = header.table(1)
        sizes = values.number(0, "<q"), _num_bytes(values, body)
        dictionary, is_delta = header.number(0, "<q"), bool(header.number(2, "<B"))
        return Message(Kind.DICTIONARY, *sizes, dictionary, is_delta), body_size
    raise ValueError(f"it has a message of kind {kind}; a table has batches and dictionaries")


def _num_bytes(batch: _Table, body: memoryview) -> int:
    """The bytes of a record batch when decompressed."""
    if not batch.has(3):
        return len(body)
    places = np.frombuffer(batch.vector(2, 16), dtype="<i8").reshape(-1, 2)
    places = places[places[:, 1] > 0]
    first, size = places[:, 0], places[:, 1]
    if ((first < 0) | (size < 8) | (first > len(body) - 8)).any():
        raise ValueError("its buffers are damaged")
    content = np.frombuffer(body, dtype=np.uint8)
    stated = content[first[:, None] + np.arange(8)].view("<i8")[:, 0] if len(first) else first
    if (stated < _NOT_COMPRESSED).any():
        raise ValueError("its buffers are damaged")
    # Python's integers: hostile sizes add up to more than 64 bits.
    return sum(np.where(stated == _NOT_COMPRESSED, size, stated).tolist())
