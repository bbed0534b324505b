"""Local rules: a chain of them turns the gradients of n tasks, trained side by side, into one local step.

A rule sees tensors of shape (n, P) and must treat their rows independently; it does not know whether n is 1
or 50, which client a row belongs to, or how the gradient was computed.
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
    """The n tasks in training, as rules see them.

    Attributes:
        received: Tensor of shape (n, P): the parameters that each task started from.
        present: Tensor of shape (n, P): the parameters that each task has now.
        settings: The tasks' settings, such as `learning_rate`; tensors of shape (n, 1).
        state: What rules remember from step to step, under keys of the form "rule.name"; tensors of shape
            (n, ...). Rules must write into these tensors in place: after `keep_first` they are views of the
            tensors that also have the rows of finished tasks.
        frozen: Boolean tensor of shape (P,), True for parameters that no step moves; None if there are none.
        step: The number of steps done.
    """

    received: Tensor
    present: Tensor
    settings: Mapping[str, Tensor]
    state: dict[str, Tensor] = field(default_factory=dict)
    frozen: Tensor | None = None
    step: int = 0

    def keep_first(self, active: int) -> None:
        """Continue with the first tasks only; the others have done all their steps.

        Args:
            active: How many tasks continue, at most n.
        """
        if active == len(self.present):
            return
        self.received = self.received[:active]
        self.present = self.present[:active]
        self.settings = {name: column[:active] for name, column in self.settings.items()}
        self.state = {name: rows[:active] for name, rows in self.state.items()}


class LocalRule(plugins.Configured, ABC):
    """Base of the local rules: one link of the chain, which corrects the gradient before each step.

    The last rule of a chain, and no other, is an optimiser (`is_optimiser`): what its `correct` returns is
    subtracted from the parameters.
    """

    is_optimiser: ClassVar[bool] = False

    @property
    def state(self) -> Mapping[str, StateSpec]:
        """The rule's state that outlasts a task, by its key in `run.state`; none by default.

        It is kept for each (client, model) pair, and the pair's next task begins with it; see `StateSpec`.
        """
        return {}

    @property
    def is_plain_descent(self) -> bool:
        """Whether `correct` always returns the gradient times the task's learning rate, and nothing else."""
        return False

    def begin(self, run: LocalRun) -> None:
        """Put the rule's initial state into `run.state`: called once for a run, before its first step.

        Args:
            run: The n tasks; the state that the rule declares in `state` is in `run.state` already.
        """

    @abstractmethod
    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        """The corrected gradient; for an optimiser, the amount to subtract from the parameters.

        Args:
            run: The n tasks that take this step.
            gradient: Tensor of shape (n, P): the output of the rule before, or the loss's gradient. It may
                be overwritten.

        Returns:
            Tensor of shape (n, P).
        """


@dataclass(frozen=True)
class Chain:
    """Rules in their order, the optimiser last; `build_chain` makes one."""

    rules: tuple[LocalRule, ...]

    @property
    def state(self) -> Mapping[str, StateSpec]:
        """The state of all rules that a (client, model) pair keeps between its tasks, by key."""
        return {name: slot for rule in self.rules for name, slot in rule.state.items()}

    @property
    def is_plain_descent(self) -> bool:
        """Whether a step is nothing but `w <- w - learning_rate g`."""
        return len(self.rules) == 1 and self.rules[0].is_plain_descent

    def remembered(self, start: Tensor, earlier: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The state that n tasks begin with.

        Args:
            start: Tensor of shape (n, P): the parameters that each task starts from; gives n and the dtype.
            earlier: The state that earlier tasks of the same pairs left; some of the slots of `state`.

        Returns:
            For each slot of `state` a tensor of shape (n, P) or (n, 1): a copy of `earlier`, else zeros.
        """
        assert earlier.keys() <= self.state.keys()
        return {
            name: earlier[name].clone()
            if name in earlier
            else torch.zeros_like(start if slot.shape == "parameters" else start[:, :1])
            for name, slot in self.state.items()
        }

    def begin(self, run: LocalRun) -> None:
        """Let every rule put its initial state into `run.state`.

        Args:
            run: The n tasks, before their first step.
        """
        for rule in self.rules:
            rule.begin(run)

    def step(self, run: LocalRun, gradient: Tensor) -> None:
        """Do one local step: pass the gradient through all rules and subtract the result from the parameters.

        Args:
            run: The n tasks that take this step; `run.present` changes in place.
            gradient: Tensor of shape (n, P): the gradient of each task's loss. It is overwritten.
        """
        if run.frozen is not None:
            gradient.masked_fill_(run.frozen, 0)
        for rule in self.rules:
            gradient = rule.correct(run, gradient)
        if run.frozen is not None:  # again, since a rule may move them too, for example by weight decay
            gradient.masked_fill_(run.frozen, 0)
        run.present.sub_(gradient)
        run.step += 1


def build_chain(rules: Sequence[LocalRule]) -> Chain:
    """The chain of these rules.

    Args:
        rules: The rules in their order.

    Returns:
        The chain.

    Raises:
        ConfigurationError: The last rule is not an optimiser, or another one is.
    """
    if [rule.is_optimiser for rule in rules] != [False] * (len(rules) - 1) + [True]:
        names = ", ".join(type(rule).__name__ for rule in rules)
        raise ConfigurationError(
            f"solver [{names}]: the last rule, and no other, must be an optimiser (adam, sgd)"
        )
    return Chain(tuple(rules))
