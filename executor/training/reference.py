"""The reference loop of local training: one client after the other, with an ordinary module and autograd.

It defines what local training computes; the other strategies are tested against it. It is also the fastest
where a single client keeps the machine busy, as with convolutions on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from executor.flat import FlatModel
from executor.rules.base import Beside, Chain, GradientAt, LocalRun
from executor.training.chance import Chance
from executor.training.groups import BatchMean, TaskGroup, Trained
from executor.training.measured import Measured

Step = Callable[[Sequence[Tensor], GradientAt | None], None]
"""Applies the gradients of a batch, a tensor for each trainable parameter, with the gradient elsewhere."""


class ReferenceLoop:
    """Trains the tasks of a group one by one."""

    def __init__(self, model: FlatModel, chain: Chain) -> None:
        self._model = model
        self._chain = chain

    def train(self, group: TaskGroup) -> Trained:
        trained = group.present.clone()
        state = group.remembered(self._chain)
        loss, measured = torch.zeros(len(group), dtype=torch.float64), Measured(group)
        states = []
        for client in range(len(group)):
            client_state = {name: rows[client, None] for name, rows in state.items()}
            loss[client] = self._train_one(group, client, trained[client, None], client_state, measured)
            states.append(client_state)
        if not group.ends:
            state = {name: torch.cat([of_client[name] for of_client in states]) for name in states[0]}
        return Trained(trained, (loss / torch.from_numpy(group.steps)).numpy(), state, measured.columns)

    def _train_one(
        self, group: TaskGroup, client: int, trained: Tensor, state: dict[str, Tensor], measured: Measured
    ) -> Tensor:
        """Train task `client` of the group; returns the sum of its losses over its steps.

        `trained` (1, P) is the initial model. It changes in place, as do the rules' `state`, to which they
        may add, and `measured`.
        """
        alone = group.some(slice(client, client + 1), lambda rows: rows[client, None])
        run = alone.local_run(self._chain, trained, state)
        # Views of `trained`: when the chain moves it, the module has moved. That the module moves statistics
        # must not count as a change of parameters that a backward pass needs: `data` has its own counter.
        named = self._model.named(trained[0])
        wanted = [named[name].detach().requires_grad_() for name in self._model.trainable]
        leaves = dict(zip(self._model.trainable, wanted, strict=True))
        statistics = {name: named[name].data for name in self._model.statistics}
        objective = self._model.objective
        step = self._descent(run) if self._chain.is_plain_descent else self._by_rules(run)
        total = torch.zeros((), dtype=torch.float64)
        if group.interim is None:
            self._chain.begin(run)
        with self._model.bound({**named, **leaves, **statistics}) as module:
            for number, (features, targets) in enumerate(_batches_of(group, client)):
                with group.chances.step(number, client):
                    logits = module(features)
                loss = objective.loss(logits, targets)
                if measured.needs(number, client):
                    told = logits.detach(), targets
                    batch = np.array([client]), np.array([number])
                    of_samples, errors = objective.losses(*told), partial(objective.errors, *told)
                    measured.add(*batch, of_samples[None], errors, BatchMean())
                gradients = torch.autograd.grad(loss, wanted, materialize_grads=True)
                elsewhere: GradientAt | None = None
                if self._chain.looks_again:
                    chance = partial(group.chances.step, number, client)
                    elsewhere = self._elsewhere(features, targets, statistics, chance)
                step(gradients, elsewhere)
                total += loss.detach()
        if group.ends:
            self._chain.finish(alone.local_run(self._chain, trained, state))
        else:
            state |= run.state
        return total

    def _descent(self, run: LocalRun) -> Step:
        """A function that does one step of plain gradient descent.

        NOTE: the chain gives the same result; for models of millions of parameters its two additional passes
        over them take a fifth of a step.
        """
        parts, rate = self._trainable(run.present[0]), run.settings["learning_rate"].item()

        def step(gradients: Sequence[Tensor], elsewhere: GradientAt | None) -> None:
            for part, gradient in zip(parts, gradients, strict=True):
                part.sub_(gradient, alpha=rate)

        return step

    def _by_rules(self, run: LocalRun) -> Step:
        whole = torch.zeros_like(run.present)
        parts = self._trainable(whole[0])

        def step(gradients: Sequence[Tensor], elsewhere: GradientAt | None) -> None:
            for part, gradient in zip(parts, gradients, strict=True):
                part.copy_(gradient)
            self._chain.step(run, whole, elsewhere)

        return step

    def _elsewhere(
        self, features: Tensor, targets: Tensor, statistics: Mapping[str, Tensor], chance: Chance
    ) -> GradientAt:
        """The gradient of the loss on this batch, at other parameters (1, Q); statistics do not move."""

        def outputs(named: dict[str, Tensor]) -> Tensor:
            named |= {name: part.clone() for name, part in statistics.items()}
            with chance():
                return self._model.logits(named, features)

        def gradient_at(parameters: Tensor, beside: Beside = None) -> Tensor:
            named = {name: part.detach() for name, part in self._model.named(parameters[0]).items()}
            wanted = [named[name].requires_grad_() for name in self._model.trainable]
            logits = outputs(named)
            if beside is not None:
                with torch.no_grad():
                    others = outputs(self._model.named(beside[0][0]))
                logits = torch.lerp(others, logits, beside[1])
            loss = self._model.objective.loss(logits, targets)
            gradient = torch.zeros_like(parameters)
            gradients = torch.autograd.grad(loss, wanted, materialize_grads=True)
            for part, found in zip(self._trainable(gradient[0]), gradients, strict=True):
                part.copy_(found)
            return gradient

        return gradient_at

    def _trainable(self, flat: Tensor) -> list[Tensor]:
        """Views of `flat` (Q,), one for each trainable parameter."""
        named = self._model.named(flat)
        return [named[name] for name in self._model.trainable]


def _batches_of(group: TaskGroup, client: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of task `client` of the group: features and targets of the samples that count."""
    begins = np.cumsum(group.active) - group.active  # of each step's batches
    for begin, (features, targets) in zip(begins.tolist(), group.batches(), strict=True):
        if client >= len(targets):
            return
        size = None if group.sizes is None else int(group.sizes[begin + client])
        yield features[client, :size], targets[client, :size]
