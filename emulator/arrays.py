"""Array types shared by all packages, and a weighted sum with a fixed order of summation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NO_IDS: Ints = np.zeros(0, dtype=np.int64)
"""An empty array of ids, shared by its users: not to be written to."""


NARROW = 256
"""Numbers in a row up to which `weighted_sums` holds all rows that it adds up, and their partial sums."""


def weighted_sums(weights: Floats, rows: Floats | Floats32) -> Floats:
    """`weights` times `rows`, in float64 and summed in ascending row order.

    Not a matrix product, whose sums BLAS may reorder. A row of weight 0 is not read, so a unit row of
    `weights` copies its row exactly, even if other rows hold NaN or infinities.

    Args:
        weights: array of shape (k, n).
        rows: array of shape (n, P).

    Returns:
        Array of shape (k, P).
    """
    sums = np.zeros((len(weights), rows.shape[1]))
    narrow = rows.shape[1] <= NARROW
    for total, row_weights in zip(sums, weights, strict=True):
        used = row_weights.nonzero()[0]
        if narrow and len(used):
            # NOTE: the same sums in the same order, all at once: six times as fast for a hundred short rows.
            terms = np.zeros((len(used) + 1, len(total)))
            np.multiply(row_weights[used, None], rows[used], out=terms[1:])
            total[:] = np.add.accumulate(terms)[-1]
            continue
        for index in used:
            total += row_weights[index] * rows[index]
    return sums
