"""Shares of whole numbers, without the surprises of binary fractions."""

from __future__ import annotations

from fractions import Fraction
from functools import cache


@cache
def exact(number: float) -> Fraction:
    """The decimal that `number` is written as.

    >>> import math
    >>> math.floor(0.29 * 100), math.floor(exact(0.29) * 100)
    (28, 29)
    """
    return Fraction(str(number))
