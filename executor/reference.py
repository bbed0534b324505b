"""Local training, plainly: one client after the other, an ordinary module, autograd, one step at a time.

The definition of what local training is; the stacked strategy is tested against it. It is also the faster
of the two where a single client fills the machine, as with convolutions on a CPU.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import vector_to_parameters

from executor.cohort import Cohort, Trained
from executor.flat import FlatModel
from executor.rules.base import Chain, LocalRun


class ReferenceLoop:
    """Trains the tasks of a cohort one by one."""

    def __init__(self, model: FlatModel, chain: Chain) -> None:
        self._module = model.module()
        self._parameters = list(self._module.parameters())
        self._chain = chain

    def train(self, cohort: Cohort) -> Trained:
        trained = cohort.start.clone()
        loss = torch.zeros(len(cohort), dtype=torch.float64)
        for client in range(len(cohort)):
            loss[client] = self._train_one(cohort, client, trained[client])
        return Trained(trained, loss.numpy())

    def _train_one(self, cohort: Cohort, client: int, trained: Tensor) -> float:
        """Train task `client` in place on `trained` (P,), which is its start; its mean loss."""
        settings = {name: column[client, None] for name, column in cohort.settings.items()}
        run = LocalRun(cohort.start[client, None], trained[None], settings)
        # The parameters become views of `trained`: when the chain moves one, the module has moved.
        vector_to_parameters(trained, self._parameters)
        losses = []
        self._chain.begin(run)
        for features, labels in cohort.batches():
            if client >= len(labels):
                break
            loss = functional.cross_entropy(self._module(features[client]), labels[client])
            gradients = torch.autograd.grad(loss, self._parameters)
            self._chain.step(run, torch.cat([gradient.flatten() for gradient in gradients])[None])
            losses.append(loss.item())
        return sum(losses) / len(losses) if losses else float("nan")
