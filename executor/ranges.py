"""Table rows of many requests at once, without a Python loop over clients."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Ints
from emulator.messages import SampleRanges


def rows_of(samples: SampleRanges, requests: Ints) -> tuple[Ints, Ints]:
    """The table rows that `requests` (k,) name, one request after the other, and how many each names (k,).

    >>> samples = SampleRanges(np.array([0, 1, 3]), np.array([4, 0, 8]), np.array([6, 2, 9]))
    >>> rows, counts = rows_of(samples, np.array([1, 0]))
    >>> rows.tolist(), counts.tolist()
    ([0, 1, 8, 4, 5], [3, 2])
    """
    ranges = _spans(samples.offsets[requests], samples.offsets[requests + 1])
    return _spans(samples.first[ranges], samples.last[ranges]), samples.counts()[requests]


def _spans(first: Ints, last: Ints) -> Ints:
    """All integers of the spans [first[j], last[j]), span after span."""
    lengths = last - first
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    shift: Ints = np.repeat(first - (ends - lengths), lengths)
    return shift + np.arange(total)
