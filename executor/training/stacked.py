"""Local training of a whole group in one batched step: the parameters of all its tasks are one (n, P) array.

The results equal the reference loop's up to rounding. A task that has done its steps leaves the batch; since
tasks are sorted by descending steps, the arrays just get shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from executor.flat import FlatModel
from executor.rules.base import Beside, Chain, GradientAt
from executor.training.chance import Chance
from executor.training.groups import BatchMean, TaskGroup, Trained
from executor.training.measured import Measured


class StackedStrategy:
    """Trains all tasks of a group side by side: the forward pass is `torch.func.vmap` over their parameters.

    A task's parameters affect its own loss alone, so one backward pass through the sum of the losses gives
    the gradient of every task; it costs less than vmap over the gradient.
    """

    def __init__(self, model: FlatModel, chain: Chain) -> None:
        self._model = model
        self._chain = chain
        self._logits = vmap(model.logits, randomness="different")

    def train(self, group: TaskGroup) -> Trained:
        trained = group.present.clone()
        gradient = torch.zeros_like(self._chain.seen(trained))
        elsewhere = torch.zeros_like(gradient) if self._chain.looks_again else None
        loss, measured = torch.zeros(len(group), dtype=torch.float64), Measured(group)
        run, state = group.begun(self._chain, trained)
        shares = group.shares_by_step()
        for step, (features, targets) in enumerate(group.batches()):
            active = len(targets)
            run.keep_first(active)
            mean = BatchMean(shares[step])
            batch = _Batch(features, targets, mean, partial(group.chances.step, step, slice(active)))
            of_samples, logits = self._write_gradient(gradient[:active], run.present, trained[:active], batch)
            gradient_at: GradientAt | None = None
            if elsewhere is not None:
                gradient_at = partial(self._gradient_at, elsewhere[:active], trained[:active], batch)
            self._chain.step(run, gradient[:active], gradient_at)
            loss[:active] += mean(of_samples)
            if group.measure:
                of_step = np.arange(active), np.full(active, step)
                told = logits.flatten(0, 1), targets.flatten(0, 1)
                errors = partial(self._model.objective.errors, *told)
                measured.add(*of_step, of_samples, errors, mean)
        state = group.finished(self._chain, trained, state)
        return Trained(trained, (loss / torch.from_numpy(group.steps)).numpy(), state, measured.columns)

    def _gradient_at(
        self, gradient: Tensor, models: Tensor, batch: _Batch, parameters: Tensor, beside: Beside = None
    ) -> Tensor:
        models = models.clone() if self._model.statistics else models  # whose statistics do not move
        self._write_gradient(gradient, parameters, models, batch, beside)
        return gradient

    def _write_gradient(
        self, gradient: Tensor, parameters: Tensor, models: Tensor, batch: _Batch, beside: Beside = None
    ) -> tuple[Tensor, Tensor]:
        """Write the gradient (n, Q) of each task's mean loss at `parameters` (n, Q), and move its statistics.

        Statistics of batch norm are those of `models` (n, P). Returns the losses (n, B) of its samples, and
        their logits (n, B, *output_shape), which are mixed with those of the parameters `beside`.

        NOTE: copied into one buffer for all steps; concatenation took a quarter of a step's time.
        """
        named = {name: part.detach() for name, part in self._model.named(parameters).items()}
        wanted = [named[name].requires_grad_() for name in self._model.trainable]
        # Of a view of (n, P) vmap would write a copy, and lose what is written.
        whole = torch.contiguous_format
        before = self._model.named(models) if self._model.statistics else {}
        statistics = {name: before[name].clone(memory_format=whole) for name in self._model.statistics}
        with batch.chance():
            logits = self._logits({**named, **statistics}, batch.features)
        if beside is not None:
            again = {name: before[name].clone(memory_format=whole) for name in self._model.statistics}
            with torch.no_grad(), batch.chance():
                others = self._logits({**self._model.named(beside[0]), **again}, batch.features)
            logits = torch.lerp(others, logits, beside[1].view(-1, *[1] * (logits.dim() - 1)))
        flat = logits.flatten(0, 1), batch.targets.flatten(0, 1)
        of_samples = self._model.objective.losses(*flat).view(batch.targets.shape[:2])
        gradients = torch.autograd.grad(batch.mean(of_samples).sum(), wanted, materialize_grads=True)
        parts = self._model.named(gradient)
        for name, of_parameter in zip(self._model.trainable, gradients, strict=True):
            parts[name].copy_(of_parameter)
        for name, moved in statistics.items():  # behind the backward pass, which needs the array as it was
            before[name].copy_(moved)
        return of_samples.detach(), logits.detach()


@dataclass(frozen=True)
class _Batch:
    """The batches of n tasks in a step: features and targets (n, B, *shape), and their chance."""

    features: Tensor
    targets: Tensor
    mean: BatchMean
    chance: Chance
