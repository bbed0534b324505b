"""FedProx: a pull towards the received model (Li et al., 2020, equation 2)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from emulator.messages import StepForm
from executor.rules.base import LocalRule, LocalRun
from executor.rules.settings import FedProxSettings

MU = "fedprox.mu"


class FedProx(LocalRule):
    """FedProx: a pull towards the received model.

    `g <- g + mu (w - w_received)`: the gradient of `mu / 2 |w - w_received|^2` added to the loss's.

    FedScale's hook has the opposite sign (`fedscale_sign`), and acts after the optimiser's step, outside
    momentum; here the pull is part of the gradient in either case.

    A schedule may set `fedprox.mu` of a task.

    Received at 1, now at 3: the pull adds `mu (3 - 1)` to the gradient.

    Source: Li et al. 2020, "Federated Optimization in Heterogeneous Networks", equation 2.

    >>> import torch
    >>> rule = FedProx(FedProx.Settings(mu=0.25))
    >>> run = LocalRun(received=torch.tensor([[1.0]]), present=torch.tensor([[3.0]]), settings={})
    >>> rule.correct(run, torch.tensor([[2.0]]))
    tensor([[2.5000]])
    """

    Settings = FedProxSettings

    settings: FedProxSettings

    @property
    def form(self) -> StepForm:
        return StepForm(pull=-self.settings.mu if self.settings.fedscale_sign else self.settings.mu)

    @property
    def task_settings(self) -> Mapping[str, float]:
        return {MU: self.settings.mu}

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        moved = run.present - run.received
        if MU not in run.settings:
            return gradient.add_(moved, alpha=self.form.pull)
        moved.mul_(run.settings[MU].to(moved.dtype))
        return gradient.sub_(moved) if self.settings.fedscale_sign else gradient.add_(moved)
