"""Checks of what the rows of `arrivals.parquet` have to do with each other, and remarks on them.

NOTE: in blocks, for speed and memory: five million rows are sorted by client, sample and time in 16 s, but
hardly any need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from emulator.arrays import Bools, Ints
from traces.arrivals import SPLITS
from traces.files import arrivals as rules
from traces.files.arrivals import ArrivalRows, When
from traces.files.checking.blocks import blocks_of_clients, stretches
from traces.files.checking.columns import Column
from traces.files.checking.findings import MOST_LISTED, Finding, Findings, RowFindings
from traces.files.facts import FEATURES

TRAIN, TEST = (SPLITS.index(split) for split in ("train", "test"))

RowNumbers = Callable[[Ints], Ints]
"""Makes numbers of rows of the file, from 0, of numbers of rows that are valid."""


def check_together(
    path: Path,
    columns: Mapping[str, Column],
    when: When,
    classes: tuple[str, ...] | None,
    num_samples: int | None,
    findings: Findings,
) -> None:
    """Check what rows have to do with each other; rows with an invalid value are left out."""
    valid = np.logical_and.reduce([column.valid for column in columns.values()])
    if not valid.any():
        return
    row = None if valid.all() else np.flatnonzero(valid)
    # Columns without an invalid row are not copied.
    values = {name: given.values if row is None else given.values[row] for name, given in columns.items()}
    rows = _arrival_rows(columns, values, when, classes)

    def number_of(places: Ints) -> Ints:
        return places if row is None else row[places]

    for only, first in rules.test_only(rows)[:MOST_LISTED]:
        problem = rules.in_test_only(rows.name_of(only))
        findings.violations.append(Finding(path, problem, int(number_of(np.array(first))) + 1))
    _check_concepts(path, rows, number_of, findings)
    _remark_on_order(path, rows, number_of, findings)
    _remark_on_classes(path, rows, findings)
    _remark_on_steps(path, rows, findings)
    _remark_on_repeats(path, rows, number_of, findings)
    _remark_on_samples(path, rows, num_samples, findings)


def _arrival_rows(
    columns: Mapping[str, Column],
    values: Mapping[str, np.ndarray],
    when: When,
    classes: tuple[str, ...] | None,
) -> ArrivalRows:
    """The rows of which `values` are, as the reader has them."""
    clients: tuple[str, ...] | Ints | None = columns["client"].texts
    client, label = values["client"], values["label"]
    if clients is None:
        clients, client = rules.ranks(client)
    names = columns["label"].texts if classes is None else classes
    return ArrivalRows(
        client=client,
        clients=clients,
        label=label,
        classes=names if names is not None else tuple(map(str, range(int(label.max()) + 1))),
        sample=values["sample"],
        when=when,
        at=values[when],
        split=values.get("split"),
        count=values.get("count"),
        concept=values.get("concept"),
    )


def _check_concepts(path: Path, rows: ArrivalRows, number_of: RowNumbers, findings: Findings) -> None:
    """Two concepts of a client at one instant, which would be in one data step whatever its width."""
    if rows.concept is None:
        return
    found = RowFindings(path)
    for block in blocks_of_clients(rows.client, len(rows.clients)):
        train = block[_trains(rows, block)]
        order = train[np.lexsort((rows.at[train], rows.client[train]))]
        client, at, concept = rows.client[order], rows.at[order], rows.concept[order]
        same = (client[1:] == client[:-1]) & (at[1:] == at[:-1])
        mixed = 1 + np.flatnonzero(same & (concept[1:] != concept[:-1]))
        found.add(
            number_of(order[mixed]),
            lambda client, before, after: (
                f"concept: client {rows.name_of(client)} has concepts {before} and {after} at the same "
                f"{rows.when}; training samples of one step have one concept"
            ),
            client[mixed],
            concept[mixed - 1],
            concept[mixed],
        )
    findings.violations += found.lines()


def _trains(rows: ArrivalRows, block: Ints) -> Bools:
    """(n,) whether each of the rows `block` (n,) is for training and arrives."""
    trains = np.ones(len(block), np.bool_) if rows.split is None else rows.split[block] == TRAIN
    if rows.count is not None:
        trains &= rows.count[block] > 0
    return trains


def _remark_on_order(path: Path, rows: ArrivalRows, number_of: RowNumbers, findings: Findings) -> None:
    if rows.split is None:
        text = "has no column split: it is drawn at every start, and rows are sorted then"
        findings.remarks.append(Finding(path, text))
        return
    first, number = -1, 0
    for stretch in stretches(len(rows)):
        begin = max(0, stretch.start - 1)  # with the row before
        ascends: Bools = np.ones(stretch.stop - begin - 1, np.bool_)
        for column in (rows.at, rows.split, rows.client):
            values = column[begin : stretch.stop]
            ascends = (values[:-1] < values[1:]) | ((values[:-1] == values[1:]) & ascends)
        late = np.flatnonzero(~ascends)
        if len(late) and not number:
            first = begin + int(late[0]) + 1
        number += len(late)
    if number:
        order = f"the first row out of the order of (client, split, {rows.when})"
        text = f"{order}, of {number}: rows are sorted at every start"
        findings.remarks.append(Finding(path, text, int(number_of(np.array(first))) + 1))
    if not (rows.split == TEST).any():
        text = "no row is for tests; a run needs a client that has test samples at its start"
        findings.remarks.append(Finding(path, text))


def _remark_on_classes(path: Path, rows: ArrivalRows, findings: Findings) -> None:
    used, trained = (np.zeros(len(rows.classes), np.bool_) for _ in range(2))
    for stretch in stretches(len(rows)):
        label = rows.label[stretch]
        used[label] = True
        trained[label if rows.split is None else label[rows.split[stretch] == TRAIN]] = True
    for which, text in (
        (~used, "is never used"),
        (used & ~trained, "has test samples and none for training"),
    ):
        found = np.flatnonzero(which)
        findings.remarks += [
            Finding(path, f"class {rows.classes[number]!r} {text}") for number in found[:MOST_LISTED].tolist()
        ]
        if len(found) > MOST_LISTED:
            findings.remarks.append(Finding(path, f"and {len(found) - MOST_LISTED} more classes like that"))


def _remark_on_steps(path: Path, rows: ArrivalRows, findings: Findings) -> None:
    """Steps without rows between the first and the last; of times and ranks they depend on the settings."""
    if rows.when != "step":
        return
    steps = rules.distinct(rows.at).astype(np.int64)
    gaps = np.flatnonzero(np.diff(steps) > 1)
    for gap in gaps[:MOST_LISTED].tolist():
        first, last = int(steps[gap]) + 1, int(steps[gap + 1]) - 1
        which = f"step {first}" if first == last else f"steps {first} to {last}"
        findings.remarks.append(Finding(path, f"nobody receives a sample at {which}"))
    if len(gaps) > MOST_LISTED:
        findings.remarks.append(Finding(path, f"and {len(gaps) - MOST_LISTED} more gaps between steps"))


def _remark_on_repeats(path: Path, rows: ArrivalRows, number_of: RowNumbers, findings: Findings) -> None:
    """Rows that are there twice."""
    found = RowFindings(path)
    for block in blocks_of_clients(rows.client, len(rows.clients)):
        some = block[_is_repeated(rows.client[block], rows.sample[block])]
        order = some[np.lexsort((rows.at[some], rows.sample[some], rows.client[some]))]
        client, sample, at = rows.client[order], rows.sample[order], rows.at[order]
        same = (client[1:] == client[:-1]) & (sample[1:] == sample[:-1]) & (at[1:] == at[:-1])
        again = 1 + np.flatnonzero(same)
        found.add(
            number_of(order[again]),
            lambda client, sample, before: (
                f"client {rows.name_of(client)} receives sample {sample} as in row {before + 1}, at the same "
                f"{rows.when}; a column count says how often"
            ),
            client[again],
            sample[again],
            number_of(order[again - 1]),
        )
    findings.remarks += found.lines()


def _is_repeated(client: np.ndarray, sample: np.ndarray) -> Bools:
    """(n,) whether the pair of `client` (n,) and `sample` (n,), below 2^31 both, is there more than once.

    >>> _is_repeated(np.array([0, 0, 1]), np.array([5, 5, 5]))
    array([ True,  True, False])
    """
    pair = client.astype(np.int64) << 31 | sample
    in_order = np.sort(pair)
    twice = in_order[1:][in_order[1:] == in_order[:-1]]
    if len(twice) == 0:  # as a rule
        return np.zeros(len(pair), np.bool_)
    place = np.minimum(np.searchsorted(twice, pair), len(twice) - 1)
    repeated: Bools = twice[place] == pair
    return repeated


def _remark_on_samples(path: Path, rows: ArrivalRows, num_samples: int | None, findings: Findings) -> None:
    """Samples that are both for training and for tests, and those that are never used."""
    if rows.split is not None:
        train, test = (rules.distinct(rows.sample[rows.split == number]) for number in (TRAIN, TEST))
        both = np.intersect1d(train, test, assume_unique=True)
        if len(both):
            text = f"{len(both)} samples are for training and for tests; the first is sample {both[0]}"
            findings.remarks.append(Finding(path, text))
    if num_samples is not None:
        is_used = np.zeros(num_samples, np.bool_)
        for stretch in stretches(len(rows)):
            is_used[rows.sample[stretch]] = True
        unused = num_samples - int(is_used.sum())
        if unused:
            first = int(is_used.argmin())
            text = f"{unused} of {num_samples} samples are never used; the first is sample {first}"
            findings.remarks.append(Finding(path.with_name(FEATURES), text))
