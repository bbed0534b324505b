"""FedAdam: the second moment forgets at a constant rate."""

from __future__ import annotations

from pydantic import Field

from coordinator.aggregators.adaptive import Adaptive, AdaptiveSettings, adam_moment
from emulator.arrays import Floats
from emulator.numbers import ShareBelowOne


class FedAdamSettings(AdaptiveSettings):
    """As of all adaptive aggregators, and the rate at which the second moment forgets."""

    beta2: ShareBelowOne = Field(0.99, description="share of the second moment that a step keeps")


class FedAdam(Adaptive):
    """Adaptive steps with v = beta2 v + (1 - beta2) D^2, and no bias correction, which Flower's FedAdam has.

    As in the paper, m and v are used as they are. Flower multiplies the step of round t, which counts from 1,
    by sqrt(1 - beta2^(t + 1)) / (1 - beta1^(t + 1)): with the default betas by 0.74 in the first round, 0.47
    in round 12, the least, and 0.80 in round 100.

    Two rounds of one model with two parameters, the second of which is not trained: m = v = 1 in both.

    Source: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> settings = FedAdamSettings(learning_rate=2, beta1=0.5, beta2=0.75, tau=1, initial_v=0)
    >>> aggregator, models, one = FedAdam(settings), np.float32([[0, 5]]), np.ones(1, dtype=np.int64)
    >>> for update in ([2, 0], [1, 0]):
    ...     updates = ArrayUpdates(one, one, one, one, np.float32([update]))
    ...     models = aggregator.aggregate(updates, SimpleNamespace(models=models, model_ids=one))
    ...     print(models)
    [[1. 5.]]
    [[2. 5.]]
    """

    Settings = FedAdamSettings
    settings: FedAdamSettings

    def second_moment(self, second: Floats, squares: Floats) -> Floats:
        return adam_moment(second, squares, self.settings.beta2)
