"""q-FedAvg: updates of clients with a large loss weigh more."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.view import View
from emulator.arrays import Bools, Floats, Floats32
from emulator.messages import TaskMetric, Updates
from emulator.numbers import Number, PositiveFactor
from emulator.plugins import Settings

ADDED_LOSS = 1e-10
"""Added to each loss, as in FedScale: 0 has no negative power."""


class QFedAvgSettings(Settings):
    """How much more the updates of clients with a large loss weigh."""

    q: Annotated[float, Number(ge=0, le=100)] = Field(
        1.0, description="exponent of the loss: 0 is the unweighted mean, more is fairer", examples=[0.5]
    )
    learning_rate: PositiveFactor | None = Field(
        None, description="1 / L of the assumed smoothness L; without it, the rate of local training"
    )


class QFedAvg(Aggregator):
    """The sum of the updates, each weighted by a power of its client's loss (`fair_weights`).

    The loss F is that of the received model on a client's first batch. Schedules of the rate are not
    followed. An update without samples, or with a loss that is negative or not finite, is left out. A finite
    loss is believed, however large.

    Source: Li et al., "Fair Resource Allocation in Federated Learning", ICLR 2020, algorithm 2: there F is
    over all samples of the client; in FedScale a moving mean over the first epoch.

    >>> sorted(QFedAvg(QFedAvgSettings(q=2)).needs)
    ['loss_before']
    """

    Settings = QFedAvgSettings
    settings: QFedAvgSettings

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return frozenset({"loss_before"})

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        loss = updates.metrics["loss_before"]
        usable = (updates.num_samples > 0) & np.isfinite(loss) & (loss >= 0)
        of_model = (updates.model == view.model_ids[:, None]) & usable
        rate = self.settings.learning_rate or view.learning_rate
        weights = fair_weights(of_model, np.where(usable, loss, 0), updates.norms(), self.settings.q, rate)
        return (view.models + updates.weighted_sum(weights)).astype(np.float32)


def fair_weights(of_model: Bools, loss: Floats, norms: Floats, q: float, learning_rate: float) -> Floats:
    """The weight of each update in the step of its model.

    p_c = F_c^q / sum_d h_d, with h_c = F_c^q (1 + q |update_c|^2 / (eta F_c)) and F_c = `loss` + 1e-10. These
    are the published Delta_c = F_c^q L (w - w_c) and h_c = q F_c^(q-1) |L (w - w_c)|^2 + L F_c^q, for
    L = 1 / eta and update_c = w_c - w.

    Args:
        of_model: (M, n) the updates of each of M models.
        loss: (n,) at least 0.
        norms: (n,) of the updates.
        q: at least 0.
        learning_rate: eta, above 0.

    Returns:
        Array of shape (M, n). A row sums to 1 if q = 0, and otherwise to less, unless no update has moved
        the model; without updates it is all 0.

    Losses of 1 and 3, updates of 1 and 2, and eta = 0.5: h = 1 + 2 and 3 + 8, and F = 1 and 3.

    >>> weights = fair_weights(np.ones((1, 2), dtype=bool), np.array([1, 3]), np.array([1, 2]), 1, 0.5)
    >>> (14 * weights).round(6)
    array([[1., 3.]])
    """
    loss = loss + ADDED_LOSS
    # Powers of the loss over the model's largest one: they do not overflow, and the quotient is the same.
    largest = np.where(of_model, loss, 0).max(axis=1, keepdims=True, initial=ADDED_LOSS)
    powers = np.where(of_model, np.minimum(loss / largest, 1) ** q, 0)
    curvature = 1 + q * np.square(norms) / loss / max(learning_rate, 1e-100)
    total = (powers * curvature).sum(axis=1, keepdims=True)
    weights: Floats = powers / np.maximum(total, 1e-300)
    return weights
