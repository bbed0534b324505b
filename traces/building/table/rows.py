"""Which rows of a table are used, by which client, when, and for what: training or tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS
from traces.building.table.expiry import expiring_ranks, refuse_out_of_turn
from traces.building.table.key_columns import Names
from traces.building.table.keys import Keys
from traces.building.table.settings import TableSettings
from traces.calendar import MICROSECONDS_PER_DAY, microseconds
from traces.files.arrivals import CHUNK_ROWS, When
from traces.files.expiry import EXPIRY, never
from traces.held_out import held_out
from traces.ordering import pieces, rows_in_order, sizes_of
from traces.partitions import Samples

TRAIN, TEST = (SPLITS.index(split) for split in ("train", "test"))


@dataclass(frozen=True)
class UsedRows:
    """The rows that are used (n,), in the order of the files, which is that of `features.npy`.

    `keep` (rows of the table,) says which these are. `client` and `label` index into `clients` and `classes`;
    `split` indexes into SPLITS. `weight` (n,) is how often each row counts in mean and deviation.
    """

    keep: Bools
    client: np.ndarray
    clients: Names
    label: np.ndarray
    classes: tuple[str, ...]
    when: When
    at: np.ndarray
    has_zone: bool
    split: np.ndarray
    count: np.ndarray | None
    concept: np.ndarray | None
    expiry: np.ndarray | None
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.client)


def use_rows(keys: Keys, settings: TableSettings, bad: Bools, root: Path) -> UsedRows:
    """Decide which rows are used, and hold out tests.

    Rows are left out in this order: bad ones, those that never arrive, since and until, rare classes, clients
    with too few rows, and those beyond the limit.

    Args:
        keys: the columns of all rows, which are overwritten: millions of rows are in memory once.
        settings: the rules.
        bad: (rows,) rows that cannot be used.
        root: the table, for messages.

    Raises:
        DataFileError: no row is left, or a client has rows for tests only.
        ConfigurationError: a partition does not fit.
    """
    keep = ~bad & _in_time(keys, settings)
    if keys.count is not None:
        keep &= keys.count > 0
    _refuse_none(keep, root, "is good, arrives, and lies between since and until")
    if settings.classes is not None:
        size = sizes_of(keys.label, len(keys.classes), keep)
        commonest = np.zeros(len(size), dtype=np.bool_)
        commonest[np.argsort(-size, kind="stable")[: settings.classes]] = True
        for piece in pieces(len(keep)):
            keep[piece] &= commonest[keys.label[piece]]
    keys = _only(keys, keep)
    keys = _with_clients(keys, settings)
    clients = keys.clients
    if settings.min_samples > 1 or settings.limit is not None:
        chosen = _chosen(keys, settings, root)
        keys = _only(keys, chosen)
        keep[keep] = chosen
        del chosen
    client = keys.client
    assert client is not None
    present = _renumber(client, len(clients))
    with_rows = _renumber(keys.label, len(keys.classes))
    label = keys.label
    at, expiry = _arrivals(keys, settings, client, len(present))
    names = clients[present] if isinstance(clients, np.ndarray) else tuple(clients[i] for i in present)
    if keys.split is not None:
        split = keys.split
        refuse_test_only(client, split, names, root)
    else:
        generator = RandomStreams(settings.seed).generator("split")
        split = held_out(client, label, at, settings.test_share, generator).view(np.int8)
    if expiry is not None:
        refuse_out_of_turn(
            (client, split, at, expiry), lambda one: str(names[one]), keep, settings.when, root
        )
    return UsedRows(
        keep=keep,
        client=client,
        clients=names,
        label=label,
        classes=tuple(keys.classes[i] for i in with_rows),
        when=settings.when,
        at=at,
        has_zone=keys.has_zone,
        split=split,
        count=keys.count,
        concept=keys.concept,
        expiry=expiry,
        weight=_weights(settings, at, split, keys.count, root),
    )


def refuse_test_only(
    client: np.ndarray, split: np.ndarray, names: Names, root: Path, good: Bools | None = None
) -> None:
    """Raise DataFileError for a client with rows for tests and none for training, of the rows `good` (n,)."""
    of_split = [split == number if good is None else (split == number) & good for number in (TRAIN, TEST)]
    has = [sizes_of(client, len(names), where) > 0 for where in of_split]
    only = np.flatnonzero(~has[0] & has[1])
    if len(only):
        raise DataFileError(
            root,
            f"client {names[int(only[0])]} has rows for tests only ({len(only)} of {len(names)} clients "
            f"have); each needs one for training",
        )


def columns_of(rows: UsedRows, good: Bools) -> Iterator[dict[str, np.ndarray | pa.Array[Any]]]:
    """Yield the columns of `arrivals.parquet` in pieces of `CHUNK_ROWS`, those of the rows `good` (n,).

    They are in the order of a trace's table: (client, split, arrival).
    """
    order = rows_in_order(*_sorted_by(rows.client, rows.split, rows.at, rows.expiry))
    if not good.all():
        order = order[good[order]]
    names = None if isinstance(rows.clients, np.ndarray) else pa.array(rows.clients, pa.string())
    for first in range(0, len(order), CHUNK_ROWS):
        yield _columns_of(rows, order[first : first + CHUNK_ROWS], names)


def _sorted_by(*columns: np.ndarray | None) -> list[np.ndarray]:
    return [column for column in columns if column is not None]


def _columns_of(rows: UsedRows, order: np.ndarray, names: Any) -> dict[str, np.ndarray | pa.Array[Any]]:
    """The columns of the rows `order` (k,); the clients are `names`, or numbers if it is None."""
    codes: Any = pa.array(rows.client[order].astype(np.int32))
    columns: dict[str, np.ndarray | pa.Array[Any]] = {}
    columns["client"] = (
        rows.clients[rows.client[order]]
        if isinstance(rows.clients, np.ndarray)
        else pa.DictionaryArray.from_arrays(codes, names)
    )
    columns["label"] = rows.label[order]
    columns["sample"] = order.astype(np.int32)
    at = rows.at[order]
    instants: dict[str, Any] = {rows.when: pa.array(at)}
    if rows.expiry is not None:
        expiry = rows.expiry[order]
        instants[EXPIRY] = pa.array(expiry, mask=expiry == never(expiry))
    kind = pa.timestamp("us", "UTC" if rows.has_zone else None) if rows.when == "time" else pa.int32()
    columns |= {name: column.cast(kind) for name, column in instants.items()}
    splits: Any = pa.array(rows.split[order].astype(np.int64)).cast(pa.int8())
    columns["split"] = pa.DictionaryArray.from_arrays(splits, pa.array(SPLITS, pa.string()))
    for name in ("count", "concept"):
        values = getattr(rows, name)
        if values is not None:
            columns[name] = values[order]
    return columns


def _in_time(keys: Keys, settings: TableSettings) -> Bools:
    """(rows,) whether each row lies between `since` and `until`."""
    kept = np.ones(keys.num_rows, dtype=np.bool_)
    for key in ("since", "until"):
        bound: date | int | None = getattr(settings, key)
        if bound is not None:
            assert keys.at is not None  # the settings make sure of it
            limit = microseconds(bound) if isinstance(bound, date) else bound
            kept &= keys.at >= limit if key == "since" else keys.at < limit
    return kept


def _only(keys: Keys, keep: Bools) -> Keys:
    """The rows of `keys` with `keep` (rows,), whose columns are overwritten."""
    if keep.all():
        return keys
    names = ("client", "label", "at", "split", "count", "concept", "expiry")
    known = [name for name in names if getattr(keys, name) is not None]
    columns: list[Any] = _compressed([getattr(keys, name) for name in known], keep)
    return replace(keys, num_rows=len(columns[0]), **dict(zip(known, columns, strict=True)))


def _compressed(columns: list[np.ndarray], keep: Bools) -> list[np.ndarray]:
    """The values of `columns` (rows,) where `keep` (rows,), moved to their front: no second copy is made."""
    num = int(keep.sum())
    for column in columns:
        last = 0
        for piece in pieces(len(keep)):
            kept = column[piece][keep[piece]]
            column[last : last + len(kept)] = kept
            last += len(kept)
    return [column[:num] for column in columns]


def _chosen(keys: Keys, settings: TableSettings, root: Path) -> Bools:
    """(n,) whether each row is of a client with `min_samples` rows, and within the limit."""
    client = keys.client
    assert client is not None
    enough = sizes_of(client, len(keys.clients)) >= settings.min_samples
    chosen = np.ones(len(client), dtype=np.bool_)
    for piece in pieces(len(client)):
        chosen[piece] = enough[client[piece]]
    _refuse_none(chosen, root, f"belongs to a client with min_samples = {settings.min_samples} rows")
    num = int(chosen.sum())
    if settings.limit is not None and settings.limit < num:
        spread = np.zeros(num, dtype=np.bool_)
        for piece in pieces(settings.limit):
            spread[np.arange(piece.start, piece.stop) * num // settings.limit] = True
        chosen[chosen] = spread
    return chosen


def _with_clients(keys: Keys, settings: TableSettings) -> Keys:
    """The keys with a client of each row: those of the column, or those that the partition deals."""
    if keys.client is not None:
        return keys
    assert settings.partition is not None  # the settings make sure of it
    partition = settings.partition.build()
    labels = keys.label.astype(np.int64)
    _renumber(labels, len(keys.classes))
    generator = RandomStreams(settings.seed).generator("partition")
    client = partition.divide(Samples(labels), settings.clients, generator)
    return replace(keys, client=client.astype(np.int32), clients=np.arange(int(client.max()) + 1))


def _arrivals(
    keys: Keys, settings: TableSettings, client: np.ndarray, num_clients: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """(n,) when each row arrives: the time, the data step, or the rank within the client; (n,) its expiry."""
    if settings.when != "order":
        return np.zeros(len(client), dtype=np.int32) if keys.at is None else keys.at, keys.expiry
    order = rows_in_order(*_sorted_by(client, keys.at, keys.expiry))
    size = sizes_of(client, num_clients)
    start = np.cumsum(size) - size
    rank = np.empty(len(client), dtype=np.int32)
    for piece in pieces(len(client)):
        rows = order[piece]
        rank[rows] = np.arange(piece.start, piece.stop) - start[client[rows]]
    if keys.at is None or keys.expiry is None:
        return rank, None
    return rank, expiring_ranks(keys.at, keys.expiry, client, order)


def _weights(
    settings: TableSettings, at: np.ndarray, split: np.ndarray, count: np.ndarray | None, root: Path
) -> np.ndarray:
    """(n,) how often each row counts: one for training that is owned at the start, as often as it arrives."""
    counts: np.ndarray = split == TRAIN
    if settings.retain is not None:
        if settings.when == "time":
            start = microseconds(settings.since) if isinstance(settings.since, date) else int(at.min())
            counts &= at < start + settings.retain * MICROSECONDS_PER_DAY
        elif settings.when == "step":
            counts &= (at <= 0) & (at > -settings.retain)
        else:
            counts &= at < settings.retain
        if not counts.any():
            raise DataFileError(
                root, f"has no training row that clients own at the start with retain = {settings.retain:g}"
            )
    return counts if count is None else counts * count


def _renumber(codes: np.ndarray, most: int) -> Ints:
    """Renumber `codes` (n,), in place, without those that do not occur; returns the old number of each."""
    occurs = sizes_of(codes, most) > 0
    if not occurs.all():
        number = np.cumsum(occurs) - 1
        for piece in pieces(len(codes)):
            codes[piece] = number[codes[piece]]
    return np.flatnonzero(occurs)


def _refuse_none(keep: Bools, root: Path, rule: str) -> None:
    if not keep.any():
        raise DataFileError(root, f"no row of it {rule}")
