"""`rounds.parquet`: the rounds of all finished runs as one table, for plots other than the report's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from emulator.messages import NamedNumbers
from emulator.storage.checkpoints import write_durably
from emulator.storage.round_schema import TRIGGER_HINTS, kind_of
from emulator.storage.runlog import SCHEMA
from experiments.results.reading.run_directory import ReportedRun

TYPES: dict[str, pa.DataType] = {"int": pa.int64(), "bool": pa.bool_(), "float": pa.float64()}
"""The types of columns of numbers, by that of the field, in the order of the columns."""

SCALARS = tuple((item, kind) for name, kind in TYPES.items() for item in SCHEMA.columns(name))
LENGTHS = SCHEMA.columns("list[int]")

TRIGGER = {name: TYPES[kind_of(hint)] for hints in TRIGGER_HINTS.values() for name, hint in hints.items()}
"""The type of each field of `RoundRecord.trigger`; null where it was not compared."""

MAY_MISS = (*(item.name for item, _ in SCALARS if item.may_miss), *(f"trigger_{name}" for name in TRIGGER))
"""The columns that are null in some rounds."""

NAMED = "trigger."
"""Where the name of a column of a trigger's named numbers begins."""

NOTED = "noted."
"""Where the name of a column of numbers that parts noted begins."""


def rounds_table(runs: Sequence[ReportedRun]) -> pa.Table:
    """The table with a row for each run and round, in the order of `runs`.

    Columns: arm, seed, the scalars of RoundRecord, `trigger_<field>` for the values that its trigger
    compared, its silhouettes by the number of clusters, `num_<list>` for the lengths of its lists,
    `num_abandoned`, and `trigger.<name>` for each named number of a trigger, in the order in which they first
    appear: a list if in some round it has a number for each cluster; then `noted.<name>` for each number that
    parts noted. `holding` is null in rounds in which all clients hold training samples.
    """
    records = [record for run in runs for record in run.records]
    columns: dict[str, pa.Array[Any]] = {
        "arm": pa.array([run.arm for run in runs for _ in run.records], pa.string()),
        "seed": pa.array([run.seed for run in runs for _ in run.records], pa.int64()),
    }
    for item, kind in SCALARS:
        columns[item.line_name] = pa.array([getattr(record, item.name) for record in records], kind)
    for name, kind in TRIGGER.items():
        columns[f"trigger_{name}"] = pa.array(
            [getattr(record.trigger, name, None) for record in records], kind
        )
    silhouettes = [record.silhouettes and list(record.silhouettes.items()) for record in records]
    columns["silhouettes"] = pa.array(silhouettes, pa.map_(pa.int64(), pa.float64()))
    for item in LENGTHS:
        lengths = [len(getattr(record, item.name)) for record in records]
        columns[f"num_{item.line_name}"] = pa.array(lengths, pa.int64())
    columns["num_abandoned"] = pa.array([record.abandoned for record in records], pa.int64())
    triggers = (record.trigger for record in records)
    named = [trigger.numbers if isinstance(trigger, NamedNumbers) else {} for trigger in triggers]
    noted = [record.noted or {} for record in records]
    return pa.table({**columns, **_by_name(NAMED, named), **_by_name(NOTED, noted)})


def _by_name(prefix: str, found: Sequence[Mapping[str, Any]]) -> dict[str, pa.Array[Any]]:
    """A column for each name of numbers, or of lists of them, of which a round may have some."""
    columns: dict[str, pa.Array[Any]] = {}
    for name in dict.fromkeys(name for numbers in found for name in numbers):
        values, kind = [numbers.get(name) for numbers in found], TYPES["float"]
        if any(isinstance(value, list) for value in values):
            values = [[value] if isinstance(value, int | float) else value for value in values]
            kind = pa.list_(kind)
        columns[prefix + name] = pa.array(values, kind)
    return columns


def write_rounds_table(path: Path, runs: Sequence[ReportedRun]) -> None:
    """Write `rounds_table(runs)` to `path` as Parquet, atomically."""
    buffer = pa.BufferOutputStream()
    pq.write_table(rounds_table(runs), buffer)
    write_durably(path, buffer.getvalue().to_pybytes())
