"""Local training, plainly: one client after the other, an ordinary module, autograd, one step at a time.

The definition of what local training is; the other strategies are tested against it. It is also the fastest
where a single client fills the machine, as with convolutions on a CPU.
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
        self._model = model
        self._module = model.module()
        self._trainable = [part for part in self._module.parameters() if part.requires_grad]
        self._chain = chain

    def train(self, cohort: Cohort) -> Trained:
        trained = cohort.start.clone()
        state = self._chain.remembered(cohort.start, cohort.state)
        loss = torch.zeros(len(cohort), dtype=torch.float64)
        for client in range(len(cohort)):
            own = {name: rows[client, None] for name, rows in state.items()}
            loss[client] = self._train_one(cohort, client, trained[client], own)
        return Trained(trained, loss.numpy(), state)

    def _train_one(self, cohort: Cohort, client: int, trained: Tensor, state: dict[str, Tensor]) -> float:
        """Train task `client` in place on `trained` (P,), which is its start, and `state`; its mean loss."""
        settings = {name: column[client, None] for name, column in cohort.settings.items()}
        run = LocalRun(cohort.start[client, None], trained[None], settings, state, self._model.frozen)
        # The parameters become views of `trained`: when the chain moves one, the module has moved.
        vector_to_parameters(trained, self._module.parameters())
        gradient = torch.zeros_like(trained)
        named = self._model.named(gradient)
        parts = [named[name] for name, segment in self._model.layout.items() if segment.trainable]
        losses = []
        self._chain.begin(run)
        for features, labels in cohort.batches():
            if client >= len(labels):
                break
            loss = functional.cross_entropy(self._module(features[client]), labels[client])
            gradients = torch.autograd.grad(loss, self._trainable)
            for part, own in zip(parts, gradients, strict=True):
                part.copy_(own)
            self._chain.step(run, gradient[None])
            losses.append(loss.item())
        return sum(losses) / len(losses) if losses else float("nan")
