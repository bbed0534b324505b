"""FedDC, the client's half: the drift of a client's model is learned, and taken off it (Gao et al., 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from emulator.messages import StateSpec
from emulator.ports import Segment
from executor.rules.base import LocalRule, LocalRun
from executor.rules.settings import FedDCSettings
from executor.rules.sgd import refuse_unless_plain

GRADIENTS, DRIFT, OWN, OFFSET = "feddc.gradients", "feddc.drift", "feddc.gradient", "feddc.offset"


class FedDC(LocalRule):
    """FedDC: each client remembers how far it has drifted from the common model, and what its gradient is.

    `g <- g + alpha (w - (w_received - h_i)) + G - G_i`, with the client's drift h_i and gradient G_i, and the
    aggregator's G, which comes with the model; then g is clipped at the norm `clip`, as by the rule `clip`.
    After K steps with learning rate eta, at w: `h_i <- h_i + w - w_received` and `G_i <- G_i - G +
    (w_received - w) / (K eta)`. Both start at 0, outlive new data, and end with the model. It needs the
    aggregator `feddc`, and `sgd` without momentum as the optimiser. A client sends G_i up, so that two models
    go either way.

    Source: Gao et al., "FedDC: Federated Learning with Non-IID Data via Local Drift Decoupling and
    Correction", CVPR 2022, algorithm 1. Its code weighs alpha and G by a client's samples over their mean; we
    do not: clients count alike.

    One step of rate 0.5, from 1, with h_i = 2 and G_i = 0: the gradient 2 becomes 2 + 0.5 x 2 + 1, the step
    leads to -1, h_i is 0 and G_i is 0 - 1 + 2 / 0.5:

    >>> rule, column = FedDC(FedDCSettings(alpha=0.5)), lambda number: torch.tensor([[number]])
    >>> run = LocalRun(column(1.0), column(1.0), {"learning_rate": column(0.5)})
    >>> run.state, run.broadcast = {DRIFT: column(2.0), OWN: column(0.0)}, {GRADIENTS: column(1.0)}
    >>> run.steps = column(1.0)
    >>> rule.begin(run)
    >>> run.present -= 0.5 * rule.correct(run, column(2.0))
    >>> rule.finish(run)
    >>> run.present.item(), run.state[DRIFT].item(), run.state[OWN].item()
    (-1.0, 0.0, 3.0)
    """

    Settings = FedDCSettings
    settings: FedDCSettings

    receives: ClassVar[frozenset[str]] = frozenset({GRADIENTS})
    uploads: ClassVar[int] = 1

    @property
    def state(self) -> Mapping[str, StateSpec]:
        return {DRIFT: StateSpec("parameters", until="model"), OWN: StateSpec("parameters", until="model")}

    def check(self, layout: Mapping[str, Segment], optimiser: LocalRule) -> None:
        refuse_unless_plain("feddc", optimiser)

    def begin(self, run: LocalRun) -> None:
        # All that is added to the gradient and does not change from step to step.
        settled = run.state[DRIFT] - run.received
        run.state[OFFSET] = run.broadcast[GRADIENTS] - run.state[OWN] + self.settings.alpha * settled

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        gradient.add_(run.present, alpha=self.settings.alpha).add_(run.state[OFFSET])
        return gradient if self.settings.clip is None else run.clip(gradient, self.settings.clip)

    def finish(self, run: LocalRun) -> None:
        moved, scale = run.present - run.received, run.steps * run.settings["learning_rate"]
        run.state[DRIFT].add_(moved)
        run.state[OWN].sub_(torch.where(scale > 0, moved / scale + run.broadcast[GRADIENTS], 0.0))
