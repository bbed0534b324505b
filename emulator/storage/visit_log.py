"""The log of visits: appended to while a run is played, and turned into `visits.parquet` at its end.

A Parquet file cannot be appended to, so rows are written as Arrow record batches to a stream, which is
truncated when the run resumes, as its log is. A server step may hand over one visit, for which a batch is
large: rows are gathered over steps. Those that wait when a checkpoint is stored are in it, so that no file
depends on where a run was stopped. Both files have virtual quantities only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
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


ROWS_OF_BATCH = 2**8
"""Rows that a batch of the stream has at least, but for the last one: a batch alone takes a kilobyte."""

BATCHES_AT_ONCE = 2**10
"""Batches of the stream that are combined into one as it is read."""


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
    """Appends the visits of server steps to the stream at `path`, which is empty before the first ones.

    Args:
        path: the file, which must not exist unless `resume` is given.
        resume: a state of this log; the file is truncated to its length at that time.

    Raises:
        As `AppendedFile`; LookupError, TypeError or ValueError if no log can have had that state.
    """

    def __init__(self, path: Path, resume: Mapping[str, Tree] | None = None) -> None:
        self._waiting: list[Mapping[str, Any]] = [] if resume is None else [*resume["waiting"]]
        for columns in self._waiting:
            _batch(columns).validate(full=True)
        self._file = AppendedFile(path, b"", resume)
        self._written = _schema_of(path)  # None before the first batch

    def state(self) -> dict[str, Tree]:
        """Length and hash of the stream so far, which is on the disk when this returns; and what waits."""
        return {**self._file.state(), "waiting": _joined(self._waiting)}

    def append(self, rows: VisitRows) -> None:
        """Append the visits of a server step; they wait until they fill a batch, or until the log is closed.

        ValueError, with nothing appended, if only some visits of the run have a dispatch and a staleness.
        """
        columns = {name: column for name, column in vars(rows).items() if column is not None}
        columns |= {"round": np.full(len(rows.visit), rows.round), "outcome": CODES[rows.outcome]}
        earlier = _schema(self._waiting[0]) if self._waiting else self._written
        if (rows.dispatch is None) != (rows.staleness is None) or earlier not in (None, _schema(columns)):
            raise ValueError("all visits of a run have a dispatch and a staleness, or none has")
        self._waiting.append(columns)
        if sum(len(columns["visit"]) for columns in self._waiting) >= ROWS_OF_BATCH:
            self._write()

    def close(self) -> None:
        """Close the stream; all of it is on the disk when this returns."""
        try:
            self._write()
        finally:
            self._file.close()

    def _write(self) -> None:
        """Write what waits as one batch; other processes see it when this returns."""
        waiting, self._waiting = _joined(self._waiting), []
        for columns in waiting:
            batch = _batch(columns)
            head = b"" if self._written else batch.schema.serialize().to_pybytes()
            self._written = batch.schema
            self._file.write(head + batch.serialize().to_pybytes())

    def __enter__(self) -> VisitLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _joined(parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One part with the columns of all `parts`; none if there are none."""
    return [{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}] if parts else []


def _schema(columns: Mapping[str, Any]) -> pa.Schema:
    """The columns of the stream of visits that have `columns`."""
    return STREAM_OF_STEPS if "dispatch" in columns else STREAM


def _batch(columns: Mapping[str, Any]) -> pa.RecordBatch:
    """The rows that visits with `columns` have in the stream."""
    offsets = np.concatenate(([0], np.cumsum(columns["num_models"]))).astype(np.int32)
    models = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(np.asarray(columns["models"], np.int64))
    )
    arrays = {  # by numpy: Arrow raises no ValueError for a text
        field.name: pa.array(np.asarray(columns[field.name], field.type.to_pandas_dtype()))
        for field in _schema(columns)
        if field.name != "models"
    }
    return pa.RecordBatch.from_pydict({**arrays, "models": models}, schema=_schema(columns))


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
