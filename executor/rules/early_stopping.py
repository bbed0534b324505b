"""Early stopping: a client trains for as long as its held-out samples gain by it (Panchal et al., 2023)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from emulator.messages import StepForm
from executor.rules.base import LocalRule, LocalRun
from executor.rules.settings import EarlyStoppingSettings


class EarlyStopping(LocalRule):
    """FLASH's client: it stops as soon as an epoch gains too little on samples that it holds out.

    With `l_e` the loss of the held-out samples after epoch e, a client stops after it if `l_(e-1) - l_e <
    gamma / e`, at the latest after `epochs`. Held-out samples are drawn by a key of each sample, with
    probability `held_out`, and no step of the arm trains on them (a client that would hold out all trains on
    the one with the largest number); a client that holds none out takes one epoch. A loss costs a third of
    the time of training on as many samples.

    In the paper's listing the comparison comes before the epoch, and losses are summed (`loss`); a
    third-party implementation starts from an infinite loss (`first`).

    Source: Panchal et al., "Flash: Concept Drift Adaptation in Federated Learning", ICML 2023, algorithm 1.

    Two clients with ten held-out samples each, whose mean losses fall by 0.04 and 0.02:

    >>> import torch
    >>> rule = EarlyStopping(EarlyStoppingSettings(gamma=0.03))
    >>> before, after = torch.tensor([10.0, 10.0]), torch.tensor([9.6, 9.8])
    >>> rule.stops(1, before, after, torch.tensor([10, 10])).tolist()
    [False, True]
    """

    Settings = EarlyStoppingSettings
    settings: EarlyStoppingSettings

    changes_steps: ClassVar[bool] = False
    stops_early: ClassVar[bool] = True

    @property
    def held_out(self) -> float:
        return self.settings.held_out

    @property
    def most_epochs(self) -> int | None:
        return self.settings.epochs

    @property
    def measures_first(self) -> bool:
        return self.settings.first == "measured"

    @property
    def form(self) -> StepForm:
        return StepForm()

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        return gradient

    def stops(self, epoch: int, before: Tensor, after: Tensor, samples: Tensor) -> Tensor:
        gain = before - after
        if self.settings.loss == "mean":
            gain = gain / samples
        return ~(gain >= self.settings.gamma / epoch)  # also if a loss is not a number
