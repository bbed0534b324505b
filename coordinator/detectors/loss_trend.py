"""Detect-Adapt-Overcome's detector of incremental drift: a training loss above two of its running means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from coordinator.detectors.columns import Column, Rows
from coordinator.detectors.of_tasks import OfTasks, TaskLossSettings
from emulator.arrays import Bools, Floats
from emulator.numbers import Count, Number

MOST_WINDOW = 1000
"""Longest window, which is kept of each client."""


class LossTrendSettings(TaskLossSettings):
    """The two windows, and whether a drift may be over."""

    short: Count = Field(15, description="visits of the short window")
    long: Annotated[int, Number(ge=2, le=MOST_WINDOW)] = Field(20, description="visits of the long window")
    releases: bool = Field(
        True,
        description="whether the mean of the long window is followed again once the loss is not above either "
        "mean, as in the paper, but not in the authors' code",
        examples=[False],
    )

    @model_validator(mode="after")
    def _short_is_below_long(self) -> LossTrendSettings:
        if self.short >= self.long:
            raise ValueError(f"short = {self.short}: must be below long = {self.long}")
        return self


class LossTrend(OfTasks):
    """Flags a client whose loss is above the means of its last `short` and of its last `long` visits.

    Both windows include the present visit, and the test begins when the long one is full. As long as the loss
    is not above the long mean, that mean is followed; when it is, it is kept as it is, and with `releases` it
    is followed again at the first visit whose loss exceeds neither. The windows are in single precision.

    Source: Detect-Adapt-Overcome, algorithm 2; without `releases` as in the authors' code. [A]

    >>> detector = LossTrend(LossTrendSettings(short=2, long=3))
    >>> detector.open(1)
    >>> [bool(detector.detect(np.array([0]), np.array([[loss]]), None)[0]) for loss in (1, 1, 1, 2, 3, 1, 1)]
    [False, False, False, True, True, False, False]
    """

    Settings = LossTrendSettings
    settings: LossTrendSettings

    @property
    def columns(self) -> Mapping[str, Column]:
        return {
            "count": Column(0, np.int32),
            "window": Column(0.0, np.float32, self.settings.long),  # oldest first
            "frozen": Column(np.nan),  # the long mean, where it is kept
        }

    def update(self, rows: Rows, number: Floats) -> Bools:
        settings, count, window, frozen = self.settings, rows["count"], rows["window"], rows["frozen"]
        count += 1
        newer, older = np.zeros(len(number)), np.zeros(len(number))
        for at in range(settings.long):  # row by row, which each sum finds in the cache
            window[at] = number if at == settings.long - 1 else window[at + 1]
            total = older if at < settings.long - settings.short else newer
            total += window[at]
        loss = window[-1]
        short, long = newer / settings.short, (older + newer) / settings.long
        long = np.where(np.isnan(frozen), long, frozen)
        full = count >= settings.long
        above_short, above_long = full & (loss > short), full & (loss > long)
        np.putmask(frozen, above_long, long)
        if settings.releases:
            np.putmask(frozen, full & ~above_short & ~above_long, np.nan)
        found: Bools = above_short & above_long
        return found
