"""Checks of what the rows of `arrivals.parquet` have to do with each other, and remarks on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from traces.arrivals import SPLITS
from traces.files import arrivals as rules
from traces.files.arrivals import ArrivalRows, When
from traces.files.checking.columns import Column
from traces.files.checking.findings import MOST_LISTED, Finding, Findings
from traces.files.facts import FEATURES


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
    row = np.flatnonzero(valid)
    if len(row) == 0:
        return
    client, texts = columns["client"].values[row], columns["client"].texts
    numbers, rank = (
        (np.arange(len(texts)), client) if texts is not None else np.unique(client, return_inverse=True)
    )
    named = columns["label"].texts if classes is None else classes
    label = columns["label"].values[row]
    names = named if named is not None else tuple(map(str, range(int(label.max()) + 1)))
    optional = {
        name: columns[name].values[row] if name in columns else None for name in ("split", "count", "concept")
    }
    rows = ArrivalRows(
        client=rank,
        clients=texts if texts is not None else numbers,
        label=label,
        classes=names,
        sample=columns["sample"].values[row],
        when=when,
        at=columns[when].values[row],
        **optional,
    )
    for only, first in rules.test_only(rows)[:MOST_LISTED]:
        problem = rules.in_test_only(rows.name_of(only))
        findings.violations.append(Finding(path, problem, int(row[first]) + 1))
    _check_concepts(path, rows, row, findings)
    _remark_on_order(path, rows, row, findings)
    _remark_on_classes(path, rows, findings)
    _remark_on_steps(path, rows, findings)
    _remark_on_repeats(path, rows, row, findings)
    if num_samples is not None:
        unused = np.flatnonzero(np.bincount(rows.sample, minlength=num_samples) == 0)
        if len(unused):
            problem = (
                f"{len(unused)} of {num_samples} samples are never used; the first is sample {unused[0]}"
            )
            findings.remarks.append(Finding(path.with_name(FEATURES), problem))


def _check_concepts(path: Path, rows: ArrivalRows, row: Ints, findings: Findings) -> None:
    """Two concepts of a client at one instant, which would be in one data step whatever its width."""
    if rows.concept is None:
        return
    trains = np.ones(len(rows), np.bool_) if rows.split is None else rows.split == SPLITS.index("train")
    if rows.count is not None:
        trains &= rows.count > 0
    train = np.flatnonzero(trains)
    order = train[np.lexsort((rows.at[train], rows.client[train]))]
    client, at, concept = rows.client[order], rows.at[order], rows.concept[order]
    mixed = 1 + np.flatnonzero(
        (client[1:] == client[:-1]) & (at[1:] == at[:-1]) & (concept[1:] != concept[:-1])
    )
    findings.add_rows(
        path,
        row[order[mixed]],
        lambda at: (
            f"concept: client {rows.name_of(client[mixed[at]])} has concepts {concept[mixed[at] - 1]} and "
            f"{concept[mixed[at]]} at the same {rows.when}; training samples of one step have one concept"
        ),
    )


def _remark_on_order(path: Path, rows: ArrivalRows, row: Ints, findings: Findings) -> None:
    if rows.split is None:
        text = "has no column split: it is drawn at every start, and rows are sorted then"
        findings.remarks.append(Finding(path, text))
        return
    columns = (rows.client, rows.split, rows.at)
    ascends = np.ones(len(rows) - 1, np.bool_)
    for values in reversed(columns):
        ascends = (values[:-1] < values[1:]) | ((values[:-1] == values[1:]) & ascends)
    late = np.flatnonzero(~ascends)
    if len(late):
        order = f"the first row out of the order of (client, split, {rows.when})"
        text = f"{order}, of {len(late)}: rows are sorted at every start"
        findings.remarks.append(Finding(path, text, int(row[late[0] + 1]) + 1))
    if not (rows.split == SPLITS.index("test")).any():
        text = "no row is for tests; a run needs a client that has test samples at its start"
        findings.remarks.append(Finding(path, text))


def _remark_on_classes(path: Path, rows: ArrivalRows, findings: Findings) -> None:
    size = len(rows.classes)
    used = np.bincount(rows.label, minlength=size) > 0
    train = slice(None) if rows.split is None else rows.split == SPLITS.index("train")
    trained = np.bincount(rows.label[train], minlength=size) > 0
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
    steps = np.unique(rows.at)
    gaps = np.flatnonzero(np.diff(steps) > 1)
    for gap in gaps[:MOST_LISTED].tolist():
        first, last = int(steps[gap]) + 1, int(steps[gap + 1]) - 1
        which = f"step {first}" if first == last else f"steps {first} to {last}"
        findings.remarks.append(Finding(path, f"nobody receives a sample at {which}"))
    if len(gaps) > MOST_LISTED:
        findings.remarks.append(Finding(path, f"and {len(gaps) - MOST_LISTED} more gaps between steps"))


def _remark_on_repeats(path: Path, rows: ArrivalRows, row: Ints, findings: Findings) -> None:
    """Rows that are there twice, and samples that are both for training and for tests."""
    order = np.lexsort((rows.at, rows.sample, rows.client))
    client, sample, at = rows.client[order], rows.sample[order], rows.at[order]
    same = (client[1:] == client[:-1]) & (sample[1:] == sample[:-1]) & (at[1:] == at[:-1])
    again = 1 + np.flatnonzero(same)
    findings.add_rows(
        path,
        row[order[again]],
        lambda at: (
            f"client {rows.name_of(client[again[at]])} receives sample {sample[again[at]]} as in row "
            f"{row[order[again[at] - 1]] + 1}, at the same {rows.when}; a column count says how often"
        ),
        is_remark=True,
    )
    if rows.split is not None:
        used = [np.unique(rows.sample[rows.split == number]) for number in range(len(SPLITS))]
        both = np.intersect1d(used[0], used[1])
        if len(both):
            text = f"{len(both)} samples are for training and for tests; the first is sample {both[0]}"
            findings.remarks.append(Finding(path, text))
