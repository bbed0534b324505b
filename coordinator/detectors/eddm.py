"""EDDM, the early drift detection method: errors that follow each other faster than they did."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pydantic import Field

from coordinator.detectors.columns import Column, Columns, Rows, TrainingSettings
from emulator.arrays import Bools, Floats
from emulator.numbers import Count, InnerShare, PositiveFactor


class EddmSettings(TrainingSettings):
    """What an error is, and how much closer together errors may come."""

    wrong_from: PositiveFactor = Field(
        0.5, description="a number counts as an error if it is at least this: a batch of which half is wrong"
    )
    warm_start: Count = Field(
        30, description="numbers and errors of a client before it can be flagged", examples=[3]
    )
    beta: InnerShare = Field(
        0.9, description="share of its greatest level below which the distance of errors is a drift"
    )


class Eddm(Columns):
    """Flags a client whose errors have come closer together than they were.

    With m and s the mean and the standard deviation of the distances between errors, in numbers, it remembers
    the greatest m + 2 s, and flags a client at an error if m + 2 s is below `beta` times that. It forgets
    everything after a flag.

    It is meant for single samples. On error rates of batches it sees few errors, unless `wrong_from` is near
    the expected rate.

    Source: Baena-García et al., "Early drift detection method", 4th International Workshop on Knowledge
    Discovery from Data Streams 2006; in the form of river's `EDDM`.

    >>> detector = Eddm(EddmSettings(warm_start=3))
    >>> detector.open(2)
    >>> numbers = np.array([[0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1]])
    >>> detector.detect(np.array([0, 1]), numbers.astype(float), None)
    array([False,  True])
    """

    Settings = EddmSettings
    settings: EddmSettings
    threshold = "beta"

    def __init__(self, settings: EddmSettings) -> None:
        super().__init__(settings)
        self.needs_labels = settings.signal == "errors"

    @property
    def columns(self) -> Mapping[str, Column]:
        return {
            "count": Column(),
            "errors": Column(),
            "last_error": Column(),
            "mean": Column(),
            "squares": Column(),  # of the deviations from the mean
            "greatest": Column(-1.0),
        }

    def update(self, rows: Rows, number: Floats) -> Bools:
        rows["count"] += 1
        wrong = np.flatnonzero(number >= self.settings.wrong_from)
        count, errors = rows["count"][wrong], rows["errors"][wrong] + 1
        distance, mean = count - rows["last_error"][wrong], rows["mean"][wrong]
        deviation = distance - mean
        mean += 1.0 / errors * deviation
        squares = rows["squares"][wrong] + deviation * (distance - mean)
        level = mean + 2 * np.sqrt(squares / np.maximum(errors - 1, 1))
        warm, greatest = count > self.settings.warm_start, rows["greatest"][wrong]
        greater = warm & (level > greatest)
        close = warm & ~greater & (errors > self.settings.warm_start)
        close &= level / greatest < self.settings.beta
        for name, value in (("errors", errors), ("last_error", count), ("mean", mean), ("squares", squares)):
            rows[name][wrong] = value
        rows["greatest"][wrong[greater]] = level[greater]
        found = np.zeros(len(number), dtype=bool)
        found[wrong] = close
        return found
