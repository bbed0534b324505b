"""Which rows of a table are used, when they arrive, and for what: training or tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools
from emulator.errors import DataFileError
from emulator.seeding import RandomStreams
from traces.building.rows import TEST, TRAIN, Rows, renumber, spread, with_tests
from traces.building.table.expiry import expiring_ranks, refuse_out_of_turn
from traces.building.table.settings import TableSettings
from traces.calendar import MICROSECONDS_PER_DAY, microseconds
from traces.ordering import pieces, rows_in_order, sizes_of
from traces.partitions import Samples


class UsedRows(NamedTuple):
    """The `rows` of a table that are used (n,), in the order of the files, which is that of `features.npy`.

    `keep` (rows of the table,) says which these are; `weight` (n,) is how often each row counts in mean and
    deviation.
    """

    rows: Rows
    keep: Bools
    weight: np.ndarray


def use_rows(rows: Rows, settings: TableSettings, bad: Bools, root: Path) -> UsedRows:
    """Decide which rows of a table are used, and hold out tests.

    Rows are left out in this order: bad ones, those that never arrive, since and until, rare classes, clients
    with too few rows, and those beyond the limit.

    Args:
        rows: all rows, whose columns are overwritten: millions of rows are in memory once.
        settings: the rules.
        bad: (rows,) rows that cannot be used.
        root: the table, for messages.

    Raises:
        DataFileError: no row is left, or a client has rows for tests only.
        ConfigurationError: a partition does not fit.
    """
    keep = ~bad & _in_time(rows, settings)
    if rows.count is not None:
        keep &= rows.count > 0
    _refuse_none(keep, root, "is good, arrives, and lies between since and until")
    if settings.classes is not None:
        size = sizes_of(rows.label, len(rows.classes), keep)
        commonest = np.zeros(len(size), dtype=np.bool_)
        commonest[np.argsort(-size, kind="stable")[: settings.classes]] = True
        for piece in pieces(len(keep)):
            keep[piece] &= commonest[rows.label[piece]]
    rows = _with_clients(rows.only(keep), settings)
    if settings.min_samples > 1 or settings.limit is not None:
        chosen = _chosen(rows, settings, root)
        rows = rows.only(chosen)
        keep[keep] = chosen
        del chosen
    rows = rows.with_used_clients()
    if not rows.keeps_classes:
        with_rows = renumber(rows.label, len(rows.classes))
        rows = replace(rows, classes=tuple(rows.classes[number] for number in with_rows.tolist()))
    if settings.when == "order":
        rows = _by_rank(rows)
    if rows.split is None:
        rows = with_tests(rows, settings.seed, settings.test_share)
    else:
        refuse_test_only(rows, root)
    if rows.expiry is not None:
        refuse_out_of_turn(rows, keep, root)
    return UsedRows(rows, keep, _weights(rows, settings, root))


def refuse_test_only(rows: Rows, root: Path, good: Bools | bool = True) -> None:
    """Raise DataFileError for a client with rows for tests and none for training, of the rows `good` (n,)."""
    only = np.flatnonzero(~rows.have(TRAIN, good) & rows.have(TEST, good))
    if len(only):
        raise DataFileError(
            root,
            f"client {rows.clients[int(only[0])]} has rows for tests only ({len(only)} of "
            f"{len(rows.clients)} clients have); each needs one for training",
        )


def _in_time(rows: Rows, settings: TableSettings) -> Bools:
    """(rows,) whether each row lies between `since` and `until`."""
    kept = np.ones(len(rows), dtype=np.bool_)
    for key in ("since", "until"):
        bound: date | int | None = getattr(settings, key)
        if bound is not None:
            limit = microseconds(bound) if isinstance(bound, date) else bound
            kept &= rows.at >= limit if key == "since" else rows.at < limit
    return kept


def _chosen(rows: Rows, settings: TableSettings, root: Path) -> Bools:
    """(n,) whether each row is of a client with `min_samples` rows, and within the limit."""
    enough = sizes_of(rows.client, len(rows.clients)) >= settings.min_samples
    chosen = np.ones(len(rows), dtype=np.bool_)
    for piece in pieces(len(rows)):
        chosen[piece] = enough[rows.client[piece]]
    _refuse_none(chosen, root, f"belongs to a client with min_samples = {settings.min_samples} rows")
    num = int(chosen.sum())
    if settings.limit is not None and settings.limit < num:
        within = np.zeros(num, dtype=np.bool_)
        within[spread(num, settings.limit)] = True
        chosen[chosen] = within
    return chosen


def _with_clients(rows: Rows, settings: TableSettings) -> Rows:
    """The rows with their clients: those of a column, or those that the partition deals."""
    if settings.partition is None:
        return rows
    partition = settings.partition.build()
    labels = rows.label.astype(np.int64)
    renumber(labels, len(rows.classes))
    generator = RandomStreams(settings.seed).generator("partition")
    client = partition.divide(Samples(labels), settings.clients, generator)
    return replace(rows, client=client.astype(np.int32), clients=np.arange(int(client.max()) + 1))


def _by_rank(rows: Rows) -> Rows:
    """The rows, arriving at their ranks within their clients; they expire at ranks, too."""
    order = rows_in_order(*(each for each in (rows.client, rows.at, rows.expiry) if each is not None))
    size = sizes_of(rows.client, len(rows.clients))
    start = np.cumsum(size) - size
    rank = np.empty(len(rows), dtype=np.int32)
    for piece in pieces(len(rows)):
        some = order[piece]
        rank[some] = np.arange(piece.start, piece.stop) - start[rows.client[some]]
    expiry = rows.expiry
    if expiry is not None:
        expiry = expiring_ranks(rows.at, expiry, rows.client, order)
    return replace(rows, at=rank, expiry=expiry)


def _weights(rows: Rows, settings: TableSettings, root: Path) -> np.ndarray:
    """(n,) how often each row counts: one for training that is owned at the start, as often as it arrives."""
    assert rows.split is not None
    counts: np.ndarray = rows.split == TRAIN
    if settings.retain is not None:
        if rows.when == "time":
            start = microseconds(settings.since) if isinstance(settings.since, date) else int(rows.at.min())
            counts &= rows.at < start + settings.retain * MICROSECONDS_PER_DAY
        elif rows.when == "step":
            counts &= (rows.at <= 0) & (rows.at > -settings.retain)
        else:
            counts &= rows.at < settings.retain
        if not counts.any():
            raise DataFileError(
                root, f"has no training row that clients own at the start with retain = {settings.retain:g}"
            )
    return counts if rows.count is None else counts * rows.count


def _refuse_none(keep: Bools, root: Path, rule: str) -> None:
    if not keep.any():
        raise DataFileError(root, f"no row of it {rule}")
