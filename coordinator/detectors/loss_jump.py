"""Detect-Adapt-Overcome's detector of sudden drift: a training loss that jumps, and stays high."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from coordinator.detectors.columns import Column, Rows
from coordinator.detectors.of_tasks import OfTasks, TaskLossSettings
from emulator.arrays import Bools, Floats
from emulator.numbers import Count, Number, PositiveFactor


class LossJumpSettings(TaskLossSettings):
    """What a jump is, and what a high loss."""

    delta: Annotated[float, Number(gt=1, le=1e6)] = Field(
        3.0, description="a loss jumps if it is above this many times the one of the visit before"
    )
    theta: PositiveFactor = Field(
        4.0, description="a client that has jumped is flagged while its loss is at least this high"
    )
    warm_start: Count = Field(5, description="visits of a client before a loss can jump")


class LossJump(OfTasks):
    """Flags a client from the visit after a jump of its loss on, until its loss is below `theta`.

    A jump is a loss above `delta` times the one before. The next visit says whether it lasts: if the loss is
    at least `theta`, the client is flagged, and again at each visit up to the first whose loss is lower;
    then, or if the loss does not last, the detector waits for another jump.

    The latch is that of the authors' code; as printed, the test would be true at one visit only.

    Source: Detect-Adapt-Overcome, algorithm 1, as evaluated. [A]

    >>> detector = LossJump(LossJumpSettings(warm_start=1))
    >>> detector.open(1)
    >>> [bool(detector.detect(np.array([0]), np.array([[loss]]), None)[0]) for loss in (1, 5, 6, 4, 3, 6)]
    [False, False, True, True, False, False]
    """

    Settings = LossJumpSettings
    settings: LossJumpSettings
    threshold = "delta"

    @property
    def columns(self) -> Mapping[str, Column]:
        return {"count": Column(0, np.int32), "last": Column(), "jumped": Column(False, np.bool_)}

    def update(self, rows: Rows, number: Floats) -> Bools:
        settings, jumped, last = self.settings, rows["jumped"], rows["last"]
        found: Bools = jumped & (number >= settings.theta)
        jumps = ~jumped & (number > settings.delta * last) & (rows["count"] >= settings.warm_start)
        np.logical_or(found, jumps, out=jumped)
        last[:] = number
        rows["count"] += 1
        return found
