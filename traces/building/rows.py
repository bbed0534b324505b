"""The rows of a data set as columns, before any value is read: one kind of row for images and tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools, Ints
from emulator.errors import InputError
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS
from traces.building.pixels import Pixels
from traces.files.arrivals import CHUNK_ROWS, When
from traces.files.expiry import EXPIRY, never
from traces.held_out import held_out
from traces.ordering import pieces, rows_in_order, sizes_of

TRAIN, TEST = (SPLITS.index(split) for split in ("train", "test"))

Names = tuple[str, ...] | Ints
"""The names of clients: texts, or numbers."""

_COLUMNS = ("client", "label", "at", "value", "split", "count", "concept", "expiry", "box", "target")


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of a data set as columns of shape (n,), one row for each sample.

    Attributes:
        client: Index of each row's client into `clients`.
        clients: The names of the clients, ascending.
        label: Index of each row's class into `classes`.
        classes: The names of the classes.
        when: What `at` is: a data step; a time in microseconds since 1970; or a rank within the client.
        at: When the row arrives.
        value: The number of the image that is the row's value, or of which that is a crop; None: rows of a
            table, whose values are read in its order.
        pixels: Where the images are.
        split: Index into SPLITS; None: test samples are held out by seed.
        count: How often the row arrives; concept: its concept; None: nothing says.
        expiry: When the client holds the row no longer, in the unit of `at`; None: it holds all to the end.
        target: (n, K) what models are to tell beside the class; None: nothing.
        keeps_classes: Whether classes stay that no row has.
        has_zone: Whether times are those of UTC, as the data set states.
        box: (n, 4) the corners x0, y0, x1, y1 of each row's crop in pixels; None: whole images.
        notes: What was left out or decided, for the user.
    """

    client: np.ndarray
    clients: Names
    label: np.ndarray
    classes: tuple[str, ...]
    when: When
    at: np.ndarray
    value: Ints | None = None
    pixels: Pixels | None = None
    split: np.ndarray | None = None
    count: np.ndarray | None = None
    concept: np.ndarray | None = None
    expiry: np.ndarray | None = None
    target: np.ndarray | None = None
    keeps_classes: bool = False
    has_zone: bool = False
    box: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.client)

    def columns(self) -> dict[str, np.ndarray]:
        """The columns that are known, by name."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return {name: column for name, column in columns.items() if column is not None}

    def take(self, rows: Ints) -> Rows:
        """The rows with these numbers (k,), in that order; clients without rows are dropped."""
        taken: dict[str, Any] = {name: column[rows] for name, column in self.columns().items()}
        return replace(self, **taken).with_used_clients()

    def only(self, keep: Bools) -> Rows:
        """The rows with `keep` (n,), whose columns are overwritten: millions of rows are in memory once."""
        if keep.all():
            return self
        kept: Any = {name: _compressed(column, keep) for name, column in self.columns().items()}
        return replace(self, **kept)

    def with_used_clients(self) -> Rows:
        """These rows, whose `client` is overwritten, without the clients that have none."""
        used = renumber(self.client, len(self.clients))
        if isinstance(self.clients, np.ndarray):
            return replace(self, clients=self.clients[used])
        return replace(self, clients=tuple(self.clients[number] for number in used.tolist()))

    def noting(self, note: str) -> Rows:
        """These rows with one more note."""
        return replace(self, notes=(*self.notes, note))

    def digest(self) -> str:
        """The sha256 of all columns and names, and of what `pixels` states about itself."""
        state = hashlib.sha256()
        for name, column in self.columns().items():
            state.update(f"|{name}|".encode())
            state.update(np.ascontiguousarray(column.astype(column.dtype.newbyteorder("<"))).data)
        for names in (tuple(map(str, self.clients)), self.classes, (self.when,)):
            state.update("\0".join(("", *names)).encode("utf-8", "surrogateescape"))
        for piece in () if self.pixels is None else self.pixels.identity():
            state.update(piece)
        return state.hexdigest()

    def have(self, split: int, where: Bools | bool = True) -> Bools:
        """(clients,) whether each client has samples of a split, of the rows `where` (n,); needs a split."""
        chosen: Bools = np.logical_and(self.split == split, where)
        has: Bools = sizes_of(self.client, len(self.clients), chosen) > 0
        return has


Coded = tuple[Ints, tuple[str, ...]]
"""A column of texts, as `codes` makes it: (n,) the index of each one's text, and the distinct texts."""


def samples_of(
    pixels: Pixels,
    client: Coded,
    label: Coded,
    *,
    at: Ints | None = None,
    image: Ints | None = None,
    **columns: Any,
) -> Rows:
    """The rows of a data set of images.

    Args:
        pixels: where the images are.
        client: whose each sample is.
        label: the class of each.
        at: (n,) when each arrives, in microseconds since 1970; None: clients own all from the start.
        image: (n,) the number of each one's image; None: sample i is image i.
        columns: What else `Rows` has, such as `split`, `box`, `notes`, or `when` if `at` are steps.
    """
    number = len(label[0])
    columns.setdefault("when", "step" if at is None else "time")
    columns["at"] = np.zeros(number, np.int64) if at is None else at
    columns["value"] = np.arange(number) if image is None else image
    (codes_of_clients, clients), (labels, classes) = client, label
    return Rows(
        client=codes_of_clients, clients=clients, label=labels, classes=classes, pixels=pixels, **columns
    )


def renumber(codes: np.ndarray, most: int) -> Ints:
    """Renumber `codes` (n,), in place, without those that do not occur; returns the old number of each."""
    occurs = sizes_of(codes, most) > 0
    if not occurs.all():
        number = np.cumsum(occurs) - 1
        for piece in pieces(len(codes)):
            codes[piece] = number[codes[piece]]
    return np.flatnonzero(occurs)


def spread(num_rows: int, limit: int, shift: float = 0.0) -> Ints:
    """(limit,) numbers below `num_rows`, evenly spread, the first one `shift` of their distance after 0.

    >>> spread(10, 4), spread(10, 4, shift=0.5)
    (array([0, 2, 5, 7]), array([1, 3, 6, 8]))
    """
    twice: Ints = (2 * np.arange(limit) + round(2 * shift)) * num_rows
    return twice // (2 * limit)


def in_order(rows: Rows) -> np.ndarray:
    """(n,) the rows in the order of a trace: by client, split if it is known, arrival, expiry and value."""
    by = (rows.client, rows.split, rows.at, rows.expiry, rows.value)
    return rows_in_order(*(column for column in by if column is not None))


def with_tests(rows: Rows, seed: int, share: float) -> Rows:
    """The rows with a split: a share of each client's rows of each label is for tests, by seed."""
    test = held_out(rows.client, rows.label, rows.at, share, RandomStreams(seed).generator("split"))
    return replace(rows, split=test.view(np.int8))


def ordered(rows: Rows, limit: int | None, seed: int, test_share: float) -> Rows:
    """The rows in the order of a trace: by (client, split, time, value), with test samples chosen.

    With `limit`, rows are evenly spread ones of that order, so that clients keep their proportions and their
    spans of time; a client with few samples may be dropped. Clients that have test samples only are dropped.

    Raises InputError if no rows are left.
    """
    if len(rows) == 0:
        raise InputError("the data set has no samples that fit the options")
    order = in_order(rows)
    if limit is not None and limit < len(rows):
        order = order[spread(len(order), limit, shift=0.5)]
        rows = rows.noting(f"--limit {limit}: {limit:,} of {len(rows):,} samples, evenly spread")
    rows = rows.take(order)
    if rows.split is None:
        rows = with_tests(rows, seed, test_share)
        rows = rows.take(in_order(rows))
    assert rows.split is not None
    rows = replace(rows, split=rows.split.astype(np.int32))  # as wide as the file has it
    trained = rows.have(TRAIN)
    if not trained.all():
        number = int((~trained).sum())
        note = f"{number} client(s) with test samples only are left out"
        rows = rows.take(np.flatnonzero(trained[rows.client])).noting(note)
    if len(rows) == 0:
        raise InputError("the data set has no training samples that fit the options")
    return rows


def arrivals_of(rows: Rows, good: Bools) -> Iterator[dict[str, np.ndarray | pa.Array[Any]]]:
    """Yield the columns of `arrivals.parquet` in pieces of `CHUNK_ROWS`, those of the rows `good` (n,).

    They are in the order of a trace's table; row i is sample i of `features.npy`.
    """
    order = in_order(rows)
    if not good.all():
        order = order[good[order]]
    names = None if isinstance(rows.clients, np.ndarray) else pa.array(rows.clients, pa.string())
    for first in range(0, len(order), CHUNK_ROWS):
        yield _arrivals_of(rows, order[first : first + CHUNK_ROWS], names)


def _arrivals_of(rows: Rows, order: np.ndarray, names: Any) -> dict[str, np.ndarray | pa.Array[Any]]:
    """The columns of the rows `order` (k,); the clients are `names`, or numbers if it is None."""
    assert rows.split is not None
    instants: dict[str, pa.Array[Any]] = {rows.when: pa.array(rows.at[order])}
    if rows.expiry is not None:
        expiry = rows.expiry[order]
        instants[EXPIRY] = pa.array(expiry, mask=expiry == never(expiry))
    if rows.when == "time":
        kind = pa.timestamp("us", "UTC" if rows.has_zone else None)
        instants = {name: column.cast(kind) for name, column in instants.items()}
    client = rows.client[order]
    known = rows.columns()
    return {
        "client": _texts(client.astype(np.int32), names)
        if names is not None
        else np.asarray(rows.clients)[client],
        "label": rows.label[order].astype(np.int16),
        "sample": order.astype(np.int32),
        **instants,
        "split": _texts(rows.split[order], pa.array(SPLITS, pa.string())),
        **{name: known[name][order] for name in ("count", "concept") if name in known},
    }


def _texts(codes: np.ndarray, names: Any) -> pa.Array[Any]:
    return pa.DictionaryArray.from_arrays(pa.array(codes), names)


def _compressed(column: np.ndarray, keep: Bools) -> np.ndarray:
    """The values of `column` (n,) where `keep` (n,), moved to its front: no second copy is made."""
    last = 0
    for piece in pieces(len(keep)):
        kept = column[piece][keep[piece]]
        column[last : last + len(kept)] = kept
        last += len(kept)
    return column[:last]


def codes(texts: Sequence[str]) -> Coded:
    """(n,) the rank of each text among the distinct ones, and these, ascending.

    >>> codes(["b", "a", "b"])
    (array([1, 0, 1]), ('a', 'b'))
    """
    names = sorted(set(texts))
    rank = {name: number for number, name in enumerate(names)}
    return np.fromiter((rank[text] for text in texts), np.int64, len(texts)), tuple(names)


def interval_of(rank: Ints, size: Ints | int, intervals: int) -> Ints:
    """(n,) the interval of each rank in [0, size), if they are cut into equal intervals, counted from 0.

    >>> interval_of(np.arange(5), 5, 2)
    array([0, 0, 0, 1, 1])
    """
    interval: Ints = rank * intervals // np.maximum(size, 1)
    return interval
