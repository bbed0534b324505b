"""Detect-Adapt-Overcome's signal: one number of each visit, the loss over all of its local batches."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.detectors.columns import Columns
from emulator.arrays import Floats
from emulator.messages import TaskMetric
from emulator.plugins import Settings


class TaskLossSettings(Settings):
    """How the losses of the batches of a visit become one number."""

    loss: Literal["sum", "mean"] = Field(
        "sum",
        description="of the losses of a visit's batches: Detect-Adapt-Overcome takes their sum, so that its "
        "thresholds depend on the number of local steps",
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
        there = ~np.isnan(signal)
        counts = there.sum(axis=1)
        total = np.where(there, signal, 0.0).sum(axis=1)
        number = np.full(len(signal), np.nan)
        divisor = np.maximum(counts, 1) if self.settings.loss == "mean" else 1
        np.copyto(number, total / divisor, where=counts > 0)
        return number[:, None]
