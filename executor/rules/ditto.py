"""Ditto: a personal model beside the federated one, pulled towards it (Li et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from emulator.messages import StateSpec, StepForm
from executor.rules.base import GradientAt, LocalRule, LocalRun
from executor.rules.settings import DittoSettings

OWN = "ditto.own"


class Ditto(LocalRule):
    """Ditto: each client keeps a model of its own, which it pulls towards the model that it receives.

    After each step of the received model, on the same batch, the client's own model v makes one: `v <- v -
    learning_rate (g(v) + pull (v - w_received))`. v starts from the first model that the client receives,
    stays for the run, whatever its data and its model, and is what the client uses. A step takes two
    gradients.

    Source: Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021,
    algorithm 1: there lambda is the pull, and v takes its steps after all of the model's.

    The own model 3, received 1, gradient 2 everywhere: `3 - 0.5 (2 + 0.25 (3 - 1))`:

    >>> import torch
    >>> rule, column = Ditto(DittoSettings(pull=0.25)), lambda number: torch.tensor([[number]])
    >>> run = LocalRun(column(1.0), column(0.0), {"learning_rate": column(0.5)}, {OWN: column(3.0)})
    >>> rule.after_step(run, lambda parameters: column(2.0))
    >>> rule.personal(run.received, run.state).item()
    1.75
    """

    Settings = DittoSettings
    settings: DittoSettings

    gradients = 1

    @property
    def state(self) -> Mapping[str, StateSpec]:
        return {OWN: StateSpec("parameters", until="run", start="received")}

    @property
    def form(self) -> StepForm:
        return StepForm()

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        return gradient

    def after_step(self, run: LocalRun, gradient_at: GradientAt) -> None:
        own, settings = run.state[OWN], self.settings
        rate = run.settings["learning_rate"] if settings.learning_rate is None else settings.learning_rate
        gradient = gradient_at(own)
        if settings.pull > 0:
            gradient.add_(own - run.received, alpha=settings.pull)
        own.sub_(gradient.mul_(rate))

    def personal(self, received: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        return state[OWN]
