"""ASO-Fed's local step: gradients that are corrected by those of a client's earlier steps."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from emulator.messages import StateSpec
from executor.rules.base import LocalRule, LocalRun
from executor.rules.settings import AsoMemorySettings

DECAYED, PREVIOUS = "aso_memory.decayed", "aso_memory.previous"


class AsoMemory(LocalRule):
    """ASO-Fed: the change of the gradient since the step before, and a decayed mean of earlier gradients.

    With g_t the gradient of a client's t-th step, which the rules before it may have changed, as by the pull
    of `fedprox`:

        z_t = g_t - g_{t-1} + h_{t-1},    h_t = beta h_{t-1} + (1 - beta) g_{t-1},

    and z_t takes the place of g_t. g and h begin at 0, and outlast tasks, whatever the client's model and
    data.

    Source: Chen et al., "Asynchronous Online Federated Learning for Edge Devices with Non-IID Data", IEEE Big
    Data 2020, algorithm 1; there the pull is that of `fedprox`, and the steps are those of the schedule
    `slowness`.

    After a step with the gradient 3, whose h is 1, one with the gradient 5: z = 5 - 3 + 1, and h becomes
    0.5 x 1 + 0.5 x 3:

    >>> import torch
    >>> rule, column = AsoMemory(AsoMemorySettings(beta=0.5)), lambda number: torch.tensor([[number]])
    >>> run = LocalRun(column(0.0), column(0.0), {}, {DECAYED: column(1.0), PREVIOUS: column(3.0)})
    >>> rule.correct(run, column(5.0)).item(), run.state[DECAYED].item(), run.state[PREVIOUS].item()
    (3.0, 2.0, 5.0)
    """

    Settings = AsoMemorySettings
    settings: AsoMemorySettings

    @property
    def state(self) -> Mapping[str, StateSpec]:
        slot = StateSpec("parameters", until="run")
        return {DECAYED: slot, PREVIOUS: slot}

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        decayed, previous = run.state[DECAYED], run.state[PREVIOUS]
        arrived = gradient.clone()  # later rules may overwrite it
        gradient.sub_(previous).add_(decayed)
        decayed.mul_(self.settings.beta).add_(previous, alpha=1 - self.settings.beta)
        previous.copy_(arrived)
        return gradient
