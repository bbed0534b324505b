"""The array types every package speaks of, and the one sum whose order is part of the contract."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NO_IDS: Ints = np.zeros(0, dtype=np.int64)


def weighted_sums(weights: Floats, rows: Floats32) -> Floats:
    """`weights` (k, n) times `rows` (n, P): (k, P) in float64, summed in ascending row order.

    Not a matrix product, which BLAS may reorder. A row of weight 0 is not touched, so a unit row of `weights`
    copies exactly, whatever the other rows hold.
    """
    sums = np.zeros((len(weights), rows.shape[1]))
    for total, row_weights in zip(sums, weights, strict=True):
        for index in np.flatnonzero(row_weights):
            total += row_weights[index] * rows[index]
    return sums
