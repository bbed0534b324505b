"""The smallest of many values, and the value of a rank, in a few passes over an array."""

from __future__ import annotations

import numpy as np

from emulator.arrays import NO_IDS, Floats, Ints

SAMPLED, MARGIN = 2048, 64
"""Values in the sample of `at_rank`, and the ranks of it by which its bracket reaches to each side."""

PARTITIONED = 2**16
"""Up to that many values, `at_rank` needs no sample."""


def lowest(values: Floats, count: int) -> Ints:
    """Indices, ascending, of the `count` smallest `values` (n,), or of all; ties go to the lowest index.

    >>> lowest(np.array([5.0, 1.0, 5.0, 5.0]), 3)
    array([0, 1, 2])
    """
    if count >= len(values):
        return np.arange(len(values))
    if count == 0:
        return NO_IDS
    bound = at_rank(values, count - 1)
    below = np.flatnonzero(values < bound)
    ties = np.flatnonzero(values == bound)[: count - len(below)]
    return np.sort(np.concatenate([below, ties]))


def at_rank(values: Floats, rank: int) -> float:
    """The value at index `rank` of the ascending `values` (n,), n > 0; the largest one beyond the end.

    NOTE: `np.partition` alone is an order of magnitude slower where many values are equal, as utilities are
    before most clients were tried. A sorted sample brackets the value, until few are left in the bracket.
    """
    rank = min(rank, len(values) - 1)
    while len(values) > PARTITIONED:
        sample = np.sort(values[:: len(values) // SAMPLED])
        near = rank * len(sample) // len(values)
        low, high = sample[max(near - MARGIN, 0)], sample[min(near + MARGIN, len(sample) - 1)]
        below, within = values < low, (values >= low) & (values <= high)
        before, inside = int(below.sum()), int(within.sum())
        if rank < before:
            values = values[below]
        elif rank >= before + inside:
            values, rank = values[values > high], rank - before - inside
        elif low == high:
            return float(low)
        elif inside == len(values):
            return float(np.sort(values)[rank])
        else:
            values, rank = values[within], rank - before
    return float(np.partition(values, rank)[rank])
