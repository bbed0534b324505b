"""Medians over seeds of censored figures, known only as bounds, with intervals of order statistics.

Times to a target are often censored: if a run does not hold the target, its time is after the horizon; if
it holds the target from its first evaluation, its time is not after that evaluation. Such times have no mean
and no t interval, but they have medians and order statistics, with `Bounds` in place of numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.results.statistics.intervals import FEWEST_SEEDS

Status = Literal["=", ">=", "<=", "range", "undetermined"]


@dataclass(frozen=True)
class Bounds:
    """A number that is known to lie in [low, high]."""

    low: float
    high: float

    @property
    def status(self) -> Status:
        """How well the number is known: exactly, from below, from above, as a range, or not at all.

        >>> Bounds(2, 2).status, Bounds(2, math.inf).status, Bounds(0, 2).status, Bounds(0, math.inf).status
        ('=', '>=', '<=', 'undetermined')
        >>> Bounds(1, 2).status
        'range'
        """
        if self.low == self.high and math.isfinite(self.low):
            return "="
        if math.isinf(self.high):
            return ">=" if self.low > 0 else "undetermined"
        return "range" if self.low > 0 else "<="

    def as_json(self) -> dict[str, object]:
        """The entry in `summary.json`; an infinite bound is null."""
        return {"low": _finite(self.low), "high": _finite(self.high), "status": self.status}


UNKNOWN = Bounds(-math.inf, math.inf)


def exactly(value: float) -> Bounds:
    """Bounds of a number that is known."""
    return Bounds(value, value)


def ratio(numerator: Bounds, denominator: Bounds) -> Bounds:
    """Bounds of the ratio of two amounts, neither below 0, with x / inf = 0 and x / 0 = inf.

    >>> ratio(Bounds(40, math.inf), exactly(20))
    Bounds(low=2.0, high=inf)
    """
    low = _quotient(numerator.low, denominator.high) if numerator.low > 0 else 0.0
    return Bounds(low, _quotient(numerator.high, denominator.low))


@dataclass(frozen=True)
class MedianEstimate:
    """The median over seeds, with an interval and its level in (0, 1).

    With under three seeds, both `interval` and `level` are None.
    """

    median: Bounds
    interval: Bounds | None
    level: float | None
    per_seed: list[Bounds]

    def as_json(self) -> dict[str, object]:
        """The entry in `summary.json`."""
        interval = (
            None if self.interval is None else [_finite(self.interval.low), _finite(self.interval.high)]
        )
        return {
            "median": self.median.as_json(),
            "interval": interval,
            "level": self.level,
            "per_seed": [bounds.as_json() for bounds in self.per_seed],
        }


def median_estimate(per_seed: Sequence[Bounds], *, geometric: bool = False) -> MedianEstimate:
    """The median of n >= 1 bounds, one per seed: from the median of the lows to that of the highs.

    For an even n, a median is the mean of the middle two, the geometric mean if `geometric` (for ratios).

    The interval goes from the k-th smallest low to the k-th largest high. For any distribution, it misses the
    median of the population in at most 2 P(Bin(n, 1/2) < k) of all samples.
    """
    lows, highs = sorted(bounds.low for bounds in per_seed), sorted(bounds.high for bounds in per_seed)
    median = Bounds(_middle(lows, geometric), _middle(highs, geometric))
    if len(per_seed) < FEWEST_SEEDS:
        return MedianEstimate(median, None, None, list(per_seed))
    rank, level = rank_and_level(len(per_seed))
    return MedianEstimate(median, Bounds(lows[rank - 1], highs[-rank]), level, list(per_seed))


def levels_as_text(levels: Iterable[float | None]) -> str:
    """The levels that there are, in percent, joined by "or"; empty without one.

    >>> levels_as_text([0.75, None, 0.9375, 0.75])
    '75.0 % or 93.8 %'
    """
    known = sorted({level for level in levels if level is not None})
    return " or ".join(f"{100 * level:.1f} %" for level in known)


@functools.cache
def rank_and_level(count: int) -> tuple[int, float]:
    """(k, level): the k-th smallest and k-th largest of `count` values enclose the median at that level.

    k is the largest number whose level is at least 95 %, or 1 if there is none.

    >>> rank_and_level(5), rank_and_level(6), rank_and_level(10)[0]
    ((1, 0.9375), (1, 0.96875), 2)
    """
    rank, ways = 1, 1  # `ways`: of all 2^count samples, those with fewer than `rank` values below the median
    chosen = count  # samples with exactly `rank` values below it
    while 40 * (ways + chosen) <= 2**count:  # 2 P(Bin < rank + 1) <= 0.05
        rank, ways = rank + 1, ways + chosen
        chosen = chosen * (count - rank + 1) // rank
    return rank, 1 - ways / 2 ** (count - 1)


def _middle(ordered: Sequence[float], geometric: bool) -> float:
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if below == above:
        return below
    return math.sqrt(below) * math.sqrt(above) if geometric else (below + above) / 2


def _quotient(numerator: float, denominator: float) -> float:
    """The quotient, with x / inf = 0 and x / 0 = inf.

    >>> _quotient(2.0, math.inf), _quotient(2.0, 0.0), _quotient(math.inf, 0.0)
    (0.0, inf, inf)
    """
    if math.isinf(denominator):
        return 0.0
    return numerator / denominator if denominator > 0 else math.inf


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value
