"""Which rank does which piece of a wave: a pure function of the pieces, the same in every rank."""

from __future__ import annotations

import heapq

import numpy as np

from emulator.arrays import Floats, Ints


def share(weights: Floats | Ints, size: int) -> Ints:
    """(k,) the rank, of `size`, that does each of k pieces of `weights` (k,): the heaviest first, each to the
    rank that has least so far, the lowest of equals.

    >>> share(np.array([3, 5, 4, 4]), 2).tolist()
    [0, 0, 1, 1]
    """
    owner = np.zeros(len(weights), dtype=np.int64)
    loads = [(0.0, rank) for rank in range(size)]
    for piece in np.argsort(-np.asarray(weights, dtype=np.float64), kind="stable"):
        load, rank = heapq.heappop(loads)
        owner[piece] = rank
        heapq.heappush(loads, (load + float(weights[piece]), rank))
    return owner
