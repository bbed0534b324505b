"""What one local step does: a chain of rules, stacked over the n tasks that train side by side.

A rule sees tensors of shape (n, P) and must treat their rows independently; it never knows whether n is 1
or 50, which client a row is, or where the gradient came from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from emulator import plugins
from emulator.errors import ConfigurationError
from emulator.messages import StateSpec


@dataclass
class LocalRun:
    """The tasks under way.

    `received` and `present` (n, P): the parameters each task started from and has now. `settings`: columns
    (n, 1) such as `learning_rate`. `state`: what rules remember from step to step, (n, ...) each, under keys
    of the form "rule.name"; rules write into these tensors and never replace them, since the rows of tasks
    that have done their steps stay behind in them. `frozen` (P,), if any: parameters that no step moves.
    `step` counts the steps done.
    """

    received: Tensor
    present: Tensor
    settings: Mapping[str, Tensor]
    state: dict[str, Tensor] = field(default_factory=dict)
    frozen: Tensor | None = None
    step: int = 0

    def keep_first(self, active: int) -> None:
        """Go on with the first `active` tasks only; the others have done their steps."""
        if active == len(self.present):
            return
        self.received = self.received[:active]
        self.present = self.present[:active]
        self.settings = {name: column[:active] for name, column in self.settings.items()}
        self.state = {name: rows[:active] for name, rows in self.state.items()}


class LocalRule(plugins.Configured, ABC):
    """One link of the chain. The last one is the optimiser: what it answers is subtracted."""

    is_optimiser: ClassVar[bool] = False

    @property
    def state(self) -> Mapping[str, StateSpec]:
        """What it remembers of each (client, model) pair from task to task, by the keys of `run.state`."""
        return {}

    @property
    def is_plain_descent(self) -> bool:
        """Whether all it ever answers is the gradient times the task's learning rate."""
        return False

    def begin(self, run: LocalRun) -> None:
        """Called once before the first step; puts what the rule remembers into `run.state`.

        What it remembers from task to task is there already.
        """

    @abstractmethod
    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        """(n, P) what the next rule gets in place of `gradient` (n, P), which may be overwritten."""


@dataclass(frozen=True)
class Chain:
    """Rules in their order, the optimiser last; made by `build_chain`."""

    rules: tuple[LocalRule, ...]

    @property
    def state(self) -> Mapping[str, StateSpec]:
        """What its rules remember of each (client, model) pair from task to task."""
        return {name: slot for rule in self.rules for name, slot in rule.state.items()}

    @property
    def is_plain_descent(self) -> bool:
        """Whether a step is nothing but `w <- w - learning_rate g`."""
        return len(self.rules) == 1 and self.rules[0].is_plain_descent

    def remembered(self, start: Tensor, brought: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """(n, P) or (n, 1) for each slot of `state`: a copy of what was `brought`, else zeros.

        `start` (n, P) gives number and kind.
        """
        assert brought.keys() <= self.state.keys()
        return {
            name: brought[name].clone()
            if name in brought
            else torch.zeros_like(start if slot.shape == "parameters" else start[:, :1])
            for name, slot in self.state.items()
        }

    def begin(self, run: LocalRun) -> None:
        for rule in self.rules:
            rule.begin(run)

    def step(self, run: LocalRun, gradient: Tensor) -> None:
        """Move `run.present`, in place, by what the rules make of `gradient` (n, P)."""
        if run.frozen is not None:
            gradient.masked_fill_(run.frozen, 0)
        for rule in self.rules:
            gradient = rule.correct(run, gradient)
        if run.frozen is not None:  # a rule moves them too, as by weight decay
            gradient.masked_fill_(run.frozen, 0)
        run.present.sub_(gradient)
        run.step += 1


def build_chain(rules: Sequence[LocalRule]) -> Chain:
    """The chain of `rules`; ConfigurationError unless the last one, and no other, is an optimiser."""
    if [rule.is_optimiser for rule in rules] != [False] * (len(rules) - 1) + [True]:
        names = ", ".join(type(rule).__name__ for rule in rules)
        raise ConfigurationError(
            f"solver [{names}]: the last rule, and no other, must be an optimiser (adam, sgd)"
        )
    return Chain(tuple(rules))
