"""The log of visits: appended to while a run is played, and turned into `visits.parquet` at its end.

A Parquet file cannot be appended to, so the rows of each round are written as an Arrow record batch to a
stream, which is truncated when the run resumes, as its log is. Both files have virtual quantities only.
"""

from __future__ import annotations

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
from emulator.storage.recorded_tables import OUTCOMES, ROWS_AT_ONCE, VISITS
from emulator.storage.state_tree import Tree

CODES = np.full(len(Outcome), -1)
"""Index into `OUTCOMES` of each `Outcome`."""
CODES[[Outcome.COMPLETED, Outcome.ABANDONED, Outcome.DROPPED]] = range(len(OUTCOMES))

STREAM = pa.schema(
    [
        field.with_type(pa.int8()) if field.name == "outcome" else field
        for field in VISITS
        if field.name != "device"
    ]
)
"""The columns of the stream: outcomes by their code, without devices, which do not change in a run."""


class VisitLog:
    """Appends the visits of each round to the stream at `path`.

    Args:
        path: the file, which must not exist unless `resume` is given.
        resume: a state of this log; the file is truncated to its length at that time.

    Raises:
        As `AppendedFile`.
    """

    def __init__(self, path: Path, resume: Mapping[str, Tree] | None = None) -> None:
        self._file = AppendedFile(path, STREAM.serialize().to_pybytes(), resume)

    def state(self) -> dict[str, Tree]:
        """Length and hash of the stream so far, which is on the disk when this returns."""
        return self._file.state()

    def append(self, rows: VisitRows) -> None:
        """Append the visits of a round."""
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
            for field in STREAM
            for column in [columns[field.name]]
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=STREAM)
        self._file.write(batch.serialize().to_pybytes())

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
    with (
        open_file(stream) as source,
        pa.ipc.open_stream(cast(IOBase, source)) as batches,
        replacing(path) as target,
        pq.ParquetWriter(target, VISITS, compression="zstd") as writer,
    ):
        for table in _in_groups(batches):
            writer.write_table(_with_devices(table, devices), ROWS_AT_ONCE)


def _in_groups(batches: pa.RecordBatchStreamReader) -> Iterator[pa.Table]:
    """The rows of all batches in tables of `ROWS_AT_ONCE` rows, except the last one."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= ROWS_AT_ONCE:
            table = pa.Table.from_batches(waiting, STREAM)
            full = len(table) - len(table) % ROWS_AT_ONCE
            yield table.slice(0, full)
            waiting = table.slice(full).to_batches()
    if waiting:
        yield pa.Table.from_batches(waiting, STREAM)


def _with_devices(table: pa.Table, devices: Ints | None) -> pa.Table:
    """The rows with the columns of `VISITS`."""
    clients = table.column("client").to_numpy()
    rows = pa.nulls(len(table), pa.int64()) if devices is None else pa.array(devices[clients], pa.int64())
    codes = pa.concat_arrays(table.column("outcome").chunks)
    columns: dict[str, Any] = {
        **{name: table.column(name) for name in table.column_names},
        "device": rows,
        "outcome": pa.DictionaryArray.from_arrays(codes, pa.array(OUTCOMES)),
    }
    return pa.Table.from_arrays([columns[name] for name in VISITS.names], schema=VISITS)
