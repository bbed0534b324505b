"""A Parquet file of a table: its columns, their types, and its rows in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from emulator.errors import DataFileError
from emulator.storage.reading.columns import Batch, Types, as_text, is_bytes

MOST_HELD = 2**26
"""Bytes of images or lists after which a batch of them ends."""

LISTS = 4
"""Rows of lists that are read at once, however short they should be: a row may have any number of values."""


def parquet_schema(path: Path) -> tuple[pa.Schema, int]:
    """The schema of a file, and its number of rows."""
    # NOTE: the metadata of a column in a row group is not read: if it is damaged, Arrow ends the process.
    file = pq.ParquetFile(path)
    return file.schema_arrow, file.metadata.num_rows


def parquet_batches(path: Path, types: Types, most_rows: int, skip: int) -> Iterator[Batch]:
    """The rows of these columns; of row groups within the first `skip` rows their number alone."""
    texts = [name for name, kind in types.items() if pa.types.is_dictionary(kind)]
    # NOTE: unmapped, all columns of a row group would be in memory at once, whatever `buffer_size` is.
    file = pq.ParquetFile(path, memory_map=True, read_dictionary=texts)
    first = 0
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if 0 < size <= skip - first:
            yield Batch(path, first, {}, size)
            first += size
            continue
        for columns in _group_batches(file, group, types, most_rows):
            num_rows = len(next(iter(columns.values())))
            yield Batch(path, first, columns, num_rows)
            first += num_rows
    if first != file.metadata.num_rows:
        raise DataFileError(path, f"damaged: it states {file.metadata.num_rows} rows and has {first}")


def _group_batches(
    file: pq.ParquetFile, group: int, types: Types, most_rows: int
) -> Iterator[dict[str, pa.Array[Any]]]:
    """The columns of a row group, in batches.

    Images are read one by one, and lists `LISTS` at a time, as a few bytes may unpack to hundreds of
    megabytes each; they make batches of at most `MOST_HELD` bytes and what was read last.
    """
    paths = [f"{name}.bytes" if pa.types.is_struct(kind) else name for name, kind in types.items()]
    images = any(pa.types.is_struct(kind) or is_bytes(kind) for kind in types.values())
    lists = any(pa.types.is_nested(kind) and not pa.types.is_struct(kind) for kind in types.values())
    at_once = 1 if images else min(LISTS, most_rows) if lists else most_rows
    held: list[dict[str, pa.Array[Any]]] = []
    num_rows = num_bytes = 0
    for batch in file.iter_batches(at_once, [group], columns=paths):
        batch.validate(full=True)
        held.append({name: as_text(batch.column(name), kind) for name, kind in types.items()})
        num_rows, num_bytes = num_rows + len(batch), num_bytes + batch.nbytes
        if at_once == most_rows or num_rows >= most_rows or num_bytes >= MOST_HELD:
            yield _joined(held)
            held, num_rows, num_bytes = [], 0, 0
    if held:
        yield _joined(held)


def _joined(pieces: Sequence[dict[str, pa.Array[Any]]]) -> dict[str, pa.Array[Any]]:
    if len(pieces) == 1:
        return pieces[0]
    return {name: pa.concat_arrays([piece[name] for piece in pieces]) for name in pieces[0]}
