"""k-center by farthest-first traversal: each further centre is the report farthest from all before it."""

from __future__ import annotations

import numpy as np

from coordinator.distances import DISTANCES, DistanceName
from emulator.arrays import Floats, Ints


def farthest_first(reports: Floats, count: int, distance: DistanceName) -> Ints:
    """(count,) rows of `reports` (n, D) in the order in which they become centres; 1 <= count <= n.

    The first is row 0; ties go to the lowest row. For every k up to `count`, the largest distance of a report
    to the nearest of the first k centres is at most twice the smallest possible, if `distance` satisfies the
    triangle inequality. Gonzalez 1985; Fielding, algorithm 4.

    >>> farthest_first(np.array([[0.0], [1.0], [5.0], [9.0]]), 3, "l1").tolist()
    [0, 3, 2]
    """
    centers = np.zeros(count, dtype=np.int64)
    apart = np.full(len(reports), np.inf)
    for number in range(1, count):
        to_last = DISTANCES[distance](reports, reports[centers[number - 1], None])[:, 0]
        np.minimum(apart, to_last, out=apart)
        centers[number] = apart.argmax()
    return centers
