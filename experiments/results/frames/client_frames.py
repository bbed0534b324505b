"""Frames of single runs: a row per client at the horizon, and a row per visit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from emulator.arrays import Floats, Ints
from emulator.errors import InputError
from emulator.storage.recorded_tables import OF_STEPS
from emulator.storage.runlog import RoundRecord
from experiments.results.frames.typed_columns import known_ints, typed_frame
from experiments.results.reading.clusters_in_force import clusters_in_force, num_clients
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.clients.participation import ids_of
from experiments.results.statistics.horizon import Horizon

DEVICE = ("seconds_per_sample", "download_bytes_per_s", "upload_bytes_per_s", "latency_s")
"""The columns of a client's device, beside the row of the profile's table, and `device_factor`."""


def clients_frame(run: ReportedRun, horizon: Horizon, devices: pa.Table | None) -> pd.DataFrame:
    """A row per client of a run, as of the last round by the horizon.

    Columns: `client`; `accuracy` and `label`, the label of which it holds most samples, of the last
    evaluation, NaN and missing for a client that was not scored then, and no columns at all if the run did
    not log them (`round.log_client_accuracy`); `cluster`, missing for a client in none; `participations` and
    `completed`, visits begun and completed; `device`, the row of the profile's table, and the columns
    `DEVICE`, no columns if `devices` is None, and `device_factor` if devices have one; and names, see
    `with_names`.

    Raises:
        InputError: The log has a client that the run does not have.
    """
    records = horizon.records(run)
    members = next((known for known in reversed(clusters_in_force(records)) if known is not None), None)
    count = num_clients(run) if devices is None else devices.num_rows
    if members is not None and len(members) != count:
        raise _damaged(run, f"it has the clusters of {len(members)} clients, and there are {count}")
    columns: dict[str, Any] = {"client": np.arange(count, dtype=np.int64)}
    scored = next((record for record in reversed(records) if record.client_accuracy is not None), None)
    if scored is not None:
        columns |= _scores(run, scored, count)
    columns["cluster"] = known_ints(np.full(count, -1) if members is None else members)
    columns["participations"] = _visits(run, [record.participants for record in records], count)
    columns["completed"] = _visits(run, [record.completed for record in records], count)
    if devices is not None:
        known = typed_frame(devices, ["device"])
        columns |= {name: known[name] for name in ("device", *DEVICE, "device_factor") if name in known}
    return with_names(pd.DataFrame(columns), devices)


def visits_frame(visits: pa.Table, devices: pa.Table | None) -> pd.DataFrame:
    """A row per visit of a run, with the columns of `visits.parquet` (recorded_tables.py), in its order.

    `outcome` is a category, `models` are lists of labels, `device` is missing without a table of devices;
    names are as `with_names` has them, from the run's `clients.parquet`.
    """
    return with_names(typed_frame(visits, ["device", *(field.name for field in OF_STEPS)]), devices)


def with_names(frame: pd.DataFrame, devices: pa.Table | None) -> pd.DataFrame:
    """The frame with `client_name` behind its column `client`, and `device_id` behind `device`, if any.

    Neither is there if `devices` is None, or was written before clients had names. Raises InputError if the
    frame has a client that `devices` does not have.
    """
    for beside, name in (("client", "client_name"), ("device", "device_id")):
        if beside in frame.columns and devices is not None and name in devices.column_names:
            frame.insert(frame.columns.get_loc(beside) + 1, name, texts_of(devices, name, frame["client"]))
    return frame


def texts_of(devices: pa.Table, name: str, clients: Any) -> Any:
    """(n,) objects: the text of each of `clients` (n,) in a column of a `clients.parquet`, or None."""
    ids = np.asarray(clients)
    outside = ids[(ids < 0) | (ids >= len(devices))]
    if len(outside):
        raise InputError(f"clients.parquet is damaged: it has {len(devices)} clients, and not {outside[0]}")
    texts = devices.column(name).to_pandas().astype(object).to_numpy()
    return texts[ids]


def _scores(run: ReportedRun, record: RoundRecord, count: int) -> dict[str, Any]:
    """The columns of an evaluation with the accuracy of each scored client."""
    assert record.client_accuracy is not None, "the round was evaluated client by client"
    found, ids = record.client_accuracy, run.header.get("scored_clients")
    scored: Ints = np.arange(len(found)) if ids is None else np.asarray(ids)
    if len(scored) != len(found) or scored.max(initial=-1) >= count:
        raise _damaged(run, f"client_accuracy is not of the scored clients among {count}")
    accuracy: Floats = np.full(count, np.nan)
    accuracy[scored] = found
    columns: dict[str, Any] = {"accuracy": accuracy}
    if record.client_label is not None:
        label = np.full(count, -1, dtype=np.int64)
        label[scored] = record.client_label
        columns["label"] = known_ints(label)
    return columns


def _visits(run: ReportedRun, by_round: list[list[int]], count: int) -> Ints:
    """(count,) how often each client is in the lists."""
    return np.bincount(ids_of(run, by_round, count), minlength=count).astype(np.int64)


def _damaged(run: ReportedRun, problem: str) -> InputError:
    return InputError(f"arm {run.arm!r}, seed {run.seed}: its log is damaged, {problem}")
