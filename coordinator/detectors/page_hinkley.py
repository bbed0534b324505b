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
    two_sided: bool = Field(
        True,
        description="whether a client is also flagged if its numbers have fallen, as they do while a model "
        "learns",
        examples=[False],
    )


class PageHinkley(Columns):
    """Flags a client whose numbers have risen, or with `two_sided` fallen, by more than `threshold` in all.

    With m the running mean, it cumulates u = `keep` u + (x - m) - `delta` and d = `keep` d + (x - m) +
    `delta`, and flags a client if u is more than `threshold` above its least, or d as much below its most;
    the latter begins at -1, as in river. It forgets everything after a flag.

    Source: Page, "Continuous inspection schemes", Biometrika 1954; in the form of river's `PageHinkley`.

    >>> detector = PageHinkley(PageHinkleySettings(warm_start=3, threshold=1.0))
    >>> detector.open(2)
    >>> detector.detect(np.array([0, 1]), np.array([[0.5, 0.5, 0.5, 0.5], [0.1, 0.1, 0.9, 0.9]]), None)
    array([False, False])
    >>> detector.detect(np.array([0, 1]), np.array([[0.5, 0.5, 0.5, 0.5], [0.9, 0.9, 0.9, 0.9]]), None)
    array([False,  True])
    """

    Settings = PageHinkleySettings
    settings: PageHinkleySettings
    threshold = "threshold"

    @property
    def columns(self) -> Mapping[str, Column]:
        columns = {"count": Column(), "mean": Column(), "up": Column(), "least_up": Column(np.inf)}
        if self.settings.two_sided:
            columns |= {"down": Column(), "most_down": Column(-1.0)}
        return columns

    def update(self, rows: Rows, number: Floats) -> Bools:
        settings, up, least = self.settings, rows["up"], rows["least_up"]
        running_mean(rows, "count", "mean", number)
        above = number - rows["mean"]
        self._cumulate(up, above, -settings.delta)
        np.minimum(least, up, out=least)
        far = up - least > settings.threshold
        if settings.two_sided:
            down, most = rows["down"], rows["most_down"]
            self._cumulate(down, above, settings.delta)
            np.maximum(most, down, out=most)
            far |= most - down > settings.threshold
        found: Bools = far & (rows["count"] >= settings.warm_start)
        return found

    def _cumulate(self, cumulated: Floats, above: Floats, tolerated: float) -> None:
        """Add the deviations (k,) of the newest numbers from their means, in place."""
        cumulated *= self.settings.keep
        cumulated += above
        cumulated += tolerated
