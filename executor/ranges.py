"""The table rows of many requests at once, without a Python loop over clients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emulator.arrays import Ints
from emulator.messages import SampleRanges


def rows_of(samples: SampleRanges, requests: Ints) -> tuple[Ints, Ints]:
    """The table rows of `requests` (k,), one request after the other, and the number of each one's rows (k,).

    >>> samples = SampleRanges(np.array([0, 1, 3]), np.array([4, 0, 8]), np.array([6, 2, 9]), np.ones(3))
    >>> rows, counts = rows_of(samples, np.array([1, 0]))
    >>> rows.tolist(), counts.tolist()
    ([0, 1, 8, 4, 5], [3, 2])
    """
    begins, ends = samples.offsets[requests], samples.offsets[requests + 1]
    ranges = _spans(begins, ends)
    first, last = samples.first[ranges], samples.last[ranges]
    # Counts only the ranges of these requests: for a few of a million, counting all takes most of the time.
    filled = np.concatenate(([0], np.cumsum(last - first)))[np.concatenate(([0], np.cumsum(ends - begins)))]
    counts: Ints = np.diff(filled)
    return _spans(first, last), counts


def slabs(counts: Ints, limit: int) -> Iterator[Ints]:
    """All requests in ascending order, in slabs of at most `limit` samples; `counts` (n,) has each one's.

    A request is never split: one with more than `limit` samples is a slab of its own.

    >>> [slab.tolist() for slab in slabs(np.array([2, 3, 9, 0, 1]), 5)]
    [[0, 1], [2], [3, 4]]
    """
    ends = np.cumsum(counts)
    first = 0
    while first < len(counts):
        before = int(ends[first - 1]) if first else 0
        stop = max(int(np.searchsorted(ends, before + limit, side="right")), first + 1)
        yield np.arange(first, stop)
        first = stop


def _spans(first: Ints, last: Ints) -> Ints:
    """All integers of the spans [first[j], last[j]), span after span."""
    lengths = last - first
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    shift: Ints = np.repeat(first - (ends - lengths), lengths)
    return shift + np.arange(total)
