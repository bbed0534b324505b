"""Local training of a whole cohort in one batched step: the parameters of all its tasks are one (n, P) array.

Equal to the reference loop but for rounding. A task that has done its steps leaves the batch; since tasks
are sorted by steps, that only shortens the arrays.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap
from torch.nn import functional

from executor.cohort import Cohort, Trained
from executor.flat import FlatModel
from executor.rules.base import Chain, LocalRun


class StackedCohort:
    """Trains all tasks of a cohort side by side, by `torch.func.vmap` over their parameters."""

    def __init__(self, model: FlatModel, chain: Chain) -> None:
        self._model = model
        self._chain = chain
        self._gradients_and_loss = vmap(grad_and_value(self._loss))

    def train(self, cohort: Cohort) -> Trained:
        trained = cohort.start.clone()
        gradient = torch.empty_like(trained)
        loss = torch.zeros(len(cohort), dtype=torch.float64)
        run = LocalRun(cohort.start, trained, cohort.settings)
        self._chain.begin(run)
        for features, labels in cohort.batches():
            active = len(labels)
            run.keep_first(active)
            gradients, losses = self._gradients_and_loss(self._model.named(run.present), features, labels)
            # NOTE: into one buffer for all steps; to concatenate anew took a quarter of a step's time.
            for name, part in self._model.named(gradient[:active]).items():
                part.copy_(gradients[name])
            self._chain.step(run, gradient[:active])
            loss[:active] += losses
        return Trained(trained, (loss / torch.from_numpy(cohort.steps)).numpy())

    def _loss(self, named: dict[str, Tensor], features: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(self._model.logits(named, features), labels)
