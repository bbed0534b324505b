"""A learning rate that falls with the aggregations, and less so after a drift: Adaptive-FedAvg.

Canonaco et al. 2021, in the form that FedDrift compares with. All clients of a model share its rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.schedules.base import Schedule
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.deprecated import keep_old_names
from emulator.numbers import ShareBelowOne
from emulator.plugins import Settings
from emulator.storage.state_tree import Tree, as_tree, from_tree


class AdaptiveLearningRateSettings(Settings):
    """How slowly the averages forget, and what counts as an aggregation."""

    beta1: ShareBelowOne = Field(0.5, description="share kept by the running mean of the parameters")
    beta2: ShareBelowOne = Field(0.5, description="share kept by the running variance of the parameters")
    beta3: ShareBelowOne = Field(0.5, description="share kept by the running ratio of variances")
    every: Literal["step", "round"] = Field(
        "step", description="the rate changes with every data step (FedDrift's form), or with every round"
    )


@dataclass(frozen=True)
class _Averages:
    """Of one model, after `aggregations` of them: running averages before their bias is corrected."""

    aggregations: int
    mean: Floats  # (P,)
    variance: float
    ratio: float


class AdaptiveLearningRate(Schedule):
    """Adaptive-FedAvg. After the t-th aggregation of a model with parameters w_t, averages starting at 0:

        mean_t = b1 mean + (1 - b1) w_t
        variance_t = b2 variance + (1 - b2) avg((w_t - mean^_{t-1})^2),  mean^_0 = 0
        ratio_t = b3 ratio + (1 - b3) variance^_t / variance^_{t-1},  the quotient being 1 if undefined
        rate_t = min(rate_0, rate_0 ratio^_t / t)

    where x^_t = x_t / (1 - b^t). Before the first aggregation, and for a model that is new: rate_0. Every
    data step (or round) observed counts as an aggregation, also of a model that nobody trained in it.
    State: the averages of each model that there is, by its id.
    """

    Settings = AdaptiveLearningRateSettings
    settings: AdaptiveLearningRateSettings
    state_fields = ("_averages", "_step")
    sets = frozenset({"learning_rate"})

    def __init__(self, settings: AdaptiveLearningRateSettings) -> None:
        super().__init__(settings)
        self._averages: dict[int, _Averages] = {}
        self._step: int | None = None

    def state(self) -> dict[str, Tree]:
        return {**super().state(), "_averages": as_tree(self._averages)}

    def restore(self, state: Mapping[str, Tree]) -> None:
        super().restore(state)
        self._averages = {model: from_tree(_Averages, tree) for model, tree in state["_averages"].items()}

    def observe(self, view: View) -> None:
        due = self.settings.every == "round" or view.step != self._step
        self._step = view.step
        known, self._averages = self._averages, {}
        for model, parameters in zip(view.model_ids.tolist(), view.models, strict=True):
            before = known.get(model)
            if before is None:  # nothing of it came back yet
                self._averages[model] = _Averages(0, np.zeros(len(parameters)), 0.0, 0.0)
            else:
                self._averages[model] = self._updated(before, parameters) if due else before

    def task_settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        factors = np.array([self._factor(self._averages.get(id_)) for id_ in view.model_ids.tolist()])
        return {"learning_rate": base["learning_rate"] * factors[model]}

    def _updated(self, before: _Averages, parameters: Floats32) -> _Averages:
        beta1, beta2, beta3 = self.settings.beta1, self.settings.beta2, self.settings.beta3
        t = before.aggregations + 1
        mean_before = before.mean / (1 - beta1 ** (t - 1)) if t > 1 else before.mean
        deviation = float(np.mean((parameters - mean_before) ** 2))
        variance = beta2 * before.variance + (1 - beta2) * deviation
        variance_before = before.variance / (1 - beta2 ** (t - 1)) if t > 1 else 0.0
        quotient = variance / (1 - beta2**t) / variance_before if variance_before > 0 else 1.0
        return _Averages(
            aggregations=t,
            mean=beta1 * before.mean + (1 - beta1) * parameters,
            variance=variance,
            ratio=beta3 * before.ratio + (1 - beta3) * quotient,
        )

    def _factor(self, averages: _Averages | None) -> float:
        """What the learning rate is multiplied by; None: of a model that was not there to be observed."""
        if averages is None or averages.aggregations == 0:
            return 1.0
        t = averages.aggregations
        return min(1.0, averages.ratio / (1 - self.settings.beta3**t) / t)


keep_old_names(__name__)
