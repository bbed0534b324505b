"""The weighted mean of what came back."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.view import View
from emulator.arrays import Floats32
from emulator.messages import Updates
from emulator.plugins import Parameters


class FedAvgParameters(Parameters):
    """How much each update counts."""

    weighting: Literal["samples", "uniform"] = Field(
        "samples",
        description="by the samples a client holds (McMahan et al. 2017), or alike (FedScale, Fielding)",
    )


class FedAvg(Aggregator):
    """The weighted mean of the updates, model by model.

    model += sum_c p_c update_c, with p_c = n_c / sum n, or 1 / participants.
    """

    Parameters = FedAvgParameters

    def __init__(self, parameters: FedAvgParameters) -> None:
        self.parameters = parameters

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        by_samples = self.parameters.weighting == "samples"
        share = updates.num_samples if by_samples else np.ones(len(updates))
        weights = np.where(updates.model == view.model_ids[:, None], share, 0.0)  # (M, n)
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        return (view.models + updates.mix(weights)).astype(np.float32)
