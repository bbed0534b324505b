"""How unlike the clients of a cluster are: the mean client distance."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Floats, Ints


def mean_client_distance(histograms: Floats, members: Ints) -> float:
    """Mean over clients of the mean L1 distance to the other members of their cluster, in [0, 2].

    `histograms` (N, D), `members` (N,). A client alone in its cluster counts 0 (Fielding defines none).
    Sorting each column gives the sum over all pairs exactly, without the N x N distances; besides
    `histograms` there is one copy of the largest cluster's.
    """
    total = 0.0
    for cluster in np.unique(members):
        rows = histograms[members == cluster]  # a copy, which is worked on in place
        size = len(rows)
        if size > 1:
            rows.sort(axis=0)
            rows *= (2 * np.arange(size) - size + 1)[:, None]  # signs of the i-th smallest over all pairs
            pairs = float(rows.sum())
            total += 2 * pairs / (size - 1)
    return total / len(members)
