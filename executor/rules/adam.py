"""Adam (Kingma and Ba, 2015, algorithm 1), with AMSGrad (Reddi et al., 2018, algorithm 2)."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log

import torch
from torch import Tensor

from emulator.messages import StateSpec
from executor.rules.base import LocalRule, LocalRun
from executor.rules.settings import AdamSettings

MOMENT1 = "adam.moment1"
MOMENT2 = "adam.moment2"
MOMENT2_MAX = "adam.moment2_max"
STEPS = "adam.steps"
BETA1 = "adam.beta1"
BETA2 = "adam.beta2"


class Adam(LocalRule):
    """Adam: steps along a running mean of gradients, divided by the root of that of squared gradients.

    With `g` the gradient plus `weight_decay w`: `m <- beta1 m + (1 - beta1) g`,
    `v <- beta2 v + (1 - beta2) g^2`, then
    `w <- w - learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)`, as `torch.optim.Adam`.
    With `amsgrad`, the largest `v` so far takes the place of `v` in the last line. The learning rate is a
    setting of the task.

    A schedule may set `adam.beta1` and `adam.beta2` of a task.

    By default each (client, model) pair keeps `m`, `v` and `t` from one task to its next, as in FedDrift's
    code, although the parameters are replaced in between.

    The first step has the size of the learning rate, whatever the gradient: `m / (1 - beta1) = g` and
    `sqrt(v / (1 - beta2)) = |g|`.

    Source: Kingma and Ba 2015, algorithm 1; AMSGrad: Reddi, Kale and Kumar 2018, algorithm 2.

    >>> rule = Adam(Adam.Settings())
    >>> run = LocalRun(torch.zeros(1, 2), torch.zeros(1, 2), {"learning_rate": torch.tensor([[0.1]])})
    >>> rule.begin(run)
    >>> rule.correct(run, torch.tensor([[4.0, -0.5]]))
    tensor([[ 0.1000, -0.1000]])
    """

    Settings = AdamSettings

    is_optimiser = True

    def __init__(self, settings: AdamSettings) -> None:
        super().__init__(settings)
        moments = [MOMENT1, MOMENT2, *([MOMENT2_MAX] if settings.amsgrad else [])]
        self._slots = {name: StateSpec("parameters") for name in moments} | {STEPS: StateSpec("scalar")}

    @property
    def state(self) -> Mapping[str, StateSpec]:
        return self._slots if self.settings.keep == "step" else {}

    @property
    def task_settings(self) -> Mapping[str, float]:
        return {BETA1: self.settings.beta1, BETA2: self.settings.beta2}

    def begin(self, run: LocalRun) -> None:
        for name, slot in self._slots.items():
            if name not in run.state:
                like = run.present if slot.shape == "parameters" else run.present[:, :1]
                run.state[name] = torch.zeros_like(like)

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        settings, state = self.settings, run.state
        run.add_decay(gradient, settings.weight_decay)
        beta1, beta2 = run.settings.get(BETA1, settings.beta1), run.settings.get(BETA2, settings.beta2)
        mean = _moved(state[MOMENT1], beta1, gradient)
        square = state[MOMENT2].mul_(_like(beta2, gradient) if isinstance(beta2, Tensor) else beta2)
        if isinstance(beta2, Tensor):
            square.addcmul_(gradient * _like(1 - beta2, gradient), gradient)
        else:
            square.addcmul_(gradient, gradient, value=1 - beta2)
        if settings.amsgrad:
            square = torch.maximum(state[MOMENT2_MAX], square, out=state[MOMENT2_MAX])
        steps = state[STEPS].add_(1)
        root = _one_minus_power(beta2, steps).sqrt_()
        rate = run.settings["learning_rate"] * root / _one_minus_power(beta1, steps)
        # NOTE: numerator and denominator are multiplied by `root`, which saves a pass over (n, P).
        scale = torch.sqrt(square, out=gradient).add_(root.mul_(settings.epsilon))
        return torch.div(mean, scale, out=gradient).mul_(rate)


def _moved(mean: Tensor, kept: float | Tensor, number: Tensor) -> Tensor:
    """A running mean (n, P), of which the share `kept`, one or (n, 1), is kept, in place."""
    if isinstance(kept, Tensor):
        return mean.lerp_(number, _like(1 - kept, mean).expand_as(mean))
    return mean.lerp_(number, 1 - kept)


def _like(numbers: Tensor, other: Tensor) -> Tensor:
    """`numbers` in the precision of `other`: a beta is in double, so that 1 - beta is, too."""
    return numbers.to(other.dtype)


def _one_minus_power(base: float | Tensor, exponent: Tensor) -> Tensor:
    """1 - base^exponent, accurate to rounding even where base, one or (n, 1), is nearly 1."""
    if isinstance(base, Tensor):
        return torch.expm1(exponent * _like(base.double().log(), exponent)).neg_()
    return torch.expm1(exponent * (log(base) if base > 0 else -inf)).neg_()
