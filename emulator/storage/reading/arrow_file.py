"""An Arrow file or stream (Feather version 2 is one) of a table: its columns, types, and rows in batches.

Read as a stream, also where a footer has the places of batches: so each batch is read once, and is one whose
size was checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from emulator.errors import DataFileError
from emulator.storage.reading.arrow_messages import Kind, messages_of, stream_of
from emulator.storage.reading.columns import as_text

MOST_BATCH_BYTES = 2**29
"""Most bytes of a batch of rows, and of the dictionaries of a file, when decompressed."""

MOST_COPIED = 2**31
"""Most bytes of dictionaries that are copied: one that grows is copied whenever it does."""

_FEATHER_1 = b"FEA1"


def arrow_schema(path: Path) -> tuple[pa.Schema, int]:
    """The schema of a file, and its number of rows; DataFileError if a batch would be too large in memory."""
    content = _content(path)
    num_rows = _checked_rows(path, content)
    schema = pa.ipc.open_stream(pa.py_buffer(content)).schema
    str(schema.types)  # fails for names within types that are no UTF-8, which messages would show
    return schema, num_rows


def arrow_batches(
    path: Path, types: Mapping[str, pa.DataType], most_rows: int
) -> Iterator[tuple[int, Mapping[str, pa.Array[Any]]]]:
    """The rows of these columns, each batch with the number of its first row."""
    content = _content(path)
    _checked_rows(path, content)  # once more: the file may have changed
    source = pa.py_buffer(content)
    schema = pa.ipc.open_stream(source).schema
    options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in types])
    first = 0
    for batch in pa.ipc.open_stream(source, options=options):
        batch.validate(full=True)
        for start in range(0, len(batch), most_rows):
            piece = batch.slice(start, most_rows)
            columns = {name: as_text(_plain(piece.column(name)), kind) for name, kind in types.items()}
            yield first + start, columns
        first += len(batch)


def _content(path: Path) -> memoryview:
    """The messages of a file, mapped; ValueError if it is none."""
    content = memoryview(pa.memory_map(str(path)).read_buffer())
    if bytes(content[:4]) == _FEATHER_1:
        raise DataFileError(
            path,
            "is Feather version 1; write it again as version 2 (pyarrow.feather.write_feather, "
            "DataFrame.to_feather), or as Parquet",
        )
    return stream_of(content)


def _checked_rows(path: Path, content: memoryview) -> int:
    """The rows of all batches; DataFileError if one of them, or their dictionaries, are too large."""
    num_rows = held = copied = 0
    sizes: dict[int, int] = {}
    for message in messages_of(content):
        if message.num_rows < 0:
            raise ValueError("it is damaged: a batch has less than no rows")
        if message.kind == Kind.DICTIONARY:
            before = sizes.get(message.dictionary, 0)
            size = message.num_bytes + (before if message.is_delta else 0)
            sizes[message.dictionary] = size
            held, copied = held + size - before, copied + size
        elif message.kind == Kind.BATCH:
            num_rows += message.num_rows
        if max(message.num_bytes, held) > MOST_BATCH_BYTES or copied > MOST_COPIED:
            raise DataFileError(
                path,
                f"has a batch, or dictionaries, of more than {MOST_BATCH_BYTES:,} bytes when decompressed; "
                f"write it in smaller batches, or as Parquet",
            )
    return num_rows


def _plain(column: pa.Array[Any]) -> pa.Array[Any]:
    """A column whose dictionary, if it has one, is numbered by 32 bits, as in columns of a Parquet file."""
    if not isinstance(column, pa.DictionaryArray) or column.indices.type == pa.int32():
        return column
    indices = column.indices.cast(pa.int32())
    return pa.DictionaryArray.from_arrays(cast(Any, indices), column.dictionary)
