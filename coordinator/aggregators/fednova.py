"""FedNova: updates are divided by their steps, so that a client that takes more steps does not weigh more."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import mean_weights, sums
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import TaskMetric, Updates
from emulator.numbers import PositiveFactor
from emulator.plugins import Settings


class FedNovaSettings(Settings):
    """The weight of each update, and the coordinator's rate."""

    weighting: Literal["samples", "uniform"] = Field(
        "samples", description="by the samples a client holds, or equal", examples=["uniform"]
    )
    rate: PositiveFactor = Field(1.0, description="of the coordinator: factor of the mean update")


class FedNova(Aggregator):
    """The weighted mean of the updates per step, times the mean number of steps.

    `model += rate tau sum_i p_i update_i / |a_i|`, with `tau = sum_i p_i |a_i|` and p as in `fedavg`, over
    the updates of the model. `|a_i|` is the number of steps of plain descent to which those of task i amount
    (`step_norm`): its steps, under `sgd` alone; momentum, weight decay and FedProx's pull change it. It needs
    a solver whose steps have such a number, which `adam`'s and corrected ones have not. An update whose
    number is not above 0, as without steps, is left out.

    Source: Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated
    Optimization", NeurIPS 2020, equation 7 and section 4.

    Of two clients one has taken 1 step of -1, the other 3: their mean is -1 for each step, times 2 steps.

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> ones, steps = np.ones(2, dtype=int), np.array([1, 3])
    >>> delta, norms = -steps[:, None].astype("f"), {"step_norm": steps.astype(float)}
    >>> updates = ArrayUpdates(np.arange(2), 4 * ones, ones, steps, delta, norms)
    >>> view = SimpleNamespace(model_ids=4 * ones[:1], models=np.zeros((1, 1)))
    >>> FedNova(FedNovaSettings()).aggregate(updates, view).tolist()
    [[-2.0]]
    """

    Settings = FedNovaSettings
    settings: FedNovaSettings

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return frozenset({"step_norm"})

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        norm = updates.metrics["step_norm"]
        usable = (updates.num_samples > 0) & np.isfinite(norm) & (norm > 0)
        mean = sums(updates.take(usable.nonzero()[0]), view, self._weights)
        return (view.models + self.settings.rate * mean).astype(np.float32)

    def _weights(self, updates: Updates, ids: Ints) -> Floats:
        """(M, n) the weight of each update in the sum of its model."""
        norm = updates.metrics["step_norm"]
        shares = mean_weights(updates.model, updates.num_samples, ids, self.settings.weighting)
        tau: Floats = (shares * norm).sum(axis=1, keepdims=True)
        return tau * shares / norm
