"""Local training of a whole group in one batched step: the parameters of all its tasks are one (n, P) array.

The results equal the reference loop's up to rounding. A task that has done its steps leaves the batch; since
tasks are sorted by descending steps, the arrays just get shorter.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import vmap
from torch.nn import functional

from executor.flat import FlatModel
from executor.rules.base import Chain, LocalRun
from executor.training.groups import TaskGroup, Trained
from executor.training.measured import Measured


class StackedStrategy:
    """Trains all tasks of a group side by side: the forward pass is `torch.func.vmap` over their parameters.

    A task's parameters affect its own loss alone, so one backward pass through the sum of the losses gives
    the gradient of every task; it costs less than vmap over the gradient.
    """

    def __init__(self, model: FlatModel, chain: Chain) -> None:
        self._model = model
        self._chain = chain
        self._logits = vmap(model.logits)

    def train(self, group: TaskGroup) -> Trained:
        trained = group.start.clone()
        state = self._chain.remembered(group.start, group.state)
        gradient = torch.zeros_like(trained)
        loss, measured = torch.zeros(len(group), dtype=torch.float64), Measured(group)
        run = LocalRun(group.start, trained, group.settings, dict(state), self._model.frozen)
        self._chain.begin(run)
        trainable = [name for name, segment in self._model.layout.items() if segment.trainable]
        for step, (features, labels) in enumerate(group.batches()):
            active = len(labels)
            run.keep_first(active)
            named = {name: part.detach() for name, part in self._model.named(run.present).items()}
            wanted = [named[name].requires_grad_() for name in trainable]
            of_samples = self._losses(named, features, labels)
            losses = of_samples.mean(dim=1)
            gradients = torch.autograd.grad(losses.sum(), wanted)
            # NOTE: copied into one buffer for all steps; concatenation took a quarter of a step's time.
            parts = self._model.named(gradient[:active])
            for name, of_parameter in zip(trainable, gradients, strict=True):
                parts[name].copy_(of_parameter)
            self._chain.step(run, gradient[:active])
            loss[:active] += losses.detach()
            measured.add(step, of_samples)
        return Trained(trained, (loss / torch.from_numpy(group.steps)).numpy(), state, measured.columns)

    def _losses(self, named: dict[str, Tensor], features: Tensor, labels: Tensor) -> Tensor:
        """(n, B) the cross-entropy of each sample of each task's batch."""
        logits = self._logits(named, features)
        losses = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return losses.view_as(labels)
