"""The table of a trace as one Parquet file, with the names of classes where `datasets` and pandas look."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from emulator.arrays import Floats32, Ints
from emulator.storage.checkpoints import replacing
from traces.arrivals import SPLITS, STEPS_AHEAD
from traces.exporting.held import TEST, HeldRows, held_rows
from traces.tables.base import NEVER
from traces.trace import Trace

VERSION = 1
"""The version of the table, under the key `driftscale` of its metadata."""

GROUP_BYTES = 2**25
"""Most bytes of the features of a row group."""

GROUP_ROWS = 2**17
"""Most rows of a row group."""


@dataclass(frozen=True)
class Exported:
    """What has been written: the rows, and how many clients, training and test samples they are of."""

    rows: int
    clients: int
    train: int
    test: int


def export_parquet(trace: Trace, num_steps: int, path: Path, origin: str) -> Exported:
    """Write the rows that clients hold at data steps 0 to `num_steps` - 1, sorted by client, split and step.

    A row has its client, the data steps `step` and `expiry` (null: never) between which the client holds it,
    that of the sample's first `arrival`, the split, the label, the true concept if the trace knows it, the
    targets if it has some, and the features as models see them. One row group at a time is in memory. The
    file appears under its name once it is complete.

    Args:
        trace: the trace.
        num_steps: the data steps, >= 1.
        path: the file, which is replaced.
        origin: where the trace comes from, in a line.
    """
    shape = trace.sample_shape
    schema = _schema(trace, origin)
    most = max(1, min(GROUP_ROWS, GROUP_BYTES // (4 * int(np.prod(shape)))))
    rows = num_clients = num_train = 0
    with replacing(path) as file, ExitStack() as stack:
        writer = stack.enter_context(pq.ParquetWriter(file, schema, compression="zstd"))
        for held in held_rows(trace, num_steps):
            for first in range(0, len(held), most):
                piece = slice(first, first + most)
                writer.write_table(_columns(trace, _part(held, piece), schema), row_group_size=most)
            trace.table.drop_pages()
            rows += len(held)
            num_clients += len(np.unique(held.client))
            num_train += int((held.split != TEST).sum())
    return Exported(rows, num_clients, num_train, rows - num_train)


def class_names(trace: Trace) -> tuple[str, ...]:
    """A name for each label: that which the trace has, or its number."""
    known = trace.label_names
    taken = set(known)
    others = range(len(known), trace.num_labels)
    return (*known, *(f"class {label}" if str(label) in taken else str(label) for label in others))


def _part(held: HeldRows, piece: slice) -> HeldRows:
    return HeldRows(**{name: getattr(held, name)[piece] for name in HeldRows.__dataclass_fields__})


def _schema(trace: Trace, origin: str) -> pa.Schema:
    names = trace.client_names
    kinds: dict[str, pa.DataType] = {
        "client": pa.string() if isinstance(names, tuple) else pa.int64(),
        "step": pa.int32(),
        "arrival": pa.int32(),
        "expiry": pa.int32(),
        "split": pa.string(),
        "label": pa.int64(),  # as `datasets` has its classes
    }
    if trace.concepts is not None:
        kinds["concept"] = pa.int32()
    features: dict[str, Any] = {name: {"dtype": str(kind), "_type": "Value"} for name, kind in kinds.items()}
    features["label"] = {"names": list(class_names(trace)), "_type": "ClassLabel"}
    shapes = {"targets": (trace.num_targets,)} if trace.num_targets else {}
    for name, shape in {**shapes, "features": trace.sample_shape}.items():
        kind: pa.DataType = pa.float32()
        feature: dict[str, Any] = {"dtype": "float32", "_type": "Value"}
        for length in reversed(shape):
            kind = pa.list_(pa.field("element", kind), length)
            feature = {"feature": feature, "length": length, "_type": "Sequence"}
        kinds[name], features[name] = kind, feature
    about: dict[str, Any] = {"version": VERSION, "shape": list(trace.sample_shape), "origin": origin}
    if trace.tokens is not None:
        about["tokens"] = asdict(trace.tokens)
    if trace.objective is not None:
        about["objective"] = trace.objective
    metadata = {"huggingface": {"info": {"features": features}}, "driftscale": about}
    return pa.schema(
        [pa.field(name, kind) for name, kind in kinds.items()],
        {key: json.dumps(value) for key, value in metadata.items()},
    )


def _columns(trace: Trace, held: HeldRows, schema: pa.Schema) -> pa.Table:
    names = trace.client_names
    clients: Any = held.client
    if isinstance(names, tuple):
        used, code = np.unique(held.client, return_inverse=True)
        clients = _texts([names[client] for client in used.tolist()], code)
    elif names is not None:
        clients = names[held.client]
    columns: dict[str, Any] = {
        "client": clients,
        "step": held.step,
        "arrival": held.arrival,
        "expiry": pa.array(held.expiry, mask=held.expiry == NEVER),
        "split": _texts(SPLITS, held.split),
        "label": trace.labels(held.row),
        "features": _nested(trace.features(held.row)),
    }
    if trace.num_targets:
        columns["targets"] = _nested(trace.targets(held.row))
    if trace.concepts is not None:
        columns["concept"] = _concepts(trace, held)
    return pa.table(
        [_cast(columns[field.name], field.type) for field in schema],
        schema=schema,
    )


def _texts(texts: Sequence[str], codes: Ints) -> Any:
    """The text (n,) of each of `codes` (n,)."""
    numbers: Any = pa.array(codes)
    return pa.array(texts, pa.string()).take(numbers)


def _cast(column: Any, kind: pa.DataType) -> Any:
    array = column if isinstance(column, pa.Array) else pa.array(column)
    return array if array.type == kind else array.cast(kind)


def _nested(features: Floats32) -> Any:
    """The features (n, *shape) as lists of fixed lengths, one within the other."""
    array: Any = pa.array(features.ravel())
    for length in reversed(features.shape[1:]):
        kind: Any = pa.list_(pa.field("element", array.type), length)
        array = pa.FixedSizeListArray.from_arrays(array, type=kind)
    return array


def _concepts(trace: Trace, held: HeldRows) -> Ints:
    """(n,) the true concept of each row: that of its client's samples of the step at which it arrives."""
    concepts, of_tests = trace.concepts, trace.test_concepts
    assert concepts is not None, "they are known"
    is_test = held.split == TEST
    at = np.maximum(trace.table.arrival(held.row) - is_test * STEPS_AHEAD[trace.test_on], 0)
    found = concepts[np.where(is_test & trace.test_then_train, at + 1, at), held.client]
    if of_tests is not None:
        found[is_test] = of_tests[at[is_test], held.client[is_test]]
    known: Ints = found
    return known
