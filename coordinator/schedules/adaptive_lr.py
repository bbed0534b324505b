"""Adaptive-FedAvg: a learning rate that decays with the number of aggregations, more slowly after a drift.

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
from emulator.numbers import ShareBelowOne
from emulator.plugins import Settings
from emulator.storage.state_tree import Tree, as_tree, from_tree


class AdaptiveLearningRateSettings(Settings):
    """The decay of the running averages, and what counts as an aggregation."""

    beta1: ShareBelowOne = Field(0.5, description="share kept by the running mean of the parameters")
    beta2: ShareBelowOne = Field(0.5, description="share kept by the running variance of the parameters")
    beta3: ShareBelowOne = Field(0.5, description="share kept by the running ratio of variances")
    every: Literal["step", "round"] = Field(
        "step",
        description="the rate changes with every data step (FedDrift's form), or with every round",
        examples=["round"],
    )


@dataclass(frozen=True)
class _Averages:
    """The running averages of one model, without bias correction, after `aggregations` aggregations."""

    aggregations: int
    mean: Floats  # (P,)
    variance: float
    ratio: float


class AdaptiveLearningRate(Schedule):
    """Adaptive-FedAvg: rate_0 scaled by a running ratio of variances of the parameters.

    After the t-th aggregation of a model with parameters w_t, where all averages start at 0:

        mean_t = b1 mean + (1 - b1) w_t
        variance_t = b2 variance + (1 - b2) avg((w_t - mean^_{t-1})^2),  mean^_0 = 0
        ratio_t = b3 ratio + (1 - b3) variance^_t / variance^_{t-1},  the quotient being 1 if undefined
        rate_t = min(rate_0, rate_0 ratio^_t / t)

    where x^_t = x_t / (1 - b^t) is the bias-corrected average. Before the first aggregation, and for a new
    model, the rate is rate_0. Every data step (or round) observed counts as an aggregation, even of a model
    that no client trained in it. It needs whole rounds: it observes models at each dispatch, of which another
    pacing has any number between two aggregations. State: the averages of each existing model, by its id.

    A model with one parameter, which is 2 after the first and after the second aggregation. The first ratio
    is 1 by definition; then variance^ falls from 4 to 4/3, so that ratio^_2 = 5/9.

    Source: Canonaco et al. 2021, in the form that FedDrift (AISTATS 2023) compares with.

    >>> from types import SimpleNamespace
    >>> schedule = AdaptiveLearningRate(AdaptiveLearningRateSettings())
    >>> model, base = np.array([0]), {"learning_rate": np.array([0.1])}
    >>> for step, parameters in enumerate([0.0, 2.0, 2.0]):
    ...     models = np.array([[parameters]])
    ...     view = SimpleNamespace(step=step, model_ids=np.array([7]), models=models, num_parameters=1)
    ...     schedule.observe(view)
    ...     print(schedule.task_settings(np.array([3]), model, base, view)["learning_rate"].round(4))
    [0.1]
    [0.1]
    [0.0278]
    """

    Settings = AdaptiveLearningRateSettings
    settings: AdaptiveLearningRateSettings
    needs_whole_rounds = True
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
        models = view.models[:, : view.num_parameters]
        for model, parameters in zip(view.model_ids.tolist(), models, strict=True):
            before = known.get(model)
            if before is None:  # a new model, not aggregated yet
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
        """The factor on the learning rate of a model; `averages` is None if it was never observed."""
        if averages is None or averages.aggregations == 0:
            return 1.0
        t = averages.aggregations
        return min(1.0, averages.ratio / (1 - self.settings.beta3**t) / t)
