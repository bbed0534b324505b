"""FedYogi: the second moment approaches the squares by steps that do not depend on the distance to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from coordinator.aggregators.adaptive import Adaptive, AdaptiveSettings, yogi_moment
from emulator.arrays import Floats
from emulator.numbers import ShareBelowOne

FEDSCALE = {"learning_rate": 3e-3, "beta1": 0.9, "beta2": 0.99, "tau": 1e-8, "weighting": "uniform"}
"""Settings of FedScale's Yogi; its second moment starts at tau, not at tau squared."""


class FedYogiSettings(AdaptiveSettings):
    """As of all adaptive aggregators, the rate of the second moment, and a preset."""

    beta2: ShareBelowOne = Field(0.99, description="1 minus the share of the squares in a step of v")
    preset: Literal["fedscale"] | None = Field(
        None,
        description="whose settings replace the defaults; those that are given stay",
        examples=["fedscale"],
    )

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get("preset") != "fedscale":
            return values
        filled = {**FEDSCALE, **values}
        return {"initial_v": filled["tau"], **filled}


class FedYogi(Adaptive):
    """Adaptive steps with v = v - (1 - beta2) D^2 sign(v - D^2): v falls slowly after large updates.

    Source: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.

    >>> import numpy as np
    >>> aggregator = FedYogi(FedYogiSettings(preset="fedscale", beta2=0.75))
    >>> aggregator.settings.learning_rate, aggregator.settings.initial_v
    (0.003, 1e-08)
    >>> aggregator.second_moment(np.array([[9.0, 1.0]]), np.array([[4.0, 4.0]]))
    array([[8., 2.]])
    """

    Settings = FedYogiSettings
    settings: FedYogiSettings

    def second_moment(self, second: Floats, squares: Floats) -> Floats:
        return yogi_moment(second, squares, self.settings.beta2)
