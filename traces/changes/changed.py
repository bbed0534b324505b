"""A trace of any source after changes: rows that differ, what is done to their features, and the truth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS
from traces.changes.chosen import Samples
from traces.changes.concepts import Received, Truth, true_concepts
from traces.changes.features import Entry, FeatureChanges, no_changes, refuse_unfit_features
from traces.changes.labels import label_map, own_swaps
from traces.changes.rows import (
    ADVICE,
    Applied,
    Differing,
    DifferingRows,
    Times,
    curve_at,
    curve_steps,
    differing_rows,
    is_on,
)
from traces.changes.settings import Change, Swap
from traces.changes.spans import Run, draw_spans
from traces.draw import refuse_oversize_in_memory
from traces.tables.base import TRAIN, Table
from traces.tables.changed import ChangedRows, ChangedTable
from traces.trace import Trace


def with_changes(
    trace: Trace,
    changes: Sequence[Change],
    rounds: int,
    streams: RandomStreams,
    scratch: Path | None = None,
    names: Sequence[str] = (),
) -> Trace:
    """The trace after changes, applied in their order.

    Its `concepts` are one for each set of changes that are on, composed with those that the trace knew.

    Args:
        trace: the trace before them; it is returned if there are none.
        changes: the changes.
        rounds: the rounds of the run.
        streams: the random streams of the run.
        scratch: folder for the file of a large table; None: the system's temporary folder.
        names: the names of the clients, if they have some.

    Raises:
        ConfigurationError: a change does not fit the run, the clients or the samples, changes nothing, or
            cannot apply beside another one; or there are too many samples.
        RunError: there is no room for the file of a large table.
    """
    if not changes:
        return trace
    refuse_pairs(changes)
    steps = -(-rounds // trace.rounds_per_step)
    # The table of concepts has a number for each client at each data step.
    refuse_oversize_in_memory((steps + 1) * trace.num_clients, ADVICE)
    ahead = 1 if trace.test_then_train else 0
    # With test_on = "next" the test samples of the next step arrive with it; otherwise they do one step
    # before.
    of_tests = ahead if trace.test_on == "present" else 0
    times = Times(steps, trace.rounds_per_step, (trace.retain_steps, trace.test_retain_steps), (0, of_tests))
    run = Run(trace.num_clients, steps, trace.rounds_per_step, streams, bool(ahead), names)
    applied, maps = [], []
    for number, change in enumerate(changes):
        one, of_values = _drawn(change, f"trace.changes.{number}", number, trace, run, times)
        applied.append(one)
        maps.append(of_values)
    differing = differing_rows(trace.table, applied, times)
    samples = Samples(differing.rows, trace.table, streams)
    label, features, chain = _applied(trace, applied, maps, differing.rows, samples, times, streams)
    table = ChangedTable(
        trace.table,
        _changed_rows(trace.table, differing, label, chain, samples),
        scratch,
        last_step=steps - 1,
    )
    truth = _truth(trace, applied, differing, times, tests_ahead=bool(ahead))
    return trace.changed(table, truth.concepts, truth.test_concepts, features)


def refuse_pairs(changes: Sequence[Change]) -> None:
    """ConfigurationError for the first two changes that cannot both apply."""
    for (one, first), (other, second) in combinations(enumerate(changes), 2):
        swaps = first.is_own_swap or second.is_own_swap
        if swaps and first.changes_labels and second.changes_labels:
            raise ConfigurationError(
                f"trace.changes.{one} ({first.names[0]}) and trace.changes.{other} ({second.names[0]}) "
                f"cannot both apply: own_swap draws from the labels that a client holds, and the other one "
                f"changes these; leave out one"
            )


def _drawn(
    change: Change, key: str, number: int, trace: Trace, run: Run, times: Times
) -> tuple[Applied, Ints | None]:
    """A change with its spans, and (values of spans, num_labels) what labels become; None for features."""
    if change.is_own_swap:
        static = trace.table.last_step <= 0 and times.retain[TRAIN] >= times.steps
        swaps = own_swaps(change, key, run, trace.table, times.retain[TRAIN], trace.num_labels, static=static)
        return Applied(change, key, swaps.spans), swaps.maps
    spans = draw_spans(change, key, run)
    if change.changes_labels:
        return Applied(change, key, spans), _label_maps(change, key, number, trace, run)
    for operation in change.what:
        assert not isinstance(operation, str | Swap), "it changes features"
        refuse_unfit_features(operation, trace.sample_shape, key)
    return Applied(change, key, spans), None


def _label_maps(change: Change, key: str, number: int, trace: Trace, run: Run) -> Ints:
    """(operations, num_labels) what the operations of a change of labels make of each label."""
    if not (change.magnitude.is_constant and change.magnitude.start == 1):
        raise ConfigurationError(
            f"{key}.magnitude: {change.names[0]} changes labels, which has no magnitude; leave it out"
        )
    operations = [operation for operation in change.what if isinstance(operation, str | Swap)]
    maps = [label_map(operation, trace.num_labels, key, run.streams, number) for operation in operations]
    return np.array(maps)


def _applied(
    trace: Trace,
    applied: Sequence[Applied],
    maps: Sequence[Ints | None],
    rows: Differing,
    samples: Samples,
    times: Times,
    streams: RandomStreams,
) -> tuple[np.ndarray, FeatureChanges | None, Ints]:
    """(n,) the labels of all rows, what is done to features, if anything, and (n,) the chain of each row.

    Raises ConfigurationError for a change that changes no sample.
    """
    stored = trace.table.take("label", rows.origin)
    label, chain = stored.astype(np.int64), np.zeros(len(rows.slot), dtype=np.int64)
    features = None
    for number, (change, of_values) in enumerate(zip(applied, maps, strict=True)):
        reached = _reached(change, rows, times)
        if of_values is not None:
            some = reached.some & _chosen(change.change, samples, reached.elapsed, times, number)
            _refuse_without_effect(change, some)
            label[some] = of_values[reached.value[some], label[some]]
            continue
        if features is None:
            features = no_changes(trace.sample_shape, trace.samples.normal, streams)
        longer = _chained(change.change, features, chain, reached, samples, times, number, streams)
        _refuse_without_effect(change, longer != chain)
        chain = longer
    return label.astype(stored.dtype), features, chain


class Reached(NamedTuple):
    """For each row, (n,): whether a change is on for it, the value of its span, and the steps since then."""

    some: Bools
    value: Ints
    elapsed: Ints


def _reached(change: Applied, rows: Differing, times: Times) -> Reached:
    """What a change is for each of `rows`; ConfigurationError if it is on for none."""
    span = is_on(change, rows, times)
    some = span >= 0
    _refuse_without_effect(change, some)
    at = rows.carried(change.change, times)
    value, start = change.spans.value[span], change.spans.start[span]
    return Reached(some, np.where(some, value, 0), np.where(some, at - start, 0))


def _refuse_without_effect(change: Applied, changed: Bools) -> None:
    """ConfigurationError if a change changes none of the rows, `changed` (n,)."""
    if not changed.any():
        raise ConfigurationError(
            f"{change.key}: {', '.join(change.change.names)} changes no sample: of its clients and splits "
            f"none is held or arrives while it is on, or its share or magnitude is too small"
        )


def _chosen(change: Change, samples: Samples, elapsed: Ints, times: Times, *key: int) -> Bools:
    """(n,) whether the sample of each row is of the share that changes, `elapsed` (n,) steps after onset."""
    if change.samples.is_constant and change.samples.start == 1:
        return np.ones(len(elapsed), dtype=np.bool_)
    return samples.chosen(curve_at(change.samples, elapsed, times.rounds_per_step), *key)


def _chained(
    change: Change,
    features: FeatureChanges,
    chain: Ints,
    reached: Reached,
    samples: Samples,
    times: Times,
    number: int,
    streams: RandomStreams,
) -> Ints:
    """(n,) the chains of all rows after a change of features.

    If it is cumulative, each data step of its curves adds an entry, on samples drawn anew; otherwise a sample
    has the entry of the present one.
    """
    last = min(curve_steps(change, times.rounds_per_step), times.steps)
    magnitude = curve_at(change.magnitude, np.arange(last + 1), times.rounds_per_step)
    starts = streams.generator("changed features", number).integers(0, 2**32, size=last + 1)
    first = len(features.entries)
    for step in range(last + 1):
        start = int(starts[step if change.cumulative else 0])
        for operation in change.what:
            assert not isinstance(operation, str | Swap), "it changes features"
            features.entries.append(Entry(operation, float(magnitude[step]), start))
    if not change.cumulative:
        level = np.minimum(reached.elapsed, last)
        some = reached.some & (magnitude[level] > 0) & _chosen(change, samples, level, times, number)
        return features.extended(chain, some, first + level * len(change.what) + reached.value)
    for step in np.flatnonzero(magnitude > 0).tolist():
        level = np.full(len(chain), step)
        some = reached.some & (reached.elapsed >= step) & _chosen(change, samples, level, times, number, step)
        chain = features.extended(chain, some, first + level * len(change.what) + reached.value)
    return chain


def _changed_rows(
    table: Table, differing: DifferingRows, label: np.ndarray, chain: Ints, samples: Samples
) -> ChangedRows:
    """The columns of the rows that differ."""
    rows = differing.rows
    operations = sample = None
    if chain.any():
        operations = chain.astype(np.int32)
        sample = (samples.keys("changed features")[:, 0] & np.uint64(2**32 - 1)).astype(np.uint32)[
            samples.of_row
        ]
    return ChangedRows(
        slots=differing.slots,
        since=differing.since,
        number=np.searchsorted(differing.slots, rows.slot),
        arrival=rows.arrival,
        born=rows.born,
        label=label,
        image=table.take("image", rows.origin),
        noise_start=table.take("noise_start", rows.origin),
        operations=operations,
        sample=sample,
    )


def _truth(
    trace: Trace, applied: Sequence[Applied], differing: DifferingRows, times: Times, *, tests_ahead: bool
) -> Truth:
    """The true concepts of the trace after the changes."""
    clients = np.unique(np.concatenate([change.spans.client for change in applied]))
    shape = (len(SPLITS), times.steps + 1, len(clients))
    first = np.zeros(shape, dtype=np.bool_)
    for split, ahead in enumerate(times.ahead):
        for step in range(times.steps + 1):
            since = trace.table.first_step if step == 0 else step - ahead
            begin, end = trace.table.ranges(clients, split, since, step - ahead + 1)
            first[split, step] = end > begin
    # The last row is of tests alone, or the one before again.
    first[TRAIN if tests_ahead else slice(None), -1] = tests_ahead
    rows = differing.rows
    sent = np.flatnonzero(rows.arrival > rows.born)
    again = first.copy()
    again[rows.slot[sent] % len(SPLITS), rows.arrival[sent], np.searchsorted(clients, rows.client[sent])] = (
        True
    )
    before = trace.concepts
    if before is None:
        before = np.zeros((times.steps + 1, trace.num_clients), dtype=np.int64)
    return true_concepts(applied, before, Received(clients, first, again), tests_ahead=tests_ahead)
