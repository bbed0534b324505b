"""The tables that a run records beside its log, as Parquet: its visits, and its clients' devices.

Owns their columns, and reads them back. A file may come from somebody else: its size is checked before it is
read, and its columns must be ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from emulator.arrays import Floats, Ints
from emulator.errors import DataFileError
from emulator.numbers import DEVICE_BOUNDS, LARGEST_LOGGED
from emulator.storage.bounded import is_file
from emulator.storage.checkpoints import replacing
from emulator.storage.parquet_columns import damage_in_one_line

OUTCOMES = ("completed", "abandoned", "dropped")
"""The outcomes of visits, as they are written."""

ROWS_AT_ONCE = 2**17
"""Rows of a group of the Parquet file, whose columns are compressed together."""

MOST_VISITS = 2**25
"""Most visits of a run that are read back: thirty times a thousand rounds of a thousand participants."""

MOST_CLIENTS = 2**26
"""Most clients of a run, as in its log."""

MOST_VALUES = 2**28
"""Most values of one column, whose lists may be long: two gibibytes."""

MOST_BYTES = 2**32
"""Largest file."""

MOST_NAME_BYTES = 2**16
"""Longest name of a client, and longest id of a device."""


def _columns(*names: str, kind: pa.DataType) -> list[pa.Field[Any]]:
    return [pa.field(name, kind) for name in names]


PHASES = ("requests_s", "download_s", "compute_s", "upload_s")
"""The phases of a visit in their order: seconds as they were planned at its dispatch."""

VISITS = pa.schema(
    [
        *_columns("round", "visit", "client", "device", "lane", kind=pa.int64()),
        pa.field("models", pa.list_(pa.int64())),
        *_columns("dispatched_s", *PHASES, "end_s", kind=pa.float64()),
        pa.field("outcome", pa.dictionary(pa.int8(), pa.string())),
        pa.field("crashed", pa.bool_()),
        *_columns("download_bytes", "upload_bytes", "payload_bytes", kind=pa.float64()),
    ]
)
"""`visits.parquet`: a row per visit. `device` is a row of the profile's table, or null.

Rows are in the order in which server steps handed them over: by round and, where a round has one dispatch and
one server step, by visit id.
"""

OF_STEPS = _columns("dispatch", "staleness", kind=pa.int64())
"""The columns after those, of all visits of a run whose rounds may have several server steps."""

VISITS_OF_STEPS = pa.schema([*VISITS, *OF_STEPS])
"""`visits.parquet` of such a run."""

CLIENTS_UNNAMED = pa.schema(
    [
        *_columns("client", "device", kind=pa.int64()),
        *_columns(
            *("seconds_per_sample", "download_bytes_per_s", "upload_bytes_per_s", "latency_s"),
            kind=pa.float64(),
        ),
    ]
)
"""`clients.parquet` as it was before clients and devices had names there."""

TEXT = pa.dictionary(pa.int32(), pa.string())

CLIENTS = pa.schema([*CLIENTS_UNNAMED, *_columns("client_name", "device_id", kind=TEXT)])
"""`clients.parquet`: a row per client, by client id. `device_id` is the id in the row `device`, or null."""

CLIENTS_OF_MODEL = pa.schema([*CLIENTS, pa.field("device_factor", pa.float64())])
"""`clients.parquet` with `devices.jitter.model`: the factor of each device's computing on the arm's model."""


DEVICE = ("device", "device_id")
"""The columns that are null without a table of devices."""


def write_clients(
    path: Path,
    devices: Mapping[str, Floats],
    rows: Ints | None,
    ids: Sequence[str] | None = None,
    names: Sequence[str] | Ints | None = None,
) -> None:
    """Write `clients.parquet`, atomically.

    Args:
        path: the file.
        devices: the columns (N,) of the fleet, by name, and `device_factor` if devices have one.
        rows: (N,) the row of the profile's table that each client's device is; None without a table.
        ids: the id in each row of that table.
        names: (N,) the names of the clients, texts or numbers; None: 0, 1, 2, ...
    """
    count = len(devices["seconds_per_sample"])
    columns: dict[str, pa.Array[Any]] = {
        "client": _column(np.arange(count)),
        "device": pa.nulls(count, pa.int64()) if rows is None else _column(rows),
        "client_name": _texts(np.arange(count) if names is None else names),
        "device_id": pa.nulls(count, TEXT)
        if rows is None or ids is None
        else _texts(ids).take(_column(rows)),
        **{name: _column(values) for name, values in devices.items()},
    }
    layout = CLIENTS_OF_MODEL if "device_factor" in devices else CLIENTS
    schema = _plain(layout)  # Parquet makes a dictionary for each group of rows
    typed = [columns[field.name].cast(field.type) for field in schema]
    table = pa.Table.from_arrays(typed, schema=schema)
    with replacing(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        writer.write_table(table, ROWS_AT_ONCE)


def _column(values: Floats | Ints) -> pa.Array[Any]:
    """Numbers of 64 bits as a column over the same memory. `pa.array` would import pandas, half a second."""
    contiguous = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(contiguous.dtype)
    return pa.Array.from_buffers(kind, len(contiguous), [None, pa.py_buffer(contiguous.data)])


def _texts(texts: Sequence[str] | Ints) -> pa.Array[Any]:
    """Texts, or numbers as texts, as a column; see `_column`."""
    if isinstance(texts, np.ndarray):
        return pc.cast(_column(texts), pa.string())
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def read_visits(path: Path) -> pa.Table:
    """The table in a `visits.parquet`: `VISITS` or `VISITS_OF_STEPS`; DataFileError if it is damaged."""
    table = _read(path, (VISITS, VISITS_OF_STEPS), MOST_VISITS)
    outcomes = pc.unique(pc.cast(table.column("outcome"), pa.string())).to_pylist() if len(table) else []
    if not set(outcomes) <= set(OUTCOMES):
        raise DataFileError(path, f"damaged: an outcome must be one of {', '.join(OUTCOMES)}")
    return table


def read_clients(path: Path) -> pa.Table:
    """The table in a `clients.parquet`, in one of its three layouts; DataFileError if it is damaged."""
    table = _read(path, (CLIENTS_UNNAMED, CLIENTS, CLIENTS_OF_MODEL), MOST_CLIENTS)
    clients = table.column("client").to_numpy()
    if not np.array_equal(clients, np.arange(len(clients))):
        raise DataFileError(path, "damaged: its clients are not 0, 1, 2, ...")
    for name in set(table.column_names) & set(CLIENTS.names[-2:]):
        for chunk in table.column(name).chunks:
            lengths = pc.binary_length(cast(Any, chunk).dictionary)
            if len(lengths) and pc.max(lengths).as_py() > MOST_NAME_BYTES:
                raise DataFileError(path, f"damaged: {name} has a text of over {MOST_NAME_BYTES:,} bytes")
    return table


def _read(path: Path, schemas: Sequence[pa.Schema], most_rows: int) -> pa.Table:
    """The table of a file with exactly the columns of a schema, of which only `DEVICE` may have nulls."""
    if not is_file(path):
        raise DataFileError(path, "is not a regular file")
    if path.stat().st_size > MOST_BYTES:
        raise DataFileError(path, f"has more than {MOST_BYTES:,} bytes")
    with damage_in_one_line(path), pq.ParquetFile(path, pre_buffer=False) as file:
        facts = file.metadata
        found = _plain(file.schema_arrow)
        schema = next((schema for schema in schemas if found.equals(_plain(schema))), None)
        if schema is None:
            raise DataFileError(path, f"must have the columns {_names(schemas)}, of their types")
        groups = [facts.row_group(group) for group in range(facts.num_row_groups)]
        values = max(
            sum(group.column(column).num_values for group in groups) for column in range(facts.num_columns)
        )
        if facts.num_rows > most_rows or values > MOST_VALUES:
            raise DataFileError(path, f"has more than {most_rows:,} rows, or {MOST_VALUES:,} values")
    # Texts as dictionaries: one that is stored once may be used a million times.
    texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    with (
        damage_in_one_line(path),
        pq.ParquetFile(path, metadata=facts, read_dictionary=texts, pre_buffer=False) as file,
    ):
        table = file.read(use_threads=False).cast(schema)
        table.validate(full=True)
    for name in schema.names:
        column = table.column(name)
        if column.null_count and name not in DEVICE:
            raise DataFileError(path, f"damaged: column {name!r} has empty cells")
        if pa.types.is_floating(column.type):
            least, most = DEVICE_BOUNDS.get(name, (0, LARGEST_LOGGED))
            numbers = np.asarray(column)
            wrong = np.flatnonzero(~((numbers >= least) & (numbers <= most)))  # NaN is neither
            if len(wrong):
                problem = f"damaged: {name} = {numbers[wrong[0]]:g} must be from {least:g} to {most:g}"
                raise DataFileError(path, problem, row=int(wrong[0]) + 1)
    return table


def _names(schemas: Sequence[pa.Schema]) -> str:
    """The columns of the first schema, and those that the last one has after them."""
    first, last = schemas[0].names, schemas[-1].names
    more = last[len(first) :]
    return ", ".join(first) + (f", with or without {' and '.join(more)}" if more else "")


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with texts where it has dictionaries of texts, without metadata."""
    return pa.schema(
        [
            pa.field(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type)
            for field in schema
        ]
    )
