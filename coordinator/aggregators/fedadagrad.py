"""FedAdagrad: the second moment is the sum of all squares so far."""

from __future__ import annotations

from pydantic import Field

from coordinator.aggregators.adaptive import Adaptive, AdaptiveSettings
from emulator.arrays import Floats
from emulator.numbers import ShareBelowOne


class FedAdagradSettings(AdaptiveSettings):
    """As of all adaptive aggregators, by default without a first moment."""

    beta1: ShareBelowOne = Field(0.0, description="share of the first moment that a step keeps")


class FedAdagrad(Adaptive):
    """Adaptive steps with v = v + D^2: steps become ever smaller.

    Source: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.

    >>> import numpy as np
    >>> aggregator = FedAdagrad(FedAdagradSettings(tau=0.5))
    >>> aggregator.settings.initial_v, aggregator.second_moment(np.array([[0.25]]), np.array([[4.0]]))
    (0.25, array([[4.25]]))
    """

    Settings = FedAdagradSettings
    settings: FedAdagradSettings

    def second_moment(self, second: Floats, squares: Floats) -> Floats:
        return second + squares
