"""The true concepts that follow from changes: one for each set of changes that are on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools, Ints
from traces.arrivals import SPLITS
from traces.changes.rows import Applied, Times
from traces.changes.settings import Change


class Truth(NamedTuple):
    """The true concepts, as `Trace` has them.

    Those of training samples have shape (steps + 1, clients); those of tests (steps, clients), and are None
    if they follow from the others.
    """

    concepts: Ints
    test_concepts: Ints | None


def true_concepts(
    applied: Sequence[Applied],
    before: Ints | None,
    clients: Ints,
    received: Sequence[Bools],
    times: Times,
    num_clients: int,
    *,
    tests_ahead: bool,
) -> Truth:
    """Number the sets of changes that are on, as they first appear, by step and then by client.

    A concept is that of the newest samples: it changes where a client next receives some. What has no change
    has the concept that it had, 0 if none was known; others are numbered from the first unused one.

    Args:
        applied: the changes; a span's `value` is part of the concept.
        before: the concepts without the changes, (steps + 1, clients), if they are known.
        clients: the clients (n,) of some span.
        received: for each split, (steps + 1, n), whether these receive samples of it at that step.
        times: the data steps of the run, and which samples carry the changes of the next one.
        num_clients: the number of clients.
        tests_ahead: whether the tests of a step are of the next one's concept.
    """
    rows = times.steps + 1
    known = np.zeros((rows, num_clients), dtype=np.int64) if before is None else before
    both = all(len(change.change.splits) == len(SPLITS) for change in applied)
    splits = range(1 if both else len(SPLITS))
    codes = [_codes(applied, split, rows, num_clients) for split in splits]
    if not tests_ahead:
        for code in codes:
            code[-1] = code[-2]
    for code, got in zip(codes, received, strict=False):
        if not got.all():
            code[:, clients] = _carried(code[:, clients], got)
    numbered = _numbered(codes, known)
    if both:
        return Truth(numbered[0], None)
    first = 1 if tests_ahead else 0
    return Truth(numbered[0], numbered[1][first : first + times.steps])


def _codes(applied: Sequence[Applied], split: int, rows: int, num_clients: int) -> Ints:
    """(rows, clients) a number for each set of changes of a split that are on at a step; 0 for none."""
    codes = np.zeros((rows, num_clients), dtype=np.int64)
    for change, _, spans in applied:
        # Every change has digits of its own, also one of the other split, so that the codes of splits
        # compare.
        base = int(spans.value.max(initial=0)) + 2
        codes *= base
        if SPLITS[split] in change.splits:
            for start, stop in np.unique(np.stack([spans.start, spans.stop]), axis=1).T.tolist():
                some = (spans.start == start) & (spans.stop == stop)
                codes[start:stop, spans.client[some]] += _digits(change, spans.value[some])
    return codes


def _digits(change: Change, value: Ints) -> Ints:
    """(n,) the digits of spans in a code: 0 is no change, which swaps can come back to."""
    return value if change.is_own_swap else value + 1


def _carried(codes: Ints, received: Bools) -> Ints:
    """`codes` (rows, n), where a client without new samples keeps that of its newest ones.

    Before its first samples it has the code of these.
    """
    newest = np.where(received, np.arange(len(codes))[:, None], -1)
    newest = np.maximum.accumulate(newest, axis=0)
    newest = np.where(newest >= 0, newest, received.argmax(axis=0)[None, :])
    carried: Ints = np.take_along_axis(codes, newest, axis=0)
    return carried


def _numbered(codes: Sequence[Ints], known: Ints) -> list[Ints]:
    """(rows, clients) the number of each (code, known concept), in order of appearance, array by array.

    With code 0 it is the known concept itself; others have the numbers after these.
    """
    width = int(known.max(initial=0)) + 1
    pairs = [code * width + known for code in codes]
    # Whatever is new appears where it differs from the step before.
    differs = [
        np.concatenate([np.ones((1, pair.shape[1]), np.bool_), pair[1:] != pair[:-1]]) for pair in pairs
    ]
    appearing = np.concatenate([pair[some] for pair, some in zip(pairs, differs, strict=True)])
    distinct, first = np.unique(appearing, return_index=True)
    changed = np.flatnonzero(distinct >= width)
    concept = distinct.copy()
    concept[changed[np.argsort(first[changed])]] = width + np.arange(len(changed))
    for pair, some in zip(pairs, differs, strict=True):
        for row, new in zip(range(len(pair)), some, strict=True):
            number = concept[np.searchsorted(distinct, pair[row, new])]
            pair[row] = pair[row - 1] if row else 0
            pair[row, new] = number
    return pairs
