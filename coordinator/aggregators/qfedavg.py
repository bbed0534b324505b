"""q-FedAvg: updates of clients with a large loss weigh more."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fair_weights import fair_weights
from coordinator.view import View
from emulator.arrays import Floats32
from emulator.messages import TaskMetric, Updates
from emulator.numbers import Number, PositiveFactor
from emulator.plugins import Settings


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
