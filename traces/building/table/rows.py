"""Which rows of a table are used, by which client, when, and for what: training or tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS
from traces.building.table.keys import Keys, Names
from traces.building.table.ordering import chunks_of_clients, rows_in_order
from traces.building.table.settings import TableSettings
from traces.calendar import MICROSECONDS_PER_DAY, microseconds
from traces.files.arrivals import When
from traces.held_out import held_out
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
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.client)


def use_rows(keys: Keys, settings: TableSettings, bad: Bools, root: Path) -> UsedRows:
    """Decide which rows are used, and hold out tests.

    Rows are left out in this order: bad ones, those that never arrive, since and until, rare classes, clients
    with too few rows, and those beyond the limit.

    Args:
        keys: the columns of all rows.
        settings: the rules.
        bad: (rows,) rows that cannot be used.
        root: the table, for messages.

    Raises:
        DataFileError: no row is left, or a client has rows for tests only.
        ConfigurationError: a partition does not fit.
    """
    rows = np.flatnonzero(~bad & _in_time(keys, settings))
    if keys.count is not None:
        rows = rows[keys.count[rows] > 0]
    _refuse_none(rows, root, "is good, arrives, and lies between since and until")
    if settings.classes is not None:
        size = np.bincount(keys.label[rows], minlength=len(keys.classes))
        commonest = np.zeros(len(size), dtype=np.bool_)
        commonest[np.argsort(-size, kind="stable")[: settings.classes]] = True
        rows = rows[commonest[keys.label[rows]]]
    client, clients = _clients(keys, settings, rows)
    if settings.min_samples > 1:
        enough = np.bincount(client, minlength=len(clients)) >= settings.min_samples
        rows, client = rows[enough[client]], client[enough[client]]
        _refuse_none(rows, root, f"belongs to a client with min_samples = {settings.min_samples} rows")
    if settings.limit is not None and settings.limit < len(rows):
        chosen = np.arange(settings.limit) * len(rows) // settings.limit
        rows, client = rows[chosen], client[chosen]
    client, present = _renumbered(client, len(clients))
    label, with_rows = _renumbered(keys.label[rows], len(keys.classes))
    at = _arrivals(keys, settings, rows, client)
    names = clients[present] if isinstance(clients, np.ndarray) else tuple(clients[i] for i in present)
    if keys.split is not None:
        split = keys.split[rows]
        refuse_test_only(client, split, names, root)
    else:
        generator = RandomStreams(settings.seed).generator("split")
        split = np.zeros(len(rows), dtype=np.int8)
        for some in chunks_of_clients(client, len(names)):  # the same as at once, in less memory
            split[some] = held_out(client[some], label[some], at[some], settings.test_share, generator)
    count = None if keys.count is None else keys.count[rows]
    keep = np.zeros(keys.num_rows, dtype=np.bool_)
    keep[rows] = True
    return UsedRows(
        keep=keep,
        client=client,
        clients=names,
        label=label.astype(np.int16),
        classes=tuple(keys.classes[i] for i in with_rows),
        when=settings.when,
        at=at,
        has_zone=keys.has_zone,
        split=split,
        count=count,
        concept=None if keys.concept is None else keys.concept[rows],
        weight=_weights(settings, at, split, count, root),
    )


def refuse_test_only(client: np.ndarray, split: np.ndarray, names: Names, root: Path) -> None:
    """Raise DataFileError for a client that has rows for tests and none for training."""
    has = [np.bincount(client[split == number], minlength=len(names)) > 0 for number in (TRAIN, TEST)]
    only = np.flatnonzero(~has[0] & has[1])
    if len(only):
        raise DataFileError(
            root,
            f"client {names[int(only[0])]} has rows for tests only ({len(only)} of {len(names)} clients "
            f"have); each needs one for training",
        )


def columns_of(rows: UsedRows, left_out: Ints) -> dict[str, np.ndarray | pa.Array[Any]]:
    """The columns of `arrivals.parquet`, in the order of a trace's table: (client, split, arrival).

    `left_out` (k,) are rows, numbered as in `rows`, that turned out to be bad.
    """
    order = rows_in_order(rows.client, rows.split, rows.at)
    if len(left_out):
        order = order[~np.isin(order, left_out)]
    names = rows.clients
    codes: Any = pa.array(rows.client[order].astype(np.int32))
    columns: dict[str, np.ndarray | pa.Array[Any]] = {}
    columns["client"] = (
        names[rows.client[order]]
        if isinstance(names, np.ndarray)
        else pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()))
    )
    columns["label"] = rows.label[order]
    columns["sample"] = order.astype(np.int32)
    at = rows.at[order]
    if rows.when == "time":
        columns["time"] = pa.array(at).cast(pa.timestamp("us", "UTC" if rows.has_zone else None))
    else:
        columns[rows.when] = at.astype(np.int32)
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


def _clients(keys: Keys, settings: TableSettings, rows: Ints) -> tuple[np.ndarray, Names]:
    """The client of each of `rows` (n,), and all clients."""
    if keys.client is not None:
        return keys.client[rows], keys.clients
    assert settings.partition is not None  # the settings make sure of it
    partition = settings.partition.build()
    labels, _ = _renumbered(keys.label[rows], len(keys.classes))
    generator = RandomStreams(settings.seed).generator("partition")
    client = partition.divide(Samples(labels.astype(np.int64)), settings.clients, generator)
    return client.astype(np.int32), np.arange(int(client.max()) + 1)


def _arrivals(keys: Keys, settings: TableSettings, rows: Ints, client: np.ndarray) -> np.ndarray:
    """(n,) when each of `rows` arrives: the time, the data step, or the rank within the client."""
    if settings.when != "order":
        return np.zeros(len(rows), dtype=np.int32) if keys.at is None else keys.at[rows]
    at = rows if keys.at is None else keys.at[rows]
    order = rows_in_order(client, at)
    size = np.bincount(client)
    start = np.repeat(np.cumsum(size) - size, size)
    rank = np.empty(len(rows), dtype=np.int32)
    rank[order] = np.arange(len(rows)) - start
    return rank


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


def _renumbered(codes: np.ndarray, most: int) -> tuple[np.ndarray, Ints]:
    """`codes` (n,) renumbered without those that do not occur; and the old number of each that does."""
    occurs = np.bincount(codes, minlength=most) > 0
    present = np.flatnonzero(occurs)
    return (codes if occurs.all() else (np.cumsum(occurs) - 1).astype(np.int32)[codes]), present


def _refuse_none(rows: Ints, root: Path, rule: str) -> None:
    if len(rows) == 0:
        raise DataFileError(root, f"no row of it {rule}")
