"""Ranges of rows of a table, as the numbers of these rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from emulator.arrays import Ints

CHUNK_ROWS: Final = 2**18
"""Rows per chunk where many are processed: enough for speed, few enough for a processor's cache."""


def rows_of_ranges(first: Ints, last: Ints) -> Ints:
    """The rows of all ranges [first, last), arrays of shape (n,), one range after the other.

    >>> rows_of_ranges(np.array([5, 0]), np.array([7, 1])).tolist()
    [5, 6, 0]
    """
    sizes = last - first
    rows: Ints = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    return rows


def chunks_of_ranges(first: Ints, last: Ints) -> Iterator[slice]:
    """Consecutive ranges [first, last) that together have about CHUNK_ROWS rows."""
    ends = np.cumsum(last - first)
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + CHUNK_ROWS, side="right")))
        yield slice(start, stop)
        start = stop
