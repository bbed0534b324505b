"""Stochastic gradient descent."""

from __future__ import annotations

import torch
from torch import Tensor

from emulator.errors import ConfigurationError
from emulator.messages import StepForm
from executor.rules.base import LocalRule, LocalRun
from executor.rules.settings import SgdSettings

VELOCITY = "sgd.velocity"


class Sgd(LocalRule):
    """Stochastic gradient descent, with momentum and weight decay.

    `v <- momentum v + g + weight_decay w`, then `w <- w - learning_rate v`, as `torch.optim.SGD`.

    `v` starts at zero in each task: momentum is not carried from round to round. The learning rate is a
    setting of the task.

    Two steps of gradient 1, with learning rate 0.5 and momentum 0.5: `v` is 1, then 1.5.

    Source: `torch.optim.SGD`, whose formula it has.

    >>> rule, gradient = Sgd(Sgd.Settings(momentum=0.5)), torch.ones(1, 1)
    >>> run = LocalRun(torch.zeros(1, 1), torch.zeros(1, 1), {"learning_rate": torch.tensor([[0.5]])})
    >>> rule.begin(run)
    >>> [rule.correct(run, gradient.clone()).item() for _ in range(2)]
    [0.5, 0.75]
    """

    Settings = SgdSettings

    is_optimiser = True

    @property
    def is_plain_descent(self) -> bool:
        # A subclass may do more.
        return type(self) is Sgd and self.settings.momentum == 0 and self.settings.weight_decay == 0

    @property
    def form(self) -> StepForm | None:
        if type(self) is not Sgd:  # a subclass may do more
            return None
        return StepForm(self.settings.weight_decay, self.settings.momentum)

    def begin(self, run: LocalRun) -> None:
        if self.settings.momentum > 0:
            run.state[VELOCITY] = torch.zeros_like(run.present)

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        run.add_decay(gradient, self.settings.weight_decay)
        if self.settings.momentum > 0:
            velocity = run.state[VELOCITY].mul_(self.settings.momentum).add_(gradient)
            return torch.mul(velocity, run.settings["learning_rate"], out=gradient)
        return gradient.mul_(run.settings["learning_rate"])


def refuse_unless_plain(rule: str, optimiser: LocalRule) -> None:
    """Reject an optimiser under which a client's mean step is not its mean gradient.

    Args:
        rule: The name of the rule that takes the one for the other.
        optimiser: The last rule of the chain.

    Raises:
        ConfigurationError: It is not `sgd`, or has momentum.
    """
    if not isinstance(optimiser, Sgd) or optimiser.settings.momentum > 0:
        of = "momentum" if isinstance(optimiser, Sgd) else type(optimiser).__name__
        raise ConfigurationError(
            f"solver: {rule} takes a client's mean step for its mean gradient, which it is not under {of}; "
            f"end the solver with 'sgd', without momentum"
        )
