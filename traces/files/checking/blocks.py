"""Rows in blocks, so that a check needs memory for a block, and not for copies of all rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emulator.arrays import Ints

STRETCH_ROWS = 2**18
"""Rows of a stretch, which are compared with each other at once."""

BLOCK_ROWS = 2**20
"""Rows of a block, which are sorted at once."""

MOST_BLOCKS = 64
"""Most blocks: rows that are not in order are scanned once for each."""


def stretches(num_rows: int) -> Iterator[slice]:
    """All rows, in their order, in stretches of `STRETCH_ROWS`.

    >>> list(stretches(3))
    [slice(0, 3, None)]
    """
    for first in range(0, num_rows, STRETCH_ROWS):
        yield slice(first, min(first + STRETCH_ROWS, num_rows))


def blocks_of_clients(client: np.ndarray, num_clients: int) -> Iterator[Ints]:
    """The numbers of all rows, in blocks of some `BLOCK_ROWS` rows; a client with more is a block of its own.

    Args:
        client: of shape (rows,), in 0 to num_clients - 1, in any order.
        num_clients: the number of clients.

    Yields:
        (n,) numbers of rows, ascending, of clients that come after those of the block before.

    >>> [block.tolist() for block in blocks_of_clients(np.array([1, 0, 1]), 2)]
    [[0, 1, 2]]
    """
    sizes, ascends = np.zeros(num_clients, np.int64), True
    for rows in stretches(len(client)):
        some = client[max(0, rows.start - 1) : rows.stop]
        ascends = ascends and bool((some[1:] >= some[:-1]).all())
        np.add.at(sizes, client[rows], 1)
    ends, most = np.cumsum(sizes), max(BLOCK_ROWS, -(-len(client) // MOST_BLOCKS))
    first, begin = 0, 0
    while first < num_clients:
        last = max(first + 1, int(np.searchsorted(ends, begin + most, side="right")))
        end = int(ends[last - 1])
        if end > begin:
            yield (np.arange(begin, end) if ascends else np.flatnonzero((client >= first) & (client < last)))
        first, begin = last, end
