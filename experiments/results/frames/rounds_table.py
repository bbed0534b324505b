"""`rounds.parquet`: the rounds of all finished runs as one table, for plots other than the report's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from emulator.storage.checkpoints import write_durably
from emulator.storage.runlog import RoundRecord
from experiments.results.reading.run_directory import FinishedRun

INTEGERS = (
    "round",
    "step",
    "changed",
    "reported",
    "moved",
    "kmeans_clients",
    "silhouette_clients",
    "scored_clients",
    "drift_cells",
    "holding",
)
FLOATS = (
    "opened_s",
    "dispatched_s",
    "closed_s",
    "train_loss",
    "accuracy",
    "accuracy_std",
    "accuracy_omitting_drift",
    "loss",
    "mean_client_distance",
    "unclustered_distance",
    "download_bytes",
    "upload_bytes",
    "control_bytes",
    "models_sent",
)
TRIGGER = {
    "shift": pa.float64(),
    "mean_distance": pa.float64(),
    "threshold": pa.float64(),
    "clusters": pa.int64(),
    "fired": pa.bool_(),
    "largest_distance": pa.float64(),
    "delta": pa.float64(),
}
"""The type of each field of `RoundRecord.trigger`; null where it was not compared."""

COUNTS = {
    "participants": "participants",
    "kept": "completed",
    "dropped": "dropped",
    "crashed": "crashed",
    "rejected": "rejected",
    "clusters": "clusters",
}
"""For each column, without its `num_`, the list of RoundRecord whose length it holds."""


def rounds_table(runs: Sequence[FinishedRun]) -> pa.Table:
    """The table with a row for each run and round, in the order of `runs`.

    Columns: arm, seed, the scalars of RoundRecord, `trigger_<field>` for the values that its trigger
    compared, its silhouettes by the number of clusters, `num_<list>` for the lengths of its lists, and
    `num_abandoned`. `holding` is null in rounds in which all clients hold training samples.
    """
    rows: list[tuple[FinishedRun, RoundRecord]] = [(run, record) for run in runs for record in run.records]
    columns: dict[str, pa.Array[Any]] = {
        "arm": pa.array([run.arm for run, _ in rows], pa.string()),
        "seed": pa.array([run.seed for run, _ in rows], pa.int64()),
    }
    for name in INTEGERS:
        columns[name] = pa.array([getattr(record, name) for _, record in rows], pa.int64())
    columns["reclustered"] = pa.array([record.reclustered for _, record in rows], pa.bool_())
    for name in FLOATS:
        columns[name] = pa.array([getattr(record, name) for _, record in rows], pa.float64())
    for name, kind in TRIGGER.items():
        values = [
            None if (trigger := record.trigger) is None else getattr(trigger, name, None)
            for _, record in rows
        ]
        columns[f"trigger_{name}"] = pa.array(values, kind)
    silhouettes = [record.silhouettes and list(record.silhouettes.items()) for _, record in rows]
    columns["silhouettes"] = pa.array(silhouettes, pa.map_(pa.int64(), pa.float64()))
    for name, field in COUNTS.items():
        columns[f"num_{name}"] = pa.array([len(getattr(record, field)) for _, record in rows], pa.int64())
    columns["num_abandoned"] = pa.array([record.abandoned for _, record in rows], pa.int64())
    return pa.table(columns)


def write_rounds_table(path: Path, runs: Sequence[FinishedRun]) -> None:
    """Write `rounds_table(runs)` to `path` as Parquet, atomically."""
    buffer = pa.BufferOutputStream()
    pq.write_table(rounds_table(runs), buffer)
    write_durably(path, buffer.getvalue().to_pybytes())
