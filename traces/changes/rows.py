"""Which rows differ from those of the table before: samples that are sent anew, and what arrives changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from emulator.arrays import NO_IDS, Bools, Ints
from traces.arrivals import SPLITS
from traces.changes.settings import Change, Curve
from traces.changes.spans import Spans, steps_of_spans
from traces.draw import refuse_oversize_in_memory
from traces.tables.base import NEVER, Table, rows_of_ranges

ADVICE = "trace.clients, samples_per_step or round.rounds, raise every, or change fewer clients"


class Applied(NamedTuple):
    """A change: its settings, the key that names it in messages, and the spans in which it is on for whom."""

    settings: Change
    key: str
    spans: Spans


class Times(NamedTuple):
    """The data steps of a run, and how long samples are held.

    `retain` has the data steps for which training and test samples are held. `ahead` is 1 for a split whose
    samples of a data step carry the changes of the next one, as test samples do that are trained on next.
    """

    steps: int
    rounds_per_step: int
    retain: tuple[int, int]
    ahead: tuple[int, int]


class RowColumns(NamedTuple):
    """The rows that differ, as columns of shape (n,), in order of (slot, arrival, born).

    A slot is 2 * client + split. `arrival` is the data step at which the row arrives, `born` that at which
    its sample arrived first, and `origin` the row of the table before that has the sample.
    """

    slot: np.ndarray
    arrival: np.ndarray
    born: np.ndarray
    origin: np.ndarray

    @property
    def client(self) -> np.ndarray:
        """(n,) the client of each row."""
        return np.asarray(self.slot // len(SPLITS))

    def carried(self, change: Change, times: Times) -> Ints:
        """(n,) the data step whose changes each row carries: that of the sample's arrival, or of the row's.

        What a client owns from the start counts as arrived at step 0.
        """
        at = self.arrival if change.on == "held" else self.born
        steps: Ints = np.maximum(at, 0) + np.array(times.ahead)[self.slot % len(SPLITS)]
        return steps


class Differing(NamedTuple):
    """All rows that differ, the slots (k,), ascending, that have some, and the first step (k,) of each."""

    rows: RowColumns
    slots: Ints
    since: Ints


def differing_rows(table: Table, applied: Sequence[Applied], times: Times) -> Differing:
    """Find the rows of the slots that some change reaches: what it sends anew, and all that arrives later.

    A slot's rows begin where it first differs. If that is by a reset, with which all that a client holds is
    sent anew, they begin with what is sent; if it is by a changed sample that arrives, with all that is held
    then.

    Args:
        table: the rows before any change.
        applied: the changes.
        times: the data steps, and how long samples are held.
    """
    arriving = _arriving(table, applied, times)
    again = _sent_anew(table, *_resets(applied, times), times)
    changed = is_changed(arriving, applied, times)
    # By slot: the step of the first changed sample that arrives, and of the first reset.
    first_changed, first_reset = np.full((2, 2 * table.num_clients), NEVER)
    np.minimum.at(first_changed, arriving.slot[changed], arriving.arrival[changed])
    np.minimum.at(first_reset, again.slot, again.arrival)
    since = np.minimum(first_changed, first_reset)
    slots = np.flatnonzero(since < NEVER)
    retain = np.tile(times.retain, table.num_clients)
    oldest = np.where(first_reset == since, since, since - retain + 1)
    # What a client owns from the start changes with it.
    for steps in (oldest, since):
        steps[since <= 0] = table.first_step
    oldest[since == NEVER] = NEVER
    kept = np.flatnonzero(arriving.arrival >= oldest[arriving.slot])
    refuse_oversize_in_memory(len(kept) + len(again.slot), ADVICE)
    parts = [RowColumns(*(column[kept] for column in arriving)), again]
    rows = RowColumns(*map(np.concatenate, zip(*parts, strict=True)))
    # NOTE: by one number, as a stable sort of parts that are sorted merges them: a fraction of a lexsort.
    low, high = int(rows.born.min(initial=0)), int(rows.arrival.max(initial=0))
    width = high - low + 1
    key = rows.slot.astype(np.int64)
    for step in (rows.arrival, rows.born):
        key *= width
        key += step - low
    order = np.argsort(key, kind="stable")
    return Differing(RowColumns(*(column[order] for column in rows)), slots, since[slots])


def is_on(change: Applied, rows: RowColumns, times: Times) -> Ints:
    """(n,) the span of a change that is on for each of `rows`; -1 for none, or one of the other split."""
    span = change.spans.at(rows.client.astype(np.int64), rows.carried(change.settings, times))
    of_split = np.isin(SPLITS, change.settings.splits)
    return np.where(of_split[rows.slot % len(SPLITS)], span, -1)


def is_changed(rows: RowColumns, applied: Sequence[Applied], times: Times) -> Bools:
    """(n,) whether some change is on for each of `rows`."""
    changed = np.zeros(len(rows.slot), dtype=np.bool_)
    for change in applied:
        changed |= is_on(change, rows, times) >= 0
    return changed


def curve_at(curve: Curve, elapsed: Ints, rounds_per_step: int) -> np.ndarray:
    """(n,) the values of a curve so many data steps after the onset.

    >>> curve = Curve.model_validate({"from": 0, "to": 1, "over": 4})
    >>> curve_at(curve, np.array([0, 1, 2, 3]), 2).tolist()
    [0.0, 0.5, 1.0, 1.0]
    """
    if curve.is_constant:
        return np.full(len(elapsed), curve.start)
    moved = np.clip(elapsed * rounds_per_step, 0, curve.over) / curve.over
    return np.asarray(curve.start + (curve.end - curve.start) * moved)


def curve_steps(change: Change, rounds_per_step: int) -> int:
    """The data steps after the onset at which a curve of the change moves."""
    curves = (change.samples, change.magnitude)
    return max(0 if curve.is_constant else -(-curve.over // rounds_per_step) for curve in curves)


def _resets(applied: Sequence[Applied], times: Times) -> tuple[Ints, Ints]:
    """(n,) slots and (n,) data steps at which what a client holds changes, each pair once, by step."""
    pairs: list[tuple[Ints, Ints]] = []
    for change, _, spans in applied:
        if change.on != "held":
            continue
        client, step = steps_of_spans(spans, times.steps)
        for later in range(1, min(curve_steps(change, times.rounds_per_step), times.steps) + 1):
            at = spans.start + later
            within = (at < spans.stop) & (at >= 1) & (at < times.steps)
            client, step = np.append(client, spans.client[within]), np.append(step, at[within])
        for split, name in enumerate(SPLITS):
            if name in change.splits and times.retain[split] > 1:
                pairs.append((client * len(SPLITS) + split, step))
    if not pairs:
        return NO_IDS, NO_IDS
    slot, step = (np.concatenate(columns) for columns in zip(*pairs, strict=True))
    num_slots = int(slot.max(initial=0)) + 1
    keys = np.unique(step * num_slots + slot)
    return keys % num_slots, keys // num_slots


def _sent_anew(table: Table, slot: Ints, step: Ints, times: Times) -> RowColumns:
    """The rows that are sent anew at resets, slot (n,) at step (n,): what each held before that step."""
    found = []
    for at in np.unique(step).tolist():
        some = slot[step == at]
        for split, retain in enumerate(times.retain):
            of_split = some[some % len(SPLITS) == split]
            clients = of_split // len(SPLITS)
            first, last = table.held(clients, split, at, retain)
            arriving, _ = table.ranges(clients, split, at, at + 1)  # what arrives then is not sent anew
            found.append((of_split, first, np.clip(arriving, first, last), at))
    # Before any of them is made.
    refuse_oversize_in_memory(sum(int((last - first).sum()) for _, first, last, _ in found), ADVICE)
    parts = [_rows_of(table, *ranges) for ranges in found]
    return RowColumns(*map(np.concatenate, zip(_no_rows(), *parts, strict=True)))


def _arriving(table: Table, applied: Sequence[Applied], times: Times) -> RowColumns:
    """The rows of the table before that can differ, or be held when one does: training, then test samples."""
    parts = [_no_rows()]
    for split, name in enumerate(SPLITS):
        spans = [change.spans for change in applied if name in change.settings.splits]
        clients = np.unique(np.concatenate([NO_IDS, *(some.client for some in spans)]))
        starts = [int(some.start.min()) for some in spans if len(some.start)]
        earliest = min(starts, default=0) - times.ahead[split]
        since = table.first_step if earliest <= 0 else earliest - times.retain[split] + 1
        first, last = table.ranges(clients, split, since, table.last_step + 1)
        refuse_oversize_in_memory(int((last - first).sum()), ADVICE)
        parts.append(_rows_of(table, clients * len(SPLITS) + split, first, last))
    return RowColumns(*map(np.concatenate, zip(*parts, strict=True)))


def _rows_of(table: Table, slots: Ints, first: Ints, last: Ints, arrival: int | None = None) -> RowColumns:
    """The samples of `slots` (n,) in the ranges [first, last), as they first arrive, or at `arrival`."""
    rows = rows_of_ranges(first, last)
    born = table.arrival(rows).astype(np.int32)
    slot = np.repeat(slots.astype(np.int32), last - first)
    return RowColumns(slot, born if arrival is None else np.full_like(born, arrival), born, rows)


def _no_rows() -> RowColumns:
    none = np.zeros(0, dtype=np.int32)
    return RowColumns(none, none, none, NO_IDS)
