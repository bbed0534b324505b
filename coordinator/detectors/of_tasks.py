"""Detect-Adapt-Overcome's signal: one number of each visit, the loss over all of its local batches."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.detectors.columns import Columns
from emulator.arrays import Floats, Ints
from emulator.messages import TaskMetric
from emulator.plugins import Settings


class TaskLossSettings(Settings):
    """How the losses of the batches of a visit become one number."""

    loss: Literal["sum", "mean"] = Field(
        "sum",
        description="of the losses of a visit's batches; with their sum, Detect-Adapt-Overcome's, thresholds "
        "depend on the number of local steps",
        examples=["mean"],
    )


class OfTasks(Columns):
    """Base of detectors that compare the losses of whole visits, and forget nothing after a flag."""

    settings: TaskLossSettings  # type: ignore[assignment]  # it watches losses only
    starts_anew = False

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return frozenset({"batch_losses"})

    def numbers(self, signal: Floats) -> Floats:
        """(k, 1) the sum or the mean of the losses (k, steps); NaN for a client without a batch."""
        if signal.shape[1] == 0:
            return signal
        counts: Ints | None = None
        total = _total(signal)
        if np.isnan(total.min()):  # which is NaN if any of them is, as is the sum of a row with one
            missing = np.isnan(signal)
            counts = signal.shape[1] - missing.sum(axis=1)
            total = _total(np.where(missing, 0.0, signal))
        if self.settings.loss == "mean":
            total /= signal.shape[1] if counts is None else np.maximum(counts, 1)
        if counts is not None:
            total[counts == 0] = np.nan
        return total[:, None]


def _total(signal: Floats) -> Floats:
    """(k,) the sums of rows, one column after the other: steps that only others have change no digit."""
    total = signal[:, 0].astype(np.float64)
    for number in signal.T[1:]:
        total += number
    return total
