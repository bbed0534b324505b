"""DDM, the drift detection method of Gama et al.: an error rate that is far above its lowest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from coordinator.detectors.columns import Column, Columns, Rows, TrainingSettings, running_mean
from emulator.arrays import Bools, Floats
from emulator.numbers import Count, Number


class DdmSettings(TrainingSettings):
    """How far above its lowest an error rate may be."""

    warm_start: Count = Field(30, description="numbers of a client before it can be flagged", examples=[3])
    threshold: Annotated[float, Number(gt=0, le=1e6)] = Field(
        3.0, description="standard deviations above the lowest error rate from which a client drifted"
    )


class Ddm(Columns):
    """Flags a client whose running error rate is `threshold` deviations above the lowest so far.

    With p the mean of n numbers, and s = sqrt(p (1 - p) / n), it remembers p and s where p + s was least, and
    flags a client if p + s > p_min + `threshold` s_min. It forgets everything after a flag.

    It is meant for error rates; a loss is clipped to 1.

    Source: Gama et al., "Learning with drift detection", SBIA 2004; in the form of river's `DDM`.

    >>> detector = Ddm(DdmSettings(warm_start=3))
    >>> detector.open(2)
    >>> numbers = np.array([[0.0, 0.1, 0.0, 0.1, 0.0, 0.1], [0.0, 0.1, 0.0, 0.1, 1.0, 1.0]])
    >>> detector.detect(np.array([0, 1]), numbers, None)
    array([False,  True])
    """

    Settings = DdmSettings
    settings: DdmSettings
    threshold = "threshold"
    domain = (0.0, 1.0)

    def __init__(self, settings: DdmSettings) -> None:
        super().__init__(settings)
        self.needs_labels = settings.signal == "errors"

    @property
    def columns(self) -> Mapping[str, Column]:
        return {
            "count": Column(),
            "mean": Column(),
            "least_mean": Column(np.inf),
            "least_deviation": Column(np.inf),
        }

    def update(self, rows: Rows, number: Floats) -> Bools:
        running_mean(rows, "count", "mean", number)
        mean, least_mean, least_deviation = rows["mean"], rows["least_mean"], rows["least_deviation"]
        deviation = 1 - mean
        deviation *= mean
        deviation /= rows["count"]
        np.sqrt(deviation, out=deviation)
        level = mean + deviation
        warm = rows["count"] > self.settings.warm_start
        lower = warm & (level <= least_mean + least_deviation)
        np.putmask(least_mean, lower, mean)  # faster than copyto of many
        np.putmask(least_deviation, lower, deviation)
        limit = self.settings.threshold * least_deviation
        limit += least_mean
        found: Bools = warm & (level > limit)
        return found
