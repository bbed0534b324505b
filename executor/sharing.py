"""Assigns pieces of work, task groups or slabs of requests, to ranks.

A pure function of the weights of the pieces, so that all ranks agree.
"""

from __future__ import annotations

import heapq

import numpy as np

from emulator.arrays import Floats, Ints


def share(weights: Floats | Ints, size: int) -> Ints:
    """(k,) the rank, of `size` ranks, that gets each of k pieces of the given `weights` (k,).

    Longest processing time first: the heaviest piece goes first, each to the rank with the least load so
    far; among equals, to the lowest.

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
