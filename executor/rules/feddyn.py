"""FedDyn, the client's half: each client's loss is bent towards the common optimum (Acar et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from emulator.messages import StateSpec
from executor.rules.base import LocalRule, LocalRun
from executor.rules.settings import FedDynSettings

OWN = "feddyn.own"


class FedDyn(LocalRule):
    """FedDyn: a pull towards the received model, and a linear term that a client remembers.

    `g <- g + alpha (w - w_received) - g_i`, and after the last step, at w: `g_i <- g_i - alpha (w -
    w_received)`. g_i starts at 0, outlives new data, and ends with the model. It needs the aggregator
    `feddyn`, with the same `alpha`.

    With `weights = "samples"` what is added to g is divided by the client's samples over their mean, over all
    clients that hold some as it is sent out: models end at the optimum of the loss of all samples, instead of
    the clients' mean loss. With `clip` g is clipped at that norm before `alpha w` is added, and not after it,
    as by the rule `clip` behind this one.

    Source: Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021, algorithm 1. The
    authors' code is `[{ kind = "feddyn", weights = "samples", clip = 10 }, "sgd"]`: its `alpha w` is weight
    decay. In training that clusterers request, and of adaptations, clients count alike.

    One step of rate 0.5, from 1, with g_i = 1: the gradient 2 becomes 1, the step leads to 0.5, and g_i is
    1 - 0.5 x (0.5 - 1):

    >>> import torch
    >>> rule, column = FedDyn(FedDynSettings(alpha=0.5)), lambda number: torch.tensor([[number]])
    >>> run = LocalRun(column(1.0), column(1.0), {"learning_rate": column(0.5)}, {OWN: column(1.0)})
    >>> run.present -= 0.5 * rule.correct(run, column(2.0))
    >>> rule.finish(run)
    >>> run.present.item(), run.state[OWN].item()
    (0.5, 1.25)
    """

    Settings = FedDynSettings
    settings: FedDynSettings

    def __init__(self, settings: FedDynSettings) -> None:
        super().__init__(settings)
        self.reads_samples = settings.weights == "samples"

    @property
    def state(self) -> Mapping[str, StateSpec]:
        return {OWN: StateSpec("parameters", until="model")}

    @property
    def shares(self) -> Mapping[str, float]:
        return {"feddyn.alpha": self.settings.alpha}

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        settings, own = self.settings, run.state[OWN]
        if settings.weights == "alike" and settings.clip is None:
            return gradient.add_(run.present - run.received, alpha=settings.alpha).sub_(own)
        share = run.settings.get("relative_samples", 1.0) if self.reads_samples else 1.0
        gradient.sub_((settings.alpha * run.received + own) / share)
        if settings.clip is not None:
            run.clip(gradient, settings.clip)
        return gradient.add_(settings.alpha * run.present / share)

    def finish(self, run: LocalRun) -> None:
        run.state[OWN].sub_(run.present - run.received, alpha=self.settings.alpha)
