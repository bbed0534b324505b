"""Exact decimal fractions, and apportionment in whole numbers by largest remainder."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from emulator.arrays import Ints


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
