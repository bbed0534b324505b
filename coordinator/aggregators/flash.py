"""FLASH: adaptive steps that grow where the squares of updates run ahead of their mean, as after a drift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.aggregators.adaptive import Adaptive, AdaptiveSettings, adam_moment, mixed, yogi_moment
from coordinator.assignment import Assignment
from coordinator.view import View
from emulator.arrays import Bools, Floats, Floats32
from emulator.messages import Updates
from emulator.numbers import Factor, ShareBelowOne


class FlashSettings(AdaptiveSettings):
    """As of all adaptive aggregators, and the second moment."""

    second_moment: Literal["adam", "yogi"] = Field(
        "adam", description="whose second moment v it has, that of `fedadam` or of `fedyogi`"
    )
    beta2: ShareBelowOne = Field(0.99, description="share of v that a step keeps")
    initial_v: Factor | None = Field(
        0.0, description="second moment of a new model; without it, tau squared", examples=[1e-6]
    )
    weighting: Literal["samples", "uniform"] = Field(
        "uniform", description="of the mean update: by the samples a client holds, or equal"
    )


class Flash(Adaptive):
    """Adaptive steps whose denominator is lessened by how far squares exceed their running mean.

    m and v as of `fedadam` or `fedyogi`; with v as it was before, `b = |v_before| / (|D^2 - v| +
    |v_before|)`, 1 for 0 / 0, and `d = b d + (1 - b) (D^2 - v)`, which starts at 0, for each parameter by
    itself: model += learning_rate m / max(sqrt(v) - d + tau, tau). In the first round b = 0. The paper does
    not bound the denominator, which a large d makes negative. It notes the `disparity` |D^2 - v| of its last
    step, a sign of drift: the mean over the models that made it. d follows the models as the moments do.

    Source: Panchal et al., "Flash: Concept Drift Adaptation in Federated Learning", ICML 2023, algorithm 1.

    A first update of 1 has v = 0.25 and d = 0.75; the denominator 0.5 - 0.75 + 0.5 is less than tau:

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> flash = Flash(FlashSettings(learning_rate=2, beta1=0.5, beta2=0.75, tau=0.5))
    >>> one, models = np.ones(1, dtype=np.int64), np.zeros((1, 1), dtype="f")
    >>> updates = ArrayUpdates(one, one, one, one, np.ones((1, 1), dtype="f"))
    >>> flash.aggregate(updates, SimpleNamespace(models=models, model_ids=one)).tolist(), flash.noted
    ([[2.0]], {'disparity': 0.75})
    """

    Settings = FlashSettings
    settings: FlashSettings
    state_fields = (*Adaptive.state_fields, "_ahead", "_disparity")

    def __init__(self, settings: FlashSettings) -> None:
        super().__init__(settings)
        self._ahead: Floats | None = None  # (M, P) d
        self._disparity: float | None = None

    @property
    def noted(self) -> Mapping[str, float]:
        return {} if self._disparity is None else {"disparity": self._disparity}

    def models_changed(self, assignment: Assignment) -> None:
        super().models_changed(assignment)
        if self._ahead is not None:
            averages = self.settings.moments == "averaged"
            self._ahead = mixed(self._ahead, assignment.mixing, 0.0, averages)

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        self._disparity = None
        return super().aggregate(updates, view)

    def second_moment(self, second: Floats, squares: Floats) -> Floats:
        moment = adam_moment if self.settings.second_moment == "adam" else yogi_moment
        return moment(second, squares, self.settings.beta2)

    def denominators(self, steps: Bools, squares: Floats, before: Floats, second: Floats) -> Floats:
        if self._ahead is None:
            self._ahead = np.zeros((len(steps), squares.shape[1]))
        excess = squares - second
        whole = np.abs(excess) + np.abs(before)
        share = np.divide(np.abs(before), whole, out=np.ones_like(whole), where=whole > 0)
        ahead = share * self._ahead[steps] + (1 - share) * excess
        self._ahead[steps] = ahead
        if steps.any():
            self._disparity = float(np.sqrt(np.square(excess).sum(axis=1)).mean())
        tau = self.settings.tau
        divisors: Floats = np.maximum(np.sqrt(second) - ahead + tau, tau)
        return divisors
