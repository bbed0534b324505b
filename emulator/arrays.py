"""Array types shared by all packages, and sums whose last bits depend on neither threads nor order."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NO_IDS: Ints = np.zeros(0, dtype=np.int64)
"""An empty array of ids, shared by its users: not to be written to."""


NARROW = 256
"""Numbers in a row up to which all rows that are added up, and their partial sums, are held at once."""

BLOCK = 2**14
"""Numbers of a wide row that are added up at a time, in double precision: they stay in a core's cache."""


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
    if rows.shape[1] > NARROW:
        add_weighted_sums(sums, weights, rows)
        return sums
    for total, row_weights in zip(sums, weights, strict=True):
        used = row_weights.nonzero()[0]
        if len(used):
            # NOTE: the same sums in the same order, all at once: six times as fast for a hundred short rows.
            terms = np.zeros((len(used) + 1, len(total)))
            np.multiply(row_weights[used, None], rows[used], out=terms[1:])
            total[:] = np.add.accumulate(terms)[-1]
    return sums


def add_weighted_sums(
    sums: Floats, weights: Floats, rows: Floats | Floats32, which: Ints | None = None
) -> None:
    """Add `weighted_sums` to `sums`, in place; of long rows a block at a time, without a copy of any.

    Args:
        sums: array of shape (k, P).
        weights: array of shape (k, n).
        rows: array of shape (n, P), or of which n rows are meant.
        which: (n,) these, by their numbers; None: all.
    """
    if rows.shape[1] <= NARROW:
        sums += weighted_sums(weights, rows if which is None else rows[which])
        return
    buffers = np.empty((2, BLOCK))
    for total, row_weights in zip(sums, weights, strict=True):
        used = row_weights.nonzero()[0]
        numbers = (used if which is None else which[used]).tolist()
        for first in range(0, len(total) if numbers else 0, BLOCK):
            block = slice(first, min(first + BLOCK, len(total)))
            part, term = buffers[:, : block.stop - first]
            part.fill(0.0)
            for weight, row in zip(row_weights[used], numbers, strict=True):
                term[:] = rows[row, block]
                term *= weight
                part += term
            total[block] += part


def one_blas_thread() -> AbstractContextManager[Any]:
    """Context in which matrix products and decompositions of numpy, scipy and scikit-learn run on one thread.

    Several threads would change the order of sums, and so the last bits.
    """
    limit: AbstractContextManager[Any] = _thread_pools().limit(limits=1)
    return limit


@cache
def _thread_pools() -> Any:
    """The thread pools of this process.

    NOTE: found once, since looking through all loaded libraries takes longer than a small clustering. That of
    numpy, which is imported by then, is among them.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
