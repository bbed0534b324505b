"""HDDM_A: a mean that is further above its past than Hoeffding's inequality lets expect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from coordinator.detectors.columns import Column, Columns, Rows, TrainingSettings, running_mean
from emulator.arrays import Bools, Floats
from emulator.numbers import Number


class HddmSettings(TrainingSettings):
    """How sure a drift has to be, and whether a fall is one."""

    confidence: Annotated[float, Number(ge=1e-100, lt=1)] = Field(
        0.001, description="greatest probability of a flag where nothing has changed, by the bound"
    )
    two_sided: bool = Field(
        False, description="whether a client is also flagged if its numbers have fallen", examples=[True]
    )


class HddmA(Columns):
    """Flags a client whose running mean has risen by more than Hoeffding's bound since it was lowest.

    With z the mean of all n numbers and e(n) = sqrt(ln(1 / `confidence`) / 2 n), it remembers the mean x and
    the number m at which z + e(n) was least. It flags a client if z - x is at least
    sqrt((n - m) / (m n) ln(2 / `confidence`) / 2). `two_sided` does the same with the negative numbers. It
    forgets everything after a flag.

    It is meant for error rates; a loss is clipped to 1.

    Source: Frías-Blanco et al., "Online and non-parametric drift detection methods based on Hoeffding's
    bounds", IEEE Transactions on Knowledge and Data Engineering 2015; in the form of river's `HDDMA`.

    >>> detector = HddmA(HddmSettings())
    >>> detector.open(2)
    >>> numbers = np.array([[0.1] * 40, [0.1] * 20 + [0.9] * 20])
    >>> detector.detect(np.array([0, 1]), numbers, None)
    array([False,  True])
    """

    Settings = HddmSettings
    settings: HddmSettings
    threshold = "confidence"
    domain = (0.0, 1.0)

    @property
    def columns(self) -> Mapping[str, Column]:
        sides = ("lowest", "highest") if self.settings.two_sided else ("lowest",)
        cuts = {f"{side}_count": Column(1) for side in sides} | {side: Column(np.inf) for side in sides}
        return {"count": Column(), "mean": Column(), **cuts}

    def update(self, rows: Rows, number: Floats) -> Bools:
        running_mean(rows, "count", "mean", number)
        bound = self._bound(rows["count"])
        found = self._rises(rows, "lowest", rows["mean"], bound)
        if self.settings.two_sided:
            found |= self._rises(rows, "highest", -rows["mean"], bound)
        return found

    def _bound(self, count: Floats) -> Floats:
        bound: Floats = 1.0 / (2 * count)
        bound *= math.log(1.0 / self.settings.confidence)
        return np.sqrt(bound, out=bound)

    def _rises(self, rows: Rows, side: str, mean: Floats, bound: Floats) -> Bools:
        """(k,) whether a mean is too far above the least that is remembered as `side`, which is kept up."""
        count, least, at = rows["count"], rows[side], rows[f"{side}_count"]
        lower = least + self._bound(at) >= mean + bound
        np.putmask(least, lower, mean)
        np.putmask(at, lower, count)
        limit = count - at
        limit /= at
        limit *= 1.0 / count
        limit /= 2
        limit *= math.log(2.0 / self.settings.confidence)
        found: Bools = mean - least >= np.sqrt(limit, out=limit)
        found &= at != count
        return found
