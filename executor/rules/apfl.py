"""APFL: a mixture of a model of the client's own and the federated one (Deng et al., 2020)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from emulator.messages import OutputMix, StateSpec, StepForm
from executor.rules.base import GradientAt, LocalRule, LocalRun
from executor.rules.settings import ApflSettings

OWN, CHANGE = "apfl.own", "apfl.change"

REGULARISER = 0.02
"""Times alpha, in the slope of alpha of the authors' code."""


class Apfl(LocalRule):
    """APFL: each client mixes a model of its own with the one that it receives.

    After each step of the received model w, on the same batch, the client's own model v makes one by the
    gradient g at the mixture `m = alpha v + (1 - alpha) w`: `v <- v - learning_rate alpha g(m)`. v starts
    from the first model that the client receives, and stays for the run, whatever its data and its model; the
    client uses the mixture with the w that serves it. A step takes two gradients. If it is `adaptive`, each
    client also moves its alpha, before v: `alpha <- alpha - learning_rate <v - w, g(m)>`, within 0 and 1, and
    keeps it.

    With `mix = "outputs"` the client uses the logits `alpha v(x) + (1 - alpha) w(x)`, and v steps by the
    gradient of their loss: `v <- v - learning_rate g_v`. A step takes three gradients, one by each model of
    what is mixed. If it is `adaptive`, alpha moves once in each task, after the first step of v (or in each
    epoch, if clients stop early): `alpha <- alpha - learning_rate (<v - w, alpha g_v + (1 - alpha) g_w> +
    0.02 alpha)`, within 0 and 1.

    Source: Deng, Kamani and Mahdavi, "Adaptive Personalized Federated Learning", 2020, algorithm 1: there g
    is taken at the mixture before the step of w, and an adaptive alpha moves once in each round. The authors'
    code, FedTorch, is `mix = "outputs"`; it evaluates clients with the w that they have just trained.

    v = 3 and w = 1 are mixed to 2; the gradient 2 there moves v by 0.5 x 0.5 x 2:

    >>> rule, column = Apfl(ApflSettings(alpha=0.5)), lambda number: torch.tensor([[number]])
    >>> run = LocalRun(column(1.0), column(1.0), {"learning_rate": column(0.5)}, {OWN: column(3.0)})
    >>> rule.after_step(run, lambda parameters: parameters)
    >>> run.state[OWN].item(), rule.personal(run.received, run.state).item()
    (2.5, 1.75)
    """

    Settings = ApflSettings
    settings: ApflSettings

    gradients = 1

    def __init__(self, settings: ApflSettings) -> None:
        super().__init__(settings)
        if settings.mix == "outputs":
            self.gradients = 2
            self.mixes = OutputMix(settings.alpha, CHANGE if settings.adaptive else None)

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
        if self.mixes is not None:
            self._step_by_outputs(run, gradient_at)
            return
        gradient = gradient_at(torch.lerp(run.present, own, alpha))
        if self.settings.adaptive:
            self._move_alpha(run, ((own - run.present) * gradient).sum(dim=1, keepdim=True))
        own.sub_(gradient.mul_(rate * alpha))

    def _step_by_outputs(self, run: LocalRun, gradient_at: GradientAt) -> None:
        own, alpha, moves = run.state[OWN], self._alpha(run.state), self.settings.adaptive and run.step == 1
        of_shared = gradient_at(run.present, (own, 1 - alpha)).clone() if moves else run.present
        gradient = gradient_at(own, (run.present, alpha))
        own.sub_(gradient * run.settings["learning_rate"])
        if moves:
            mixed = torch.lerp(of_shared, gradient, alpha)
            slope = ((own - run.present) * mixed).sum(dim=1, keepdim=True)
            self._move_alpha(run, slope + REGULARISER * alpha)

    def _move_alpha(self, run: LocalRun, slope: Tensor) -> None:
        change = run.state[CHANGE].sub_(run.settings["learning_rate"] * slope)
        change.clamp_(-self.settings.alpha, 1 - self.settings.alpha)

    def personal(self, received: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        return torch.lerp(received, state[OWN], self._alpha(state)) if self.mixes is None else state[OWN]

    def _alpha(self, state: Mapping[str, Tensor]) -> Tensor:
        """The weight of each client's own model: (n, 1), or a number without dimensions if all are equal."""
        own = state[OWN]
        alpha = own.new_tensor(self.settings.alpha)
        return alpha + state[CHANGE] if self.settings.adaptive else alpha
