"""The log of visits: appended to while a run is played, and turned into `visits.parquet` at its end.

A Parquet file cannot be appended to, so the rows of each server step are written as an Arrow record batch to
a stream, which is truncated when the run resumes, as its log is. Both files have virtual quantities only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from io import IOBase
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from emulator.arrays import Ints
from emulator.messages import Outcome, VisitRows
from emulator.storage.appended_file import AppendedFile
from emulator.storage.checkpoints import replacing
from emulator.storage.own_files import open_file
from emulator.storage.recorded_tables import OUTCOMES, ROWS_AT_ONCE, VISITS, VISITS_OF_STEPS
from emulator.storage.state_tree import Tree

CODES = np.full(len(Outcome), -1)
"""Index into `OUTCOMES` of each `Outcome`."""
CODES[[Outcome.COMPLETED, Outcome.ABANDONED, Outcome.DROPPED]] = range(len(OUTCOMES))


BATCHES_AT_ONCE = 2**10
"""Batches of the stream that are combined into one as it is read: a server step may hand over one visit."""


def _stream(table: pa.Schema) -> pa.Schema:
    """The columns of the stream that becomes this table.

    Outcomes are there by their code; devices, which do not change in a run, are not.
    """
    return pa.schema(
        [
            field.with_type(pa.int8()) if field.name == "outcome" else field
            for field in table
            if field.name != "device"
        ]
    )


STREAM, STREAM_OF_STEPS = _stream(VISITS), _stream(VISITS_OF_STEPS)
"""The columns of the stream, which begins with them: the first visits say which."""


class VisitLog:
    """Appends the visits of each server step to the stream at `path`, which is empty before the first ones.

    Args:
        path: the file, which must not exist unless `resume` is given.
        resume: a state of this log; the file is truncated to its length at that time.

    Raises:
        As `AppendedFile`.
    """

    def __init__(self, path: Path, resume: Mapping[str, Tree] | None = None) -> None:
        self._file = AppendedFile(path, b"", resume)
        self._schema = _schema_of(path)  # None before the first visits

    def state(self) -> dict[str, Tree]:
        """Length and hash of the stream so far, which is on the disk when this returns."""
        return self._file.state()

    def append(self, rows: VisitRows) -> None:
        """Append the visits of a server step.

        ValueError, with nothing written, if only some visits of the run have a dispatch and a staleness.
        """
        schema = STREAM if rows.dispatch is None and rows.staleness is None else STREAM_OF_STEPS
        if (rows.dispatch is None) != (rows.staleness is None) or self._schema not in (None, schema):
            raise ValueError("all visits of a run have a dispatch and a staleness, or none has")
        count = len(rows.visit)
        offsets = np.concatenate(([0], np.cumsum(rows.num_models)))
        columns = {
            **vars(rows),
            "round": np.full(count, rows.round),
            "models": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(rows.models)),
            "outcome": CODES[rows.outcome],
        }
        arrays = [
            column if isinstance(column, pa.Array) else pa.array(column, field.type)
            for field in schema
            for column in [columns[field.name]]
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema).serialize().to_pybytes()
        if self._schema is None:
            self._schema, batch = schema, schema.serialize().to_pybytes() + batch
        self._file.write(batch)

    def close(self) -> None:
        """Close the stream; all of it is on the disk when this returns."""
        self._file.close()

    def __enter__(self) -> VisitLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write_visits(stream: Path, path: Path, devices: Ints | None) -> None:
    """Write the visits in the file `stream` to `path` as Parquet, atomically.

    Args:
        stream: the file of a `VisitLog`.
        path: the Parquet file.
        devices: (N,) the row of the profile's table that each client's device is; None without a table.
    """
    schema = _schema_of(stream)
    visits = VISITS_OF_STEPS if schema == STREAM_OF_STEPS else VISITS
    with (
        open_file(stream) as source,
        replacing(path) as target,
        pq.ParquetWriter(target, visits, compression="zstd") as writer,
    ):
        if schema is None:
            return
        with pa.ipc.open_stream(cast(IOBase, source)) as batches:
            for table in _in_groups(batches):
                writer.write_table(_with_devices(table, devices, visits), ROWS_AT_ONCE)


def _schema_of(stream: Path) -> pa.Schema | None:
    """The columns that a stream begins with; None if it is empty."""
    with open_file(stream) as source:
        if not os.fstat(source.fileno()).st_size:
            return None
        with pa.ipc.open_stream(cast(IOBase, source)) as batches:
            return batches.schema


def _in_groups(batches: pa.RecordBatchStreamReader) -> Iterator[pa.Table]:
    """The rows of all batches in tables of `ROWS_AT_ONCE` rows, except the last one."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += len(batch)
        if rows >= ROWS_AT_ONCE:
            table = pa.Table.from_batches(waiting)
            full = rows - rows % ROWS_AT_ONCE
            yield table.slice(0, full)
            waiting = table.slice(full).to_batches()
            rows -= full
        elif len(waiting) >= BATCHES_AT_ONCE:  # a small batch takes far more memory than its rows
            waiting = pa.Table.from_batches(waiting).combine_chunks().to_batches()
    if waiting:
        yield pa.Table.from_batches(waiting)


def _with_devices(table: pa.Table, devices: Ints | None, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of this schema of `visits.parquet`."""
    clients = table.column("client").to_numpy()
    rows = pa.nulls(len(table), pa.int64()) if devices is None else pa.array(devices[clients], pa.int64())
    codes = pa.concat_arrays(table.column("outcome").chunks)
    columns: dict[str, Any] = {
        **{name: table.column(name) for name in table.column_names},
        "device": rows,
        "outcome": pa.DictionaryArray.from_arrays(codes, pa.array(OUTCOMES)),
    }
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
