"""APFL: a mixture of a model of the client's own and the federated one (Deng et al., 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from emulator.messages import StateSpec, StepForm
from executor.rules.base import GradientAt, LocalRule, LocalRun
from executor.rules.settings import ApflSettings

OWN, CHANGE = "apfl.own", "apfl.change"


class Apfl(LocalRule):
    """APFL: each client mixes a model of its own with the one that it receives.

    After each step of the received model w, on the same batch, the client's own model v makes one by the
    gradient g at the mixture `m = alpha v + (1 - alpha) w`: `v <- v - learning_rate alpha g(m)`. v starts
    from the first model that the client receives, and stays for the run, whatever its data and its model; the
    client uses the mixture with the w that serves it. A step takes two gradients. If it is `adaptive`, each
    client also moves its alpha, before v: `alpha <- alpha - learning_rate <v - w, g(m)>`, within 0 and 1, and
    keeps it.

    Source: Deng, Kamani and Mahdavi, "Adaptive Personalized Federated Learning", 2020, algorithm 1: there g
    is taken at the mixture before the step of w, and an adaptive alpha moves once in each round. The authors'
    code mixes the outputs of the two models.

    v = 3 and w = 1 are mixed to 2; the gradient 2 there moves v by 0.5 x 0.5 x 2:

    >>> rule, column = Apfl(ApflSettings(alpha=0.5)), lambda number: torch.tensor([[number]])
    >>> run = LocalRun(column(1.0), column(1.0), {"learning_rate": column(0.5)}, {OWN: column(3.0)})
    >>> rule.after_step(run, lambda parameters: parameters)
    >>> run.state[OWN].item(), rule.personal(run.received, run.state).item()
    (2.5, 1.75)
    """

    Settings = ApflSettings
    settings: ApflSettings

    gradients: ClassVar[int] = 1

    @property
    def state(self) -> Mapping[str, StateSpec]:
        own = {OWN: StateSpec("parameters", until="run", start="received")}
        return own | ({CHANGE: StateSpec("scalar", until="run")} if self.settings.adaptive else {})

    @property
    def form(self) -> StepForm:
        return StepForm()

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        return gradient

    def after_step(self, run: LocalRun, gradient_at: GradientAt) -> None:
        own, alpha, rate = run.state[OWN], self._alpha(run.state), run.settings["learning_rate"]
        gradient = gradient_at(torch.lerp(run.present, own, alpha))
        if self.settings.adaptive:
            slope = ((own - run.present) * gradient).sum(dim=1, keepdim=True)
            change = run.state[CHANGE].sub_(rate * slope)
            change.clamp_(-self.settings.alpha, 1 - self.settings.alpha)
        own.sub_(gradient.mul_(rate * alpha))

    def personal(self, received: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        return torch.lerp(received, state[OWN], self._alpha(state))

    def _alpha(self, state: Mapping[str, Tensor]) -> Tensor:
        """The weight of each client's own model: (n, 1), or a number without dimensions if all are equal."""
        own = state[OWN]
        alpha = own.new_tensor(self.settings.alpha)
        return alpha + state[CHANGE] if self.settings.adaptive else alpha
