"""`arrivals.parquet`: which sample reaches which client, and when, one row for each arrival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.checkpoints import replacing
from emulator.storage.parquet_columns import NO_TIME, ParquetColumns
from traces.arrivals import SPLITS
from traces.files.expiry import (
    EXPIRY,
    before_its_turn,
    never_held,
    not_after,
    out_of_turn,
    read_expiry,
    type_rule,
)

When = Literal["step", "time", "order"]
WHEN: tuple[When, ...] = ("step", "time", "order")

REQUIRED = ("client", "label", "sample")
KNOWN = (*REQUIRED, *WHEN, EXPIRY, "split", "count", "concept")

MOST_CLASSES = 2**15
"""Most classes: labels are stored in 16 bits."""

BOUNDS: Mapping[str, tuple[int, int]] = {
    "client": (-(2**63), 2**63 - 1),
    "sample": (0, 2**31 - 1),
    "step": (1 - 2**31, 2**31 - 1),
    "order": (0, 2**31 - 1),
    "count": (0, 2**31 - 1),
    "concept": (0, 2**15),
}
"""The least and the largest value of columns of whole numbers; labels are below `MOST_CLASSES`."""

CHUNK_ROWS = 2**18


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
        expiry: When the client holds the row no longer, in the unit of `at` and after it; `never` if it is
            held to the end. None: the file does not say.
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
    expiry: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.client)

    def name_of(self, client: int) -> str:
        """The client with that index as a literal: a number, or a text in quotes."""
        return repr(self.clients[client]) if isinstance(self.clients, tuple) else str(self.clients[client])


def read_arrivals(path: Path, num_samples: int, classes: tuple[str, ...] | None) -> ArrivalRows:
    """Read the arrivals of a trace folder.

    Args:
        path: the file.
        num_samples: the samples of `features.npy`.
        classes: the names of the classes, as `trace.toml` has them; None: the labels name them. Labels that
            are numbers are then 0 to their maximum, and texts are classes in their order.

    Raises:
        DataFileError: a column is missing, unknown or of a wrong type, a value breaks a rule, or a client has
            test samples only; the message has the row.
    """
    table = ParquetColumns(path)
    for name in table.names:
        if name not in KNOWN:
            raise DataFileError(path, unknown_column(name))
    for name in REQUIRED:
        table.kind(name)  # refuses a missing one
    when = when_of(table)
    for name in table.names:
        check_type(table, name)
    client, clients = read_clients(table)
    label, names = _labels(table, classes)
    rows = ArrivalRows(
        client=client,
        clients=clients,
        label=label,
        classes=names,
        sample=_samples(table, num_samples),
        when=when,
        at=read_instants(table, when),
        split=read_splits(table) if "split" in table else None,
        count=table.integers("count", *BOUNDS["count"]) if "count" in table else None,
        concept=table.integers("concept", *BOUNDS["concept"]) if "concept" in table else None,
        expiry=read_expiry(table, when) if EXPIRY in table else None,
    )
    _refuse_expiry(path, rows)
    only = test_only(rows)
    if len(only):
        others = f"; so have {len(only) - 1} other clients" if len(only) > 1 else ""
        raise DataFileError(path, f"{in_test_only(rows.name_of(only[0][0]))}{others}", row=only[0][1] + 1)
    return rows


def write_arrivals(path: Path, columns: Mapping[str, np.ndarray | pa.Array[Any]]) -> None:
    """Write `arrivals.parquet`: columns of shape (rows,) by name, in their order.

    A given order of rows and the same versions of the libraries give the same bytes. Rows that are sorted by
    (client, split, step or time or order) are read faster, as the table of a trace is sorted in that way.
    A link at `path` is replaced, not followed.
    """
    write_arrival_pieces(path, [columns])


def write_arrival_pieces(path: Path, parts: Iterable[Mapping[str, np.ndarray | pa.Array[Any]]]) -> None:
    """Write `arrivals.parquet` as `write_arrivals` does, of the same rows in parts of `CHUNK_ROWS` rows."""
    writer: pq.ParquetWriter | None = None
    with replacing(path) as file, ExitStack() as stack:
        for columns in parts:
            table = pa.table({name: columns[name] for name in KNOWN if name in columns})
            writer = writer or stack.enter_context(pq.ParquetWriter(file, table.schema, compression="zstd"))
            writer.write_table(table, row_group_size=CHUNK_ROWS)


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
    known = distinct(values)
    rank = np.empty(len(values), np.int32)
    for begin in range(0, len(values), CHUNK_ROWS):
        rank[begin : begin + CHUNK_ROWS] = np.searchsorted(known, values[begin : begin + CHUNK_ROWS])
    return known.astype(np.int64), rank


def distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values of `values` (n,), ascending, without a sorted copy of all of `values`.

    >>> distinct(np.array([7, 9, 7]))
    array([7, 9])
    """
    chunks = (values[first : first + CHUNK_ROWS] for first in range(0, max(1, len(values)), CHUNK_ROWS))
    return _distinct(np.concatenate([_distinct(chunk) for chunk in chunks]))


def _distinct(values: np.ndarray) -> np.ndarray:
    """NOTE: sorts, since numpy's `unique` takes ten times as long where most values differ."""
    in_order = np.sort(values)
    differs = np.concatenate((np.ones(min(1, len(values)), np.bool_), in_order[1:] != in_order[:-1]))
    found: np.ndarray = in_order[differs]
    return found


def when_of(table: ParquetColumns) -> When:
    """The column that says when a sample arrives; DataFileError unless there is exactly one."""
    given = [name for name in WHEN if name in table]
    if len(given) != 1:
        has = " and ".join(given) if given else "none of them"
        raise DataFileError(
            table.path,
            f"must have exactly one of the columns {', '.join(WHEN)} (when a sample arrives); it has {has}",
        )
    return given[0]


def check_type(table: ParquetColumns, name: str) -> None:
    """Raise DataFileError if the column `name`, one of KNOWN, has a type that it must not have."""
    rule = _rule_broken(table, name)
    if rule is not None:
        raise DataFileError(table.path, f"column {name!r} is {table.kind(name)}{rule}")


def _rule_broken(table: ParquetColumns, name: str) -> str | None:
    kind = table.kind(name)
    if name == EXPIRY:
        return type_rule(table, next((when for when in WHEN if when in table), None))
    is_integer, is_text = pa.types.is_integer(kind), table.is_text(name)
    if name == "label" and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return ", a regression target; labels are classes: integers or texts"
    if name == "label" and pa.types.is_nested(kind):
        return ", a sequence or several labels of a sample; labels are classes: integers or texts"
    if name == "time" and is_integer:
        return (
            "; a time is a date or a timestamp, a data step is the column 'step', and a rank within the "
            "client 'order'"
        )
    is_right, rule = {
        "client": (is_text or is_integer, "it must hold texts or whole numbers"),
        "label": (is_text or is_integer, "it must hold texts or whole numbers"),
        "time": (table.is_time(name), NO_TIME),
        "step": (is_integer, "it must hold whole numbers (see 'time')"),
        "order": (is_integer, "it must hold whole numbers (see 'time')"),
        "split": (is_text, "it must hold texts"),
    }.get(name, (is_integer, "it must hold whole numbers"))
    return None if is_right else f"; {rule}"


def unknown_column(name: str) -> str:
    return f"unknown column {name!r}; known are {', '.join(KNOWN)}"


def unknown_class(label: str, names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"label {label!r}: no such class; trace.toml names {len(names)}: {shown}"


def beyond_the_features(sample: int, num_samples: int) -> str:
    return f"sample = {sample}: features.npy has rows 0 to {num_samples - 1}"


def unknown_split(split: str) -> str:
    return f"split {split!r}: must be {' or '.join(SPLITS)}"


def in_test_only(client: str) -> str:
    return f"client {client} has test samples and none for training"


def clients_in(rows: ArrivalRows, split: int, used: Bools | None = None) -> Bools:
    """(clients,) which clients have a row of `split`, of those `used` (rows,) if given, that arrives."""
    assert rows.split is not None, "the split is known"
    present = np.zeros(len(rows.clients), np.bool_)
    for first in range(0, len(rows), CHUNK_ROWS):  # in pieces: no copy of whole columns
        chunk = slice(first, first + CHUNK_ROWS)
        chosen = rows.split[chunk] == split
        if rows.count is not None:
            chosen &= rows.count[chunk] > 0
        if used is not None:
            chosen &= used[chunk]
        present[rows.client[chunk][chosen]] = True
    return present


def test_only(rows: ArrivalRows) -> list[tuple[int, int]]:
    """The clients with test samples and none for training, each with the first of its rows, from 0."""
    if rows.split is None:
        return []
    trains, tests = (clients_in(rows, number) for number in range(len(SPLITS)))
    only = np.flatnonzero(tests & ~trains)
    if len(only) == 0:
        return []
    arrives = np.ones(len(rows), np.bool_) if rows.count is None else rows.count > 0
    found = np.flatnonzero(arrives & np.isin(rows.client, only))
    clients, first = np.unique(rows.client[found], return_index=True)
    return list(zip(clients.tolist(), found[first].tolist(), strict=True))


def read_clients(table: ParquetColumns) -> tuple[np.ndarray, tuple[str, ...] | Ints]:
    if table.is_text("client"):
        return table.texts("client")
    distinct, rank = ranks(table.integers("client", *BOUNDS["client"]))
    return rank, distinct


def _labels(table: ParquetColumns, classes: tuple[str, ...] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    if table.is_text("label"):
        codes, texts = table.texts("label")
        names = texts if classes is None else classes
        place = {name: number for number, name in enumerate(names)}
        unknown = next((number for number, text in enumerate(texts) if text not in place), None)
        if unknown is not None:
            row = int(np.flatnonzero(codes == unknown)[0]) + 1
            raise DataFileError(table.path, unknown_class(texts[unknown], names), row)
        label = np.array([place[text] for text in texts], dtype=np.min_scalar_type(len(names)))[codes]
    else:
        label = table.integers("label", 0, (MOST_CLASSES if classes is None else len(classes)) - 1)
        names = classes if classes is not None else tuple(map(str, range(int(label.max()) + 1)))
        label = label.astype(np.min_scalar_type(len(names)))
    if len(names) > MOST_CLASSES:
        raise DataFileError(table.path, f"has {len(names)} classes; at most {MOST_CLASSES} are supported")
    return label, names


def _refuse_expiry(path: Path, rows: ArrivalRows) -> None:
    """Raise DataFileError for the first row that is never held, or that expires before its turn."""
    if rows.expiry is None:
        return
    for row in never_held(rows.at, rows.expiry)[:1].tolist():
        raise DataFileError(path, not_after(rows.at[row], rows.expiry[row], rows.when), row + 1)
    later, earlier = out_of_turn(rows.client, rows.split, rows.at, rows.expiry, rows.count)
    for row, other in sorted(zip(later.tolist(), earlier.tolist(), strict=True))[:1]:
        raise DataFileError(path, expires_before_its_turn(rows, row, other), row + 1)


def expires_before_its_turn(rows: ArrivalRows, row: int, other: int) -> str:
    assert rows.expiry is not None, "rows expire"
    at, expiry = (tuple(column[[row, other]].tolist()) for column in (rows.at, rows.expiry))
    return before_its_turn(rows.name_of(rows.client[row]), at, expiry, other + 1, rows.when)


def _samples(table: ParquetColumns, num_samples: int) -> np.ndarray:
    sample = table.integers("sample", *BOUNDS["sample"])
    beyond = np.flatnonzero(sample >= num_samples)
    if len(beyond):
        row = int(beyond[0])
        raise DataFileError(table.path, beyond_the_features(sample[row], num_samples), row + 1)
    return sample


def read_instants(table: ParquetColumns, when: When) -> np.ndarray:
    return table.times("time") if when == "time" else table.integers(when, *BOUNDS[when])


def read_splits(table: ParquetColumns) -> np.ndarray:
    codes, texts = table.texts("split")
    unknown = next((number for number, text in enumerate(texts) if text not in SPLITS), None)
    if unknown is not None:
        row = int(np.flatnonzero(codes == unknown)[0]) + 1
        raise DataFileError(table.path, unknown_split(texts[unknown]), row)
    numbers = {str(split): number for number, split in enumerate(SPLITS)}
    split: np.ndarray = np.array([numbers[text] for text in texts], dtype=np.int8)[codes]
    return split
