"""An Arrow file or stream (Feather version 2 is one) of a table: its columns, types, and rows in batches.

Read as a stream, also where a footer has the places of batches: so each batch is read once, and is one whose
size was checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from emulator.errors import DataFileError
from emulator.storage.reading.arrow_messages import Kind, messages_of, stream_of
from emulator.storage.reading.columns import Batch, Types, as_text

MOST_BATCH_BYTES = 2**29
"""Most bytes of a batch of rows, and of the dictionaries of a file, when decompressed."""

MOST_COPIED = 2**31
"""Most bytes of dictionaries that are copied: one that grows is copied whenever it does."""

_FEATHER_1 = b"FEA1"


def arrow_schema(path: Path) -> tuple[pa.Schema, int]:
    """The schema of a file, and its number of rows; DataFileError if a batch would be too large in memory."""
    content, num_rows = _checked(path)
    schema = pa.ipc.open_stream(content).schema
    str(schema.types)  # fails for names within types that are no UTF-8, which messages would show
    return schema, num_rows


def arrow_batches(path: Path, types: Types, most_rows: int) -> Iterator[Batch]:
    """The rows of these columns."""
    content, _ = _checked(path)  # once more: the file may have changed
    schema = pa.ipc.open_stream(content).schema
    options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in types])
    first = 0
    for whole in pa.ipc.open_stream(content, options=options):
        whole.validate(full=True)
        for start in range(0, len(whole), most_rows):
            piece = whole.slice(start, most_rows)
            columns = {name: as_text(piece.column(name), kind) for name, kind in types.items()}
            yield Batch(path, first + start, columns, len(piece))
        first += len(whole)


def _checked(path: Path) -> tuple[pa.Buffer, int]:
    """The messages of a file, mapped, and its number of rows.

    Raises:
        DataFileError: a batch, or the dictionaries, are too large; or it is Feather version 1.
        ValueError: it is damaged, or no Arrow.
    """
    content = memoryview(pa.memory_map(str(path)).read_buffer())
    if bytes(content[:4]) == _FEATHER_1:
        raise DataFileError(
            path,
            "is Feather version 1; write it again as version 2 (pyarrow.feather.write_feather, "
            "DataFrame.to_feather), or as Parquet",
        )
    content = stream_of(content)
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
    return pa.py_buffer(content), num_rows
