"""A trace of any source after changes: rows that differ, what is done to their features, and the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS
from traces.changes.application import Application
from traces.changes.chosen import Samples
from traces.changes.concepts import Received, Truth, digits_of, true_concepts
from traces.changes.features import check_features, empty_feature_changes
from traces.changes.labels import label_map, own_swaps
from traces.changes.rows import ADVICE, Applied, Differing, Times, differing_rows
from traces.changes.settings import Change, OfFeatures, Swap
from traces.changes.spans import Run, draw_spans
from traces.draw import refuse_oversize_in_memory
from traces.drifts import Turns
from traces.tables.base import TRAIN, Table
from traces.tables.changed import ChangedRows, ChangedTable
from traces.trace import Trace

Rule = Callable[[np.random.Generator], Ints]
"""Draws a rule, and returns the label that it gives to each image of a trace: (images,)."""

Made = tuple[RandomStreams, Rule | None]
"""The random streams of a trace's own data, and the rule that makes its labels, if one does."""


def with_changes(
    trace: Trace,
    changes: Sequence[Change],
    rounds: int,
    streams: RandomStreams,
    scratch: Path | None = None,
    names: Sequence[str] = (),
    own: RandomStreams | None = None,
    rule: Rule | None = None,
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
        own: the random streams of the trace's own data; None: those of the run.
        rule: what labels become by a rule that is drawn; None: the data are not made by a rule.

    Raises:
        ConfigurationError: a change does not fit the run, the clients or the samples, changes nothing, or
            cannot apply beside another one; or there are too many samples.
        RunError: there is no room for the file of a large table.
    """
    if not changes:
        return trace
    refuse_pairs(changes)
    steps = -(-rounds // trace.rounds_per_step)
    # A trace whose concepts are known may last longer than the run. Their table has a number for each client
    # at each data step.
    rows = steps + 1 if trace.concepts is None else len(trace.concepts)
    refuse_oversize_in_memory(rows * trace.num_clients, ADVICE)
    ahead = 1 if trace.test_then_train else 0
    # Tests are of the next step: of samples that arrive with it (test_on = "next"), or one step before it.
    of_tests = ahead if trace.test_on == "present" else 0
    retain = (trace.retain_steps, trace.test_retain_steps)
    times = Times(rows - 1, trace.rounds_per_step, retain, (0, of_tests))
    made = own or streams, rule
    run = Run(trace.num_clients, steps, trace.rounds_per_step, streams, bool(ahead), names)
    applied, maps = [], []
    for number, change in enumerate(changes):
        one, label_maps = _drawn(change, f"trace.changes.{number}", number, trace, run, times, made)
        applied.append(one)
        maps.append(label_maps)
    _refuse_lost_labels(applied, rows)
    differing = differing_rows(trace.table, applied, times)
    samples = Samples(differing.rows, trace.table, streams)
    application = Application(differing.rows, samples, times, streams, own or streams)
    stored = trace.table.take("label", differing.rows.origin)
    label, chain = stored.astype(np.int64), np.zeros(len(stored), dtype=np.int64)
    features, image = None, trace.table.take("image", differing.rows.origin).astype(np.int64)
    for number, (one, label_maps) in enumerate(zip(applied, maps, strict=True)):
        if label_maps is not None:
            key = image if "rule" in one.settings.names else label
            label = application.relabelled(label, one, number, label_maps, key)
            continue
        if features is None:
            features = empty_feature_changes(trace.sample_shape, trace.samples.normal, streams)
        chain = application.chained(chain, one, number, features)
    table = ChangedTable(
        trace.table,
        _changed_rows(trace.table, differing, label.astype(stored.dtype), chain, samples),
        scratch,
        last_step=steps - 1,
    )
    truth = _truth(trace, applied, differing, times, tests_ahead=bool(ahead))
    return trace.changed(table, truth.concepts, truth.test_concepts, features, _turns(applied))


def _turns(applied: Sequence[Applied]) -> list[Turns]:
    """The turns of changes, those of a pattern by each of the operations that it chooses from."""
    turns = []
    for change in applied:
        names, spans = change.settings.names, change.spans
        if "train" not in change.settings.splits:
            continue
        for number, name in enumerate(names):
            some = np.ones(len(spans.client), dtype=bool) if len(names) == 1 else spans.value == number
            client = np.concatenate([spans.client[some]] * 2)
            turns.append(Turns(name, client, np.concatenate([spans.start[some], spans.stop[some]])))
    return turns


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


def _refuse_lost_labels(applied: Sequence[Applied], rows: int) -> None:
    """ConfigurationError for a rule that gives clients labels anew which an earlier change is on for.

    Their concept would have that change, of which their labels keep nothing.
    """
    of_labels = [change for change in applied if change.settings.changes_labels]
    for earlier, rule in combinations(of_labels, 2):
        both = {*earlier.settings.splits} & {*rule.settings.splits}
        if "rule" not in rule.settings.names or not both:
            continue
        clients = np.union1d(earlier.spans.client, rule.spans.client)
        changed = digits_of(earlier, clients, rows) > 0
        if earlier.settings.on == "arrivals":  # what has arrived keeps its change
            changed = np.logical_or.accumulate(changed, axis=0)
        on = changed & (digits_of(rule, clients, rows) > 0)
        if on.any():
            raise ConfigurationError(
                f"{rule.key}: rule gives labels anew, and client {clients[on.any(axis=0).argmax()]} would "
                f"lose those of {earlier.key} ({earlier.settings.names[0]}); list that one behind, or end it "
                f"first, as with until_round, if it changes what is held"
            )


def _drawn(
    change: Change, key: str, number: int, trace: Trace, run: Run, times: Times, made: Made
) -> tuple[Applied, Ints | None]:
    """A change with its spans, and what labels become; None for features.

    That is of shape (values of spans, num_labels), or of a rule (values of spans, images of the trace).
    """
    if change.is_own_swap:
        keeps = times.retain[TRAIN] >= times.steps and not trace.table.expires
        static = trace.table.last_step <= 0 and keeps
        swaps = own_swaps(change, key, run, trace.table, times.retain[TRAIN], trace.num_labels, static=static)
        return Applied(change, key, swaps.spans), swaps.maps
    spans = draw_spans(change, key, run)
    if change.changes_labels:
        return Applied(change, key, spans), _label_maps(change, key, number, trace, run, made)
    for operation in change.what:
        if isinstance(operation, OfFeatures):
            check_features(
                operation, trace.sample_shape, key, integers=trace.integers, num_targets=trace.num_targets
            )
    return Applied(change, key, spans), None


def _label_maps(change: Change, key: str, number: int, trace: Trace, run: Run, made: Made) -> Ints:
    """(operations, num_labels) what the operations of a change make of each label, or rules of each image."""
    if not (change.magnitude.is_constant and change.magnitude.start == 1):
        raise ConfigurationError(
            f"{key}.magnitude: {change.names[0]} changes labels, which has no magnitude; leave it out"
        )
    if "rule" in change.names:
        own, rule = made
        if rule is None:
            raise ConfigurationError(
                f"{key}: rule: labels come from another rule, and those here are given; choices: "
                f"trace.source = 'synthetic', whose labels are made, or 'permute'"
            )
        return np.array([rule(own.generator("rule", number, place)) for place in range(len(change.what))])
    operations = [operation for operation in change.what if isinstance(operation, str | Swap)]
    maps = [label_map(operation, trace.num_labels, key, run.streams, number) for operation in operations]
    return np.array(maps)


def _changed_rows(
    table: Table, differing: Differing, label: np.ndarray, chain: Ints, samples: Samples
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
        expiry=table.expiry(rows.origin).astype(np.int32) if table.expires else None,
    )


def _truth(
    trace: Trace, applied: Sequence[Applied], differing: Differing, times: Times, *, tests_ahead: bool
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
