"""Counting exactly: decimal fractions, apportionment by largest remainder, steps and samples of epochs."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Literal

import numpy as np

from emulator.arrays import Floats, Ints

LastBatch = Literal["filled", "short"]
"""The last batch of a pass over n samples: filled from the next pass, or with what is left of this one."""


@cache
def exact(number: float) -> Fraction:
    """The exact fraction of the decimal number that `number` is written as.

    As a float, 0.29 is a little less than 29/100; `exact(0.29)` is 29/100.

    >>> import math
    >>> math.floor(0.29 * 100), math.floor(exact(0.29) * 100)
    (28, 29)
    """
    return Fraction(str(number))


def largest_remainder(total: int, sizes: Ints) -> Ints:
    """Apportion `total` in proportion to `sizes`, in whole numbers that sum to it.

    The method of largest remainders; ties go to the lower row.

    Args:
        total: what is apportioned, at least 0.
        sizes: array of shape (n,), at least 0 each.

    Returns:
        Array of shape (n,) that sums to `total`; all zeros if all sizes are 0.

    >>> largest_remainder(10, np.array([50, 30, 21])).tolist()
    [5, 3, 2]
    """
    size_sum = int(sizes.sum())
    if size_sum == 0:
        return np.zeros_like(sizes)
    share, remainder = np.divmod(total * sizes, size_sum)
    order = np.lexsort((np.arange(len(sizes)), -remainder))
    share[order[: total - int(share.sum())]] += 1
    return share


def epoch_steps(samples: Ints, batch_size: Ints | Floats | int) -> Ints:
    """(n,) the steps of one epoch over so many `samples` (n,): ceil(samples / batch_size).

    >>> epoch_steps(np.array([0, 1, 20, 21]), 10).tolist()
    [0, 1, 2, 3]
    """
    return -(-samples // np.asarray(batch_size).astype(np.int64))


def samples_of_steps(
    steps: Ints | Floats, samples: Ints, batch_size: Ints | Floats | int, last: LastBatch
) -> Floats:
    """(n,) the samples that `steps` (n,) train on, each counted once for each use.

    Batches are of `batch_size`, but for the `last` of each pass over the `samples` (n,), if it is short.

    >>> samples_of_steps(np.array([3, 4]), np.array([25, 25]), 10, "short").tolist()
    [25.0, 35.0]
    >>> samples_of_steps(np.array([3, 4]), np.array([25, 25]), 10, "filled").tolist()
    [30.0, 40.0]
    """
    if last == "filled":
        return np.asarray(steps * batch_size, dtype=np.float64)
    in_epoch = np.maximum(epoch_steps(samples, batch_size), 1)
    passes, left = steps // in_epoch, steps % in_epoch
    return np.asarray(passes * samples + left * batch_size, dtype=np.float64)
