"""HDDM_W: a weighted mean that is further above its past than McDiarmid's inequality lets expect."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from pydantic import Field

from coordinator.detectors.columns import Column, Columns, Rows
from coordinator.detectors.hddm_a import HddmSettings
from emulator.arrays import Bools, Floats
from emulator.numbers import InnerShare


class HddmWSettings(HddmSettings):
    """How sure a drift has to be, and how much the newest numbers weigh."""

    decay: InnerShare = Field(0.05, description="weight of the newest number in the weighted mean (lambda)")


class HddmW(Columns):
    """Flags a client whose recent weighted mean is too far above the one at which it was lowest.

    With l the `decay`, z = l x + (1 - l) z is the weighted mean of all numbers, and b = l^2 + (1 - l)^2 b,
    which begins at 1, the sum of its squared weights. It remembers z and b where
    z + sqrt(b ln(1 / `confidence`) / 2) was least, and takes another weighted mean, z' and b', of the numbers
    since then. It flags a client if z' - z is above sqrt((b + b') ln(1 / `confidence`) / 2). `two_sided` does
    the same with the negative numbers. It forgets everything after a flag.

    It is meant for error rates; a loss is clipped to 1.

    Source: Frías-Blanco et al., "Online and non-parametric drift detection methods based on Hoeffding's
    bounds", IEEE Transactions on Knowledge and Data Engineering 2015; in the form of river's `HDDMW`.

    >>> detector = HddmW(HddmWSettings())
    >>> detector.open(2)
    >>> numbers = np.array([[0.1] * 80, [0.1] * 40 + [0.9] * 40])
    >>> detector.detect(np.array([0, 1]), numbers, None)
    array([False,  True])
    """

    Settings = HddmWSettings
    settings: HddmWSettings
    threshold = "confidence"
    domain = (0.0, 1.0)

    @property
    def columns(self) -> Mapping[str, Column]:
        columns = {"mean": Column(-np.inf), "squares": Column(1.0)}
        for side in ("rise", "fall") if self.settings.two_sided else ("rise",):
            columns |= {
                f"{side}_least": Column(np.inf),
                f"{side}_before": Column(),
                f"{side}_before_squares": Column(),
                f"{side}_since": Column(-np.inf),  # no number since then
                f"{side}_since_squares": Column(1.0),
            }
        return columns

    def update(self, rows: Rows, number: Floats) -> Bools:
        mean, squares = rows["mean"], rows["squares"]
        self._take(mean, squares, number)
        bound = self._bound(squares)
        found = self._differs(rows, "rise", number, mean, bound)
        if self.settings.two_sided:
            found |= self._differs(rows, "fall", -number, -mean, bound)
        return found

    def _take(self, mean: Floats, squares: Floats, number: Floats) -> None:
        """Take a number of each of k clients into their weighted means, -inf before the first, in place."""
        decay = self.settings.decay
        first = np.isneginf(mean)
        mean *= 1 - decay
        mean += decay * number
        np.putmask(mean, first, number)
        squares *= (1 - decay) ** 2
        squares += decay * decay

    def _bound(self, squares: Floats) -> Floats:
        bound: Floats = squares * math.log(1 / self.settings.confidence)
        bound /= 2
        return np.sqrt(bound, out=bound)

    def _differs(self, rows: Rows, side: str, number: Floats, mean: Floats, bound: Floats) -> Bools:
        """(k,) whether the mean since the lowest of all means is too far above it; both are kept up."""
        least, before, before_squares = (
            rows[f"{side}_{name}"] for name in ("least", "before", "before_squares")
        )
        since, since_squares = rows[f"{side}_since"], rows[f"{side}_since_squares"]
        level = mean + bound
        lower = level < least
        self._take(since, since_squares, number)
        np.putmask(least, lower, level)
        np.putmask(before, lower, mean)
        np.putmask(before_squares, lower, rows["squares"])
        np.putmask(since, lower, -np.inf)
        np.putmask(since_squares, lower, 1.0)
        found: Bools = since - before > self._bound(before_squares + since_squares)
        return found
