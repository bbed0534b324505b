"""`arrivals.parquet`: which sample reaches which client, and when, one row for each arrival."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from emulator.arrays import Ints
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import ParquetColumns
from traces.arrivals import SPLITS

When = Literal["step", "time", "order"]
WHEN: tuple[When, ...] = ("step", "time", "order")

KNOWN = ("client", "label", "sample", *WHEN, "split", "count", "concept")

MOST_CLASSES = 2**15
"""Most classes: labels are stored in 16 bits."""

MOST_STEP = 2**31 - 1
MOST_COUNT = 2**31 - 1
MOST_CONCEPTS = 2**15

_ROWS_PER_GROUP = 2**18


@dataclass(frozen=True)
class ArrivalRows:
    """The rows of `arrivals.parquet` as columns of shape (rows,), in the order of the file.

    Attributes:
        client: Index of each row's client into `clients`.
        clients: The clients: ascending texts, or ascending integers.
        label: The class of each row, in [0, len(classes)).
        classes: The names of the classes.
        sample: The row of `features.npy`.
        when: What `at` is: a data step; a time in microseconds since 1970; or a rank within the client.
        at: When the row arrives.
        split: Index into SPLITS; None if the file does not say.
        count: How often the row arrives, >= 0; None: once.
        concept: The true concept of each row, >= 0; None if it is not known.
    """

    client: np.ndarray
    clients: tuple[str, ...] | Ints
    label: np.ndarray
    classes: tuple[str, ...]
    sample: np.ndarray
    when: When
    at: np.ndarray
    split: np.ndarray | None = None
    count: np.ndarray | None = None
    concept: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.client)


def read_arrivals(path: Path, num_samples: int, classes: tuple[str, ...] | None) -> ArrivalRows:
    """Read the arrivals of a trace folder.

    Args:
        path: the file.
        num_samples: the samples of `features.npy`.
        classes: the names of the classes, as `trace.toml` has them; None: the labels name them. Labels that
            are numbers are then 0 to their maximum, and texts are classes in their order.

    Raises:
        DataFileError: a column is missing, unknown or of a wrong type, or a value breaks a rule; the message
            has the row.
    """
    table = ParquetColumns(path)
    for name in table.names:
        if name not in KNOWN:
            raise DataFileError(path, f"unknown column {name!r}; known are {', '.join(KNOWN)}")
    for name in ("client", "label", "sample"):
        table.kind(name)  # refuses a missing one
    when = _when(table)
    client, clients = _clients(table)
    label, names = _labels(table, classes)
    return ArrivalRows(
        client=client,
        clients=clients,
        label=label,
        classes=names,
        sample=_samples(table, num_samples),
        when=when,
        at=_instants(table, when),
        split=_splits(table) if "split" in table else None,
        count=table.integers("count", 0, MOST_COUNT) if "count" in table else None,
        concept=table.integers("concept", 0, MOST_CONCEPTS) if "concept" in table else None,
    )


def write_arrivals(path: Path, columns: Mapping[str, np.ndarray | pa.Array[Any]]) -> None:
    """Write `arrivals.parquet`: columns of shape (rows,) by name, in their order.

    A given order of rows and the same versions of the libraries give the same bytes. Rows that are sorted by
    (client, split, step or time or order) are read faster, as the table of a trace is sorted in that way.
    """
    table = pa.table({name: columns[name] for name in KNOWN if name in columns})
    pq.write_table(table, path, row_group_size=_ROWS_PER_GROUP, compression="zstd")


def ranks(values: np.ndarray) -> tuple[Ints, np.ndarray]:
    """The distinct values (k,), ascending, and the rank (n,) of each of `values` among them.

    Ascending values, as in a file in the order of its clients, are not sorted.

    >>> ranks(np.array([7, 7, 9]))
    (array([7, 9]), array([0, 0, 1], dtype=int32))
    """
    differs = values[1:] != values[:-1]
    rank: np.ndarray
    if (values[1:] >= values[:-1]).all():
        first = np.flatnonzero(np.concatenate(([True], differs)))
        rank = np.zeros(len(values), np.int32)
        np.cumsum(differs, out=rank[1:])
        return values[first].astype(np.int64), rank
    distinct, rank = np.unique(values, return_inverse=True)
    return distinct.astype(np.int64), rank.astype(np.int32)


def _when(table: ParquetColumns) -> When:
    given = [name for name in WHEN if name in table]
    if len(given) != 1:
        has = " and ".join(given) if given else "none of them"
        raise DataFileError(
            table.path,
            f"must have exactly one of the columns {', '.join(WHEN)} (when a sample arrives); it has {has}",
        )
    return given[0]


def _clients(table: ParquetColumns) -> tuple[np.ndarray, tuple[str, ...] | Ints]:
    if table.is_text("client"):
        return table.texts("client")
    distinct, rank = ranks(table.integers("client", -(2**63), 2**63 - 1))
    return rank, distinct


def _labels(table: ParquetColumns, classes: tuple[str, ...] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    kind = table.kind("label")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        raise DataFileError(
            table.path,
            f"column 'label' is {kind}, a regression target; labels are classes: integers or texts",
        )
    if pa.types.is_nested(kind):
        raise DataFileError(
            table.path, f"column 'label' is {kind}, a sequence; labels are classes: integers or texts"
        )
    if table.is_text("label"):
        codes, texts = table.texts("label")
        names = texts if classes is None else classes
        place = {name: number for number, name in enumerate(names)}
        unknown = next((number for number, text in enumerate(texts) if text not in place), None)
        if unknown is not None:
            row = int(np.flatnonzero(codes == unknown)[0]) + 1
            raise DataFileError(table.path, f"label {texts[unknown]!r}: {_choices(names)}", row)
        label = np.array([place[text] for text in texts], dtype=np.min_scalar_type(len(names)))[codes]
    else:
        label = table.integers("label", 0, (MOST_CLASSES if classes is None else len(classes)) - 1)
        names = classes if classes is not None else tuple(map(str, range(int(label.max()) + 1)))
        label = label.astype(np.min_scalar_type(len(names)))
    if len(names) > MOST_CLASSES:
        raise DataFileError(table.path, f"has {len(names)} classes; at most {MOST_CLASSES} are supported")
    return label, names


def _samples(table: ParquetColumns, num_samples: int) -> np.ndarray:
    sample = table.integers("sample", 0, 2**31 - 1)
    beyond = np.flatnonzero(sample >= num_samples)
    if len(beyond):
        row = int(beyond[0])
        raise DataFileError(
            table.path, f"sample = {sample[row]}: features.npy has rows 0 to {num_samples - 1}", row + 1
        )
    return sample


def _instants(table: ParquetColumns, when: When) -> np.ndarray:
    if when == "time":
        if pa.types.is_integer(table.kind("time")):
            raise DataFileError(
                table.path,
                f"column 'time' is {table.kind('time')}; a time is a date or a timestamp, a data step is the "
                f"column 'step', and a rank within the client 'order'",
            )
        return table.times("time")
    if not pa.types.is_integer(table.kind(when)):
        raise DataFileError(
            table.path, f"column {when!r} is {table.kind(when)}; it must hold whole numbers (see 'time')"
        )
    return table.integers(when, 0 if when == "order" else -MOST_STEP, MOST_STEP)


def _splits(table: ParquetColumns) -> np.ndarray:
    codes, texts = table.texts("split")
    unknown = next((number for number, text in enumerate(texts) if text not in SPLITS), None)
    if unknown is not None:
        row = int(np.flatnonzero(codes == unknown)[0]) + 1
        raise DataFileError(table.path, f"split {texts[unknown]!r}: must be {' or '.join(SPLITS)}", row)
    numbers = {str(split): number for number, split in enumerate(SPLITS)}
    split: np.ndarray = np.array([numbers[text] for text in texts], dtype=np.int8)[codes]
    return split


def _choices(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"no such class; trace.toml names {len(names)}: {shown}"
