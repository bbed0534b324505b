"""The reference loop of local training: one client after the other, with an ordinary module and autograd.

It defines what local training computes; the other strategies are tested against it. It is also the fastest
where a single client keeps the machine busy, as with convolutions on a CPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import vector_to_parameters

from executor.flat import FlatModel
from executor.rules.base import Chain, GradientAt, LocalRun
from executor.training.groups import BatchMean, TaskGroup, Trained
from executor.training.measured import Measured, wrong

Step = Callable[[Sequence[Tensor], Tensor, Tensor], None]
"""Applies the gradients of a batch, a tensor for each trainable parameter; then come features and labels."""


class ReferenceLoop:
    """Trains the tasks of a group one by one."""

    def __init__(self, model: FlatModel, chain: Chain) -> None:
        self._model = model
        self._local = _Module(model)
        self._chain = chain

    def train(self, group: TaskGroup) -> Trained:
        trained = group.present.clone()
        state = group.remembered(self._chain)
        loss, measured = torch.zeros(len(group), dtype=torch.float64), Measured(group)
        states = []
        for client in range(len(group)):
            client_state = {name: rows[client, None] for name, rows in state.items()}
            loss[client] = self._train_one(group, client, trained[client], client_state, measured)
            states.append(client_state)
        if not group.ends:
            state = {name: torch.cat([of_client[name] for of_client in states]) for name in states[0]}
        return Trained(trained, (loss / torch.from_numpy(group.steps)).numpy(), state, measured.columns)

    def _train_one(
        self, group: TaskGroup, client: int, trained: Tensor, state: dict[str, Tensor], measured: Measured
    ) -> Tensor:
        """Train task `client` of the group; returns the sum of its losses over its steps.

        `trained` (P,) has the initial parameters. It changes in place, as do the rules' `state`, to which
        they may add, and `measured`.
        """
        settings = {name: column[client, None] for name, column in group.settings.items()}
        broadcast = {name: rows[client, None] for name, rows in group.broadcast.items()}
        steps = torch.full((1, 1), float(group.steps[client]), dtype=trained.dtype)
        received, frozen = group.start[client, None], self._model.frozen
        run = LocalRun(received, trained[None], settings, dict(state), frozen, broadcast, steps)
        # The parameters become views of `trained`: when the chain moves one, the module has moved.
        vector_to_parameters(trained, self._local.module.parameters())
        step = self._descent(run, trained) if self._chain.is_plain_descent else self._by_rules(run)
        total = torch.zeros((), dtype=torch.float64)
        if group.interim is None:
            self._chain.begin(run)
        for number, (features, labels) in enumerate(_batches_of(group, client)):
            logits = self._local.module(features)
            loss = functional.cross_entropy(logits, labels)
            if measured.needs(number, client):
                of_samples = functional.cross_entropy(logits.detach(), labels, reduction="none")
                batch = np.array([client]), np.array([number])
                predicted_wrongly = partial(wrong, logits.detach()[None], labels[None])
                measured.add(*batch, of_samples[None], predicted_wrongly, BatchMean())
            gradients = torch.autograd.grad(loss, self._local.trainable)
            step(gradients, features, labels)
            total += loss.detach()
        if group.ends:
            self._chain.finish(LocalRun(received, trained[None], settings, state, frozen, broadcast, steps))
        else:
            state |= run.state
        return total

    def _descent(self, run: LocalRun, trained: Tensor) -> Step:
        """A function that does one step of plain gradient descent on `trained` (P,).

        NOTE: the chain gives the same result; for models of millions of parameters its two additional passes
        over them take a fifth of a step.
        """
        parts, rate = self._trainable(trained), run.settings["learning_rate"].item()

        def step(gradients: Sequence[Tensor], features: Tensor, labels: Tensor) -> None:
            for part, gradient in zip(parts, gradients, strict=True):
                part.sub_(gradient, alpha=rate)

        return step

    def _by_rules(self, run: LocalRun) -> Step:
        whole = torch.zeros_like(run.present)
        parts = self._trainable(whole[0])

        def step(gradients: Sequence[Tensor], features: Tensor, labels: Tensor) -> None:
            for part, gradient in zip(parts, gradients, strict=True):
                part.copy_(gradient)
            looks_again = self._chain.looks_again
            self._chain.step(run, whole, self._elsewhere(features, labels) if looks_again else None)

        return step

    def _elsewhere(self, features: Tensor, labels: Tensor) -> GradientAt:
        """The gradient of the loss on this batch, at other parameters (1, P)."""

        def gradient_at(parameters: Tensor) -> Tensor:
            named = {name: part.detach() for name, part in self._model.named(parameters[0]).items()}
            wanted = [
                named[name].requires_grad_() for name, part in self._model.layout.items() if part.trainable
            ]
            loss = functional.cross_entropy(self._model.logits(named, features), labels)
            gradient = torch.zeros_like(parameters)
            for part, found in zip(
                self._trainable(gradient[0]), torch.autograd.grad(loss, wanted), strict=True
            ):
                part.copy_(found)
            return gradient

        return gradient_at

    def _trainable(self, flat: Tensor) -> list[Tensor]:
        """Views of `flat` (P,), one for each trainable parameter."""
        named = self._model.named(flat)
        return [named[name] for name, segment in self._model.layout.items() if segment.trainable]


def _batches_of(group: TaskGroup, client: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of task `client` of the group: features and labels of the samples that count."""
    begins = np.cumsum(group.active) - group.active  # of each step's batches
    for begin, (features, labels) in zip(begins.tolist(), group.batches(), strict=True):
        if client >= len(labels):
            return
        size = None if group.sizes is None else int(group.sizes[begin + client])
        yield features[client, :size], labels[client, :size]


class _Module(threading.local):
    """An ordinary module per thread."""

    def __init__(self, model: FlatModel) -> None:
        self.module = model.module()
        self.trainable = [part for part in self.module.parameters() if part.requires_grad]
