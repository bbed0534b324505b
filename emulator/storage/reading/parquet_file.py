"""A Parquet file of a table: its columns, their types, and its rows in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from emulator.errors import DataFileError
from emulator.storage.parquet_columns import damage_in_one_line
from emulator.storage.reading.columns import as_text, refuse_columns, text_bytes
from emulator.storage.reading.tally import Tally

MOST_HELD = 2**26
"""Bytes of images or lists after which a batch of them ends."""

LISTS = 4
"""Rows of lists that are read at once, however short they should be: a row may have any number of values."""


def parquet_schema(path: Path) -> pa.Schema:
    """The schema of a file with at least one row."""
    with damage_in_one_line(path):
        # NOTE: the metadata of a column in a row group is not read: if it is damaged, Arrow ends the process.
        file = pq.ParquetFile(path)
        schema, num_rows = file.schema_arrow, file.metadata.num_rows
        refuse_columns(path, schema.names)
    if num_rows == 0:
        raise DataFileError(path, "has no rows")
    return schema


def parquet_batches(
    path: Path, types: Mapping[str, pa.DataType], most_rows: int, skip: int, tally: Tally
) -> Iterator[tuple[int, Mapping[str, pa.Array[Any]]]]:
    texts = [name for name, kind in types.items() if pa.types.is_dictionary(kind)]
    with damage_in_one_line(path):
        # NOTE: unmapped, all columns of a row group would be in memory at once, whatever `buffer_size` is.
        file = pq.ParquetFile(path, memory_map=True, read_dictionary=texts)
        first = 0
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if first + size <= skip:
                yield from _nothing(first, size, types)
                first += size
                continue
            for columns in _group_batches(file, group, types, most_rows):
                tally.add_text(path, sum(map(text_bytes, columns.values())))
                yield first, columns
                first += len(next(iter(columns.values())))
        if first != file.metadata.num_rows:
            raise DataFileError(path, f"damaged: it states {file.metadata.num_rows} rows and has {first}")


def _group_batches(
    file: pq.ParquetFile, group: int, types: Mapping[str, pa.DataType], most_rows: int
) -> Iterator[dict[str, pa.Array[Any]]]:
    """The columns of a row group, in batches.

    Images are read one by one, and lists `LISTS` at a time, as a few bytes may unpack to hundreds of
    megabytes each; they make batches of at most `MOST_HELD` bytes and what was read last.
    """
    paths = [f"{name}.bytes" if pa.types.is_struct(kind) else name for name, kind in types.items()]
    images = any(pa.types.is_struct(kind) or _is_bytes(kind) for kind in types.values())
    lists = any(pa.types.is_nested(kind) and not pa.types.is_struct(kind) for kind in types.values())
    held: list[dict[str, pa.Array[Any]]] = []
    num_rows = num_bytes = 0
    at_once = 1 if images else min(LISTS, most_rows) if lists else most_rows
    for batch in file.iter_batches(at_once, [group], columns=paths):
        batch.validate(full=True)
        columns = {name: as_text(batch.column(name), kind) for name, kind in types.items()}
        if not images and not lists:
            yield columns
            continue
        held.append(columns)
        num_rows += len(batch)
        num_bytes += batch.nbytes
        if num_rows >= most_rows or num_bytes >= MOST_HELD:
            yield {name: pa.concat_arrays([piece[name] for piece in held]) for name in types}
            held, num_rows, num_bytes = [], 0, 0
    if held:
        yield {name: pa.concat_arrays([piece[name] for piece in held]) for name in types}


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _nothing(
    first: int, size: int, types: Mapping[str, pa.DataType]
) -> Iterator[tuple[int, Mapping[str, pa.Array[Any]]]]:
    """Rows that are skipped, for their number: one column without values."""
    if size:
        yield first, {next(iter(types)): pa.nulls(size)}
