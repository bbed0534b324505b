"""Exact shares, without the surprises of binary fractions, and apportionment in whole numbers."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from emulator.arrays import Ints


@cache
def exact(number: float) -> Fraction:
    """The decimal that `number` is written as.

    >>> import math
    >>> math.floor(0.29 * 100), math.floor(exact(0.29) * 100)
    (28, 29)
    """
    return Fraction(str(number))


def largest_remainder(total: int, sizes: Ints) -> Ints:
    """Share `total` over `sizes` in proportion, in whole numbers that sum to it; ties go to the lower row.

    >>> largest_remainder(10, np.array([50, 30, 21])).tolist()
    [5, 3, 2]
    """
    everybody = int(sizes.sum())
    if everybody == 0:
        return np.zeros_like(sizes)
    share, remainder = np.divmod(total * sizes, everybody)
    order = np.lexsort((np.arange(len(sizes)), -remainder))
    share[order[: total - int(share.sum())]] += 1
    return share
