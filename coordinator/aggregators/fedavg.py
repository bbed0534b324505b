"""Federated averaging: the weighted mean of the updates."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import Updates
from emulator.plugins import Settings


class FedAvgSettings(Settings):
    """The weight of each update."""

    weighting: Literal["samples", "uniform"] = Field(
        "samples",
        description="by the samples a client holds (McMahan et al. 2017), or equal (FedScale, Fielding)",
    )


class FedAvg(Aggregator):
    """The weighted mean of the updates, model by model.

    model += sum_c p_c update_c over the updates of the model, with p_c = n_c / sum n, or 1 / their number.

    Two updates of the model with id 4, from 1 and 3 samples, and one of the model with id 9:

    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(model_ids=np.array([4, 9]))
    >>> FedAvg(FedAvgSettings()).weights(np.array([4, 4, 9]), np.array([1, 3, 7]), view)
    array([[0.25, 0.75, 0.  ],
           [0.  , 0.  , 1.  ]])
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
    """(M, n) the weight of each of n updates in the mean of its model; a row sums to 1, or is all 0."""
    share = num_samples if weighting == "samples" else np.ones(len(model))
    weights = np.where(model == view.model_ids[:, None], share, 0.0)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    return weights
