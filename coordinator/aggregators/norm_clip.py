"""The weighted mean of the updates, each clipped to a maximal norm."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import mean_weights
from coordinator.view import View
from emulator.arrays import Floats, Floats32
from emulator.messages import Updates
from emulator.numbers import PositiveFactor
from emulator.plugins import Settings


class NormClipSettings(Settings):
    """The maximal norm of an update, and the weight of each."""

    max_norm: PositiveFactor | None = Field(
        None,
        description="maximal norm; without it, the median norm of a model's updates in each round",
        examples=[10],
    )
    weighting: Literal["samples", "uniform"] = Field(
        "samples", description="by the samples a client holds, or equal"
    )


class NormClip(Aggregator):
    """The weighted mean of the updates, each shortened to a maximal norm if it is longer.

    model += sum_c p_c update_c min(1, max_norm / |update_c|), with the p_c of `fedavg`. One update's
    influence is bounded; that of many in the same direction adds up.

    Without `max_norm` the norm is the median norm of the model's updates, without those of clients that have
    no samples: it shrinks in the course of training.

    Source: Sun et al., "Can You Really Backdoor Federated Learning?", 2019, norm thresholding: there the norm
    is given.

    The update (30, 40) of norm 50 is shortened to (3, 4); (0, 2) stays, and the mean of both is taken:

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> delta, ones = np.array([[30, 40], [0, 2]], dtype=np.float32), np.ones(2, dtype=np.int64)
    >>> updates = ArrayUpdates(np.arange(2), model=ones, num_samples=ones, num_steps=ones, delta=delta)
    >>> view = SimpleNamespace(models=np.zeros((1, 2)), model_ids=np.array([1]))
    >>> NormClip(NormClipSettings(max_norm=5)).aggregate(updates, view)
    array([[1.5, 3. ]], dtype=float32)
    """

    Settings = NormClipSettings
    settings: NormClipSettings

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        weights = mean_weights(updates.model, updates.num_samples, view.model_ids, self.settings.weighting)
        clipped = updates.weighted_sum(weights * self._factors(updates, view))
        return (view.models + clipped).astype(np.float32)

    def _factors(self, updates: Updates, view: View) -> Floats:
        """(n,) the factor, at most 1, by which each update is shortened."""
        norms = updates.norms()
        longest = np.full(len(updates), np.inf if self.settings.max_norm is None else self.settings.max_norm)
        for model in view.model_ids if self.settings.max_norm is None else ():
            of_model = updates.model == model
            sampled = of_model & (updates.num_samples > 0)
            if sampled.any():
                longest[of_model] = np.median(norms[sampled])
        factors = np.ones(len(updates))
        np.divide(longest, norms, out=factors, where=norms > longest)
        return factors
