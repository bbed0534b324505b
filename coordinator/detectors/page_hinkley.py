"""The Page-Hinkley test: a cumulated deviation from the running mean that has come far from its extreme."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from coordinator.detectors.columns import Column, Columns, Rows, TrainingSettings, running_mean
from emulator.arrays import Bools, Floats
from emulator.numbers import Count, Factor, Number


class PageHinkleySettings(TrainingSettings):
    """What counts as a change, and how much of it is a drift."""

    warm_start: Count = Field(30, description="numbers of a client before it can be flagged")
    delta: Factor = Field(0.005, description="deviation from the mean that is tolerated at each number")
    threshold: Annotated[float, Number(gt=0, le=1e6)] = Field(
        50.0, description="cumulated deviation above which a client drifted", examples=[5.0]
    )
    keep: Annotated[float, Number(gt=0, le=1)] = Field(
        0.9999, description="share of the cumulated deviation that is kept from one number to the next"
    )


class PageHinkley(Columns):
    """Flags a client whose numbers have risen, or fallen, by more than `threshold` in all.

    With m the running mean, it cumulates u = `keep` u + (x - m) - `delta` and d = `keep` d + (x - m) +
    `delta`, and flags a client if u is more than `threshold` above its least, or d as much below its most;
    the latter begins at -1, as in river. It forgets everything after a flag.

    Source: Page, "Continuous inspection schemes", Biometrika 1954; in the two-sided form of river's
    `PageHinkley`.

    >>> detector = PageHinkley(PageHinkleySettings(warm_start=3, threshold=1.0))
    >>> detector.open(2)
    >>> detector.detect(np.array([0, 1]), np.array([[0.5, 0.5, 0.5, 0.5], [0.1, 0.1, 0.9, 0.9]]), None)
    array([False, False])
    >>> detector.detect(np.array([0, 1]), np.array([[0.5, 0.5, 0.5, 0.5], [0.9, 0.9, 0.9, 0.9]]), None)
    array([False,  True])
    """

    Settings = PageHinkleySettings
    settings: PageHinkleySettings

    @property
    def columns(self) -> Mapping[str, Column]:
        return {
            "count": Column(),
            "mean": Column(),
            "up": Column(),
            "down": Column(),
            "least_up": Column(np.inf),
            "most_down": Column(-1.0),
        }

    def update(self, rows: Rows, number: Floats) -> Bools:
        settings, up, down = self.settings, rows["up"], rows["down"]
        running_mean(rows, "count", "mean", number)
        above = number - rows["mean"]
        for cumulated, tolerated in ((up, -settings.delta), (down, settings.delta)):
            cumulated *= settings.keep
            cumulated += above
            cumulated += tolerated
        np.minimum(rows["least_up"], up, out=rows["least_up"])
        np.maximum(rows["most_down"], down, out=rows["most_down"])
        far = up - rows["least_up"] > settings.threshold
        far |= rows["most_down"] - down > settings.threshold
        found: Bools = far & (rows["count"] >= settings.warm_start)
        return found
