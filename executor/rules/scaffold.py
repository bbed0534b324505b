"""SCAFFOLD, the client's half: control variates correct each step (Karimireddy et al., 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from emulator.messages import StateSpec
from emulator.plugins import NoSettings
from emulator.ports import Segment
from executor.rules.base import LocalRule, LocalRun
from executor.rules.sgd import refuse_unless_plain

CONTROL, OWN, OFFSET = "scaffold.control", "scaffold.own", "scaffold.offset"


class Scaffold(LocalRule):
    """SCAFFOLD: each step is corrected by what the clients' mean gradient is known to differ by.

    `g <- g - c_i + c`, with the client's control variate `c_i` and the aggregator's `c`, which comes with the
    model. After K steps with learning rate eta, from w to y: `c_i <- c_i - c + (w - y) / (K eta)` (option
    II). `c_i` starts at 0, outlives new data, and ends with the model. It needs the aggregator `scaffold`,
    and `sgd` without momentum as the optimiser: (w - y) / (K eta) is a mean gradient under no other. A client
    sends `c_i` up, so that two models go either way.

    Source: Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020,
    algorithm 1.

    One step of rate 0.5, from 1: the gradient 2 becomes 2 - 0 + 1, the step leads to -0.5, and c_i is 2:

    >>> rule, column = Scaffold(NoSettings()), lambda number: torch.tensor([[number]])
    >>> run = LocalRun(column(1.0), column(1.0), {"learning_rate": column(0.5)}, {OWN: column(0.0)})
    >>> run.broadcast, run.steps = {CONTROL: column(1.0)}, column(1.0)
    >>> rule.begin(run)
    >>> run.present -= 0.5 * rule.correct(run, column(2.0))
    >>> rule.finish(run)
    >>> run.present.item(), run.state[OWN].item()
    (-0.5, 2.0)
    """

    Settings = NoSettings

    receives: ClassVar[frozenset[str]] = frozenset({CONTROL})
    uploads: ClassVar[int] = 1

    @property
    def state(self) -> Mapping[str, StateSpec]:
        return {OWN: StateSpec("parameters", until="model")}

    def check(self, layout: Mapping[str, Segment], optimiser: LocalRule) -> None:
        refuse_unless_plain("scaffold", optimiser)

    def begin(self, run: LocalRun) -> None:
        run.state[OFFSET] = run.broadcast[CONTROL] - run.state[OWN]

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        return gradient.add_(run.state[OFFSET])

    def finish(self, run: LocalRun) -> None:
        scale = run.steps * run.settings["learning_rate"]
        mean_step = (run.received - run.present) / scale
        run.state[OWN].add_(torch.where(scale > 0, mean_step - run.broadcast[CONTROL], 0.0))
