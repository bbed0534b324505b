"""The true concepts that follow from changes: one for each set of changes that are on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools, Ints
from traces.arrivals import SPLITS
from traces.changes.rows import Applied
from traces.tables.base import TRAIN

TEST = SPLITS.index("test")

MOST_CODES = 2**40
"""Codes above it are numbered anew, before they would exceed 64 bits."""


class Truth(NamedTuple):
    """The true concepts, as `Trace` has them.

    Those of training samples have shape (steps + 1, clients); those of tests (steps, clients), and are None
    if they follow from the others.
    """

    concepts: Ints
    test_concepts: Ints | None


class Received(NamedTuple):
    """Whether `clients` (n,) receive samples whose changes are those of a data step: (splits, steps + 1, n).

    `first` is of samples that arrive for the first time, `any` also of those that are sent anew.
    """

    clients: Ints
    first: Bools
    any: Bools


def true_concepts(
    applied: Sequence[Applied], before: Ints, received: Received, *, tests_ahead: bool
) -> Truth:
    """Number the sets of changes that are on, as they first appear: by step, split and client.

    A concept is that of the newest samples: a change of arrivals counts from the first sample on that arrives
    with it, and one of held data from the first one on that arrives or is sent anew. What has no change has
    the concept of before; others are numbered from the first unused one.

    Args:
        applied: the changes; a span's `value` is part of the concept.
        before: the concepts without the changes, (steps + 1, clients), 0 where none is known.
        received: what the clients of all spans receive.
        tests_ahead: whether the tests of a step are of the next one's concept. The last row is then of tests
            alone, and otherwise the one before again.
    """
    codes = np.zeros_like(received.first, dtype=np.int64)
    for on in ("held", "arrivals"):
        some = [change for change in applied if change.settings.on == on]
        if some:
            of_some = _codes(some, received.clients, codes.shape[1])
            if not tests_ahead:
                of_some[:, -1] = of_some[:, -2]
            arrives = received.any if on == "held" else received.first
            codes = _combined(codes, _carried(of_some, arrives, tests_ahead=tests_ahead))
    numbered = _numbered(codes, before[:, received.clients], int(before.max(initial=0)) + 1)
    concepts = before.copy()
    concepts[:, received.clients] = numbered[TRAIN]
    of_tests = slice(1, None) if tests_ahead else slice(None, -1)
    if np.array_equal(numbered[TEST, of_tests], numbered[TRAIN, of_tests]):
        return Truth(concepts, None)
    test_concepts = before[of_tests].copy()
    test_concepts[:, received.clients] = numbered[TEST, of_tests]
    return Truth(concepts, test_concepts)


def _codes(applied: Sequence[Applied], clients: Ints, rows: int) -> Ints:
    """(splits, rows, n) a number for each set of changes that are on for `clients` (n,); 0 for none."""
    codes = np.zeros((len(SPLITS), rows, len(clients)), dtype=np.int64)
    for change in applied:
        digits = digits_of(change, clients, rows)
        of_split = np.isin(SPLITS, change.settings.splits)
        codes = _combined(codes, of_split[:, None, None] * digits)
    return codes


def digits_of(applied: Applied, clients: Ints, rows: int) -> Ints:
    """(rows, n) what of a change is on for `clients` (n,), who include those of its spans; 0 for nothing."""
    spans = applied.spans
    # What own swaps have come to may be nothing, which has value 0.
    digit = spans.value if applied.settings.is_own_swap else spans.value + 1
    column = np.searchsorted(clients, spans.client)
    moves = np.zeros((rows + 1, len(clients)), dtype=np.int64)
    np.add.at(moves, (np.minimum(spans.start, rows), column), digit)
    np.subtract.at(moves, (np.minimum(spans.stop, rows), column), digit)
    return np.cumsum(moves, axis=0)[:rows]


def _combined(codes: Ints, more: Ints) -> Ints:
    """A number for each pair of numbers, of arrays of one shape; 0 for (0, 0)."""
    base = int(more.max(initial=0)) + 1
    if int(codes.max(initial=0)) * base > MOST_CODES:
        distinct = np.union1d(codes, 0)
        codes = np.searchsorted(distinct, codes)
    return codes * base + more


def _carried(codes: Ints, received: Bools, *, tests_ahead: bool) -> Ints:
    """`codes` (splits, rows, n), where a client without new samples keeps that of its newest ones.

    Before its first samples it has the code of these. Tests ahead are held for one step: without one, the
    code is that of the training samples.
    """
    if received.all():
        return codes
    newest = np.where(received, np.arange(codes.shape[1])[:, None], -1)
    newest = np.maximum.accumulate(newest, axis=1)
    newest = np.where(newest >= 0, newest, received.argmax(axis=1)[:, None])
    carried: Ints = np.take_along_axis(codes, newest, axis=1)
    if tests_ahead:
        carried[TEST] = np.where(received[TEST], codes[TEST], carried[TRAIN])
    return carried


def _numbered(codes: Ints, before: Ints, unused: int) -> Ints:
    """(splits, rows, n) the number of each (code, concept of before), as they first appear.

    With code 0 it is the concept of before; others have numbers from `unused` on.
    """
    pairs = _combined(codes, np.broadcast_to(before, codes.shape))
    # Whatever is new appears where it differs from the step before.
    differs = np.ones(pairs.shape, dtype=np.bool_)
    differs[:, 1:] = pairs[:, 1:] != pairs[:, :-1]
    in_order = differs.swapaxes(0, 1)  # by step, then by split and client
    distinct, first, of_pair = np.unique(
        pairs.swapaxes(0, 1)[in_order], return_index=True, return_inverse=True
    )
    is_new = codes.swapaxes(0, 1)[in_order][first] > 0
    concept = np.zeros(len(distinct), dtype=np.int64)
    concept[~is_new] = np.broadcast_to(before, codes.shape).swapaxes(0, 1)[in_order][first][~is_new]
    new = np.flatnonzero(is_new)
    concept[new[np.argsort(first[new])]] = unused + np.arange(len(new))
    # Each cell has the number of the last one that differed.
    numbered = np.zeros_like(in_order, dtype=np.int64)
    numbered[in_order] = concept[of_pair.ravel()]
    rows = np.where(differs, np.arange(pairs.shape[1])[:, None], 0)
    latest = np.maximum.accumulate(rows, axis=1)
    return np.take_along_axis(numbered.swapaxes(0, 1), latest, axis=1)
