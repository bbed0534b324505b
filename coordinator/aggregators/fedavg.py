"""The weighted mean of what came back."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.deprecated import keep_old_names
from emulator.messages import Updates
from emulator.plugins import Settings


class FedAvgSettings(Settings):
    """How much each update counts."""

    weighting: Literal["samples", "uniform"] = Field(
        "samples",
        description="by the samples a client holds (McMahan et al. 2017), or alike (FedScale, Fielding)",
    )


class FedAvg(Aggregator):
    """The weighted mean of the updates, model by model.

    model += sum_c p_c update_c, with p_c = n_c / sum n, or 1 / participants.
    """

    Settings = FedAvgSettings
    settings: FedAvgSettings

    def weights(self, model: Ints, num_samples: Ints, view: View) -> Floats:
        return mean_weights(model, num_samples, view, self.settings.weighting)

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        weights = self.weights(updates.model, updates.num_samples, view)
        return (view.models + updates.weighted_sum(weights)).astype(np.float32)


def mean_weights(
    model: Ints, num_samples: Ints, view: View, weighting: Literal["samples", "uniform"]
) -> Floats:
    """(M, n) what each of n updates weighs in the mean of its model's; they sum to 1, or are all 0."""
    share = num_samples if weighting == "samples" else np.ones(len(model))
    weights = np.where(model == view.model_ids[:, None], share, 0.0)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    return weights


keep_old_names(__name__)
