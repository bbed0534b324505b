"""Federated averaging: the weighted mean of the updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import Updates
from emulator.plugins import Settings

MODELS_AT_ONCE = 256
"""Models whose means are computed together: with more, all of them times all updates are too many weights."""


class FedAvgSettings(Settings):
    """The weight of each update."""

    weighting: Literal["samples", "uniform"] = Field(
        "samples",
        description="by the samples a client holds (McMahan et al. 2017), or equal (FedScale, Fielding)",
        examples=["uniform"],
    )


class FedAvg(Aggregator):
    """The weighted mean of the updates, model by model.

    model += sum_c p_c update_c over the updates of the model, with p_c = n_c / sum n, or 1 / their number.

    Source: McMahan et al. 2017, algorithm 1; equal weights as in FedScale and Fielding.

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
        return mean_weights(model, num_samples, view.model_ids, self.settings.weighting)

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        models = means(updates, view, self.settings.weighting)
        models += view.models  # in place: of large models each copy counts
        return models.astype(np.float32)


def means(updates: Updates, view: View, weighting: Literal["samples", "uniform"]) -> Floats:
    """(M, P) the mean of each model's updates, by `mean_weights`; 0 for a model without any."""
    return sums(updates, view, lambda some, ids: mean_weights(some.model, some.num_samples, ids, weighting))


def stepped(updates: Updates) -> Updates:
    """The updates of tasks that took a step, on samples."""
    return updates.take(((updates.num_steps > 0) & (updates.num_samples > 0)).nonzero()[0])


def sums(updates: Updates, view: View, weights: Callable[[Updates, Ints], Floats]) -> Floats:
    """(M, P) the weighted sum of each model's updates; 0 for a model without any.

    Of many models some at a time, with the updates of these alone: there is no array of all models and all
    updates, and the sums are the same.

    Args:
        updates: the n updates.
        view: that of `aggregate`.
        weights: some of the updates, and the ids of some of the models -> their weights, (models, updates).
    """
    ids, (first, last) = view.model_ids, (0, MODELS_AT_ONCE)
    if len(ids) <= MODELS_AT_ONCE:
        return updates.weighted_sum(weights(updates, ids))
    total = np.zeros_like(view.models, dtype=np.float64)
    row = np.argsort(ids, kind="stable")[np.searchsorted(np.sort(ids), updates.model)]  # of each update
    order = np.argsort(row, kind="stable")
    while first < len(ids):
        begin, end = np.searchsorted(row[order], (first, last))
        if begin < end:
            some = updates.take(np.sort(order[begin:end]))
            total[first:last] = some.weighted_sum(weights(some, ids[first:last]))
        first, last = last, last + MODELS_AT_ONCE
    return total


def mean_weights(
    model: Ints, num_samples: Ints, ids: Ints, weighting: Literal["samples", "uniform"]
) -> Floats:
    """(M, n) the weight of each of n updates in the mean of its model, of those with these ids (M,).

    A row sums to 1, or is all 0.
    """
    share = num_samples if weighting == "samples" else np.ones(len(model))
    weights = np.where(model == ids[:, None], share, 0.0)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    return weights
