"""Sorting millions of rows by several columns, in little memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emulator.arrays import Ints
from traces.files.arrivals import ranks

BITS = 63
"""Bits of a key that is sorted, with the number of its row."""

CHUNK_ROWS = 2**19

MOST_ABSENT = 4
"""A table of all numbers between the least and the greatest has at most this many entries for each row."""


def rows_in_order(*columns: np.ndarray) -> Ints:
    """(n,) the rows in ascending order of `columns` (n,), the first one first; equal ones as they come.

    The columns and the row number are packed into one integer, which is sorted in place: three times as fast
    as `numpy.lexsort`, in a third of its memory. Columns too wide for that are replaced by their ranks.

    >>> rows_in_order(np.array([1, 0, 1]), np.array([5, 5, -5])).tolist()
    [1, 2, 0]
    """
    num_rows = len(columns[0])
    if num_rows == 0:
        return np.zeros(0, dtype=np.int64)
    narrow = [_Packed(column) for column in columns]
    bits = max(1, (num_rows - 1).bit_length())
    if bits + sum(column.bits for column in narrow) > BITS:
        narrow = [column.ranked() if column.bits > bits else column for column in narrow]
    if bits + sum(column.bits for column in narrow) > BITS:
        return np.lexsort(tuple(reversed(columns)))
    key = np.zeros(num_rows, dtype=np.int64)
    for column in narrow:
        key <<= column.bits
        key += column.values if column.least == 0 else column.values - column.least
    key <<= bits
    key += np.arange(num_rows)
    key.sort()
    key &= (1 << bits) - 1
    return key


def chunks_of_clients(client: np.ndarray, num_clients: int) -> Iterator[Ints]:
    """Yield all rows of some clients at a time, in order of client: `CHUNK_ROWS`, or those of one client.

    `client` (n,) is in [0, num_clients).
    """
    order = rows_in_order(client)
    ends = np.cumsum(np.bincount(client, minlength=num_clients))
    first = 0
    while first < len(order):
        number = int(np.searchsorted(ends, first + CHUNK_ROWS, side="right")) - 1
        last = int(ends[number]) if number >= 0 and ends[number] > first else 0
        last = last or int(ends[np.searchsorted(ends, first, side="right")])
        yield order[first:last]
        first = last


def ranks_of(values: np.ndarray) -> tuple[Ints, np.ndarray]:
    """The distinct integers (k,), ascending, and the rank (n,) of each of `values` among them.

    >>> ranks_of(np.array([9, 7, 9]))
    (array([7, 9]), array([1, 0, 1], dtype=int32))
    """
    least, most = int(values.min()), int(values.max())
    if most - least > MOST_ABSENT * len(values):
        return ranks(values)
    occurs = np.zeros(most - least + 1, dtype=np.bool_)
    occurs[values - least] = True
    number = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs) + least, number[values - least]


class _Packed:
    """A column of integers or floats, and the bits that its range needs."""

    def __init__(self, column: np.ndarray) -> None:
        self.values = column
        if column.dtype.kind == "f":
            self.least, self.bits = 0, BITS + 1  # as good as too wide: only its ranks can be packed
        else:
            self.least = int(column.min())
            self.bits = (int(column.max()) - self.least).bit_length()

    def ranked(self) -> _Packed:
        """The same order, as ranks among the distinct values."""
        return _Packed(np.unique(self.values, return_inverse=True)[1].astype(np.int32))
