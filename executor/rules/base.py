"""Local rules: a chain of them turns the gradients of n tasks, trained side by side, into one local step.

A rule sees tensors of shape (n, P) and must treat their rows independently; it does not know whether n is 1
or 50, which client a row belongs to, or how the gradient was computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from emulator import plugins
from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.messages import OutputMix, SolverFacts, StateSpec, StepForm
from emulator.plugins import returns
from emulator.ports import Segment, num_statistics

KEPT = "batch_norm.kept"
"""The slot of what each client keeps of batch norm."""


@dataclass
class LocalRun:
    """The n tasks in training, as rules see them: with Q parameters, and no statistics of batch norm.

    Attributes:
        received: Tensor of shape (n, Q): the parameters that each task started from. A rule may write into
            it in `begin`, what a client starts from in place of what it was sent.
        present: Tensor of shape (n, Q): the parameters that each task has now.
        settings: The tasks' settings, such as `learning_rate`; tensors of shape (n, 1).
        state: What rules remember from step to step, under keys of the form "rule.name"; tensors of shape
            (n, ...). Rules must write into these tensors in place: after `keep_first` they are views of the
            tensors that also have the rows of finished tasks.
        frozen: Boolean tensor of shape (Q,), True for parameters that no step moves; None if there are none.
        broadcast: The rows of the arrays that the aggregator sent along with the tasks' models, by name;
            tensors of shape (n, Q).
        steps: Tensor of shape (n, 1): how many steps each task does in all; where tasks stop early, in the
            epoch at hand, and in `finish` in all.
        step: The number of steps done; where tasks stop early, of the epoch at hand.
        still: Boolean tensor of shape (Q,) or (n, Q), True for parameters that the step at hand must not
            move; rules set it in `correct` of each step, and rules behind them find it.
    """

    received: Tensor
    present: Tensor
    settings: Mapping[str, Tensor]
    state: dict[str, Tensor] = field(default_factory=dict)
    frozen: Tensor | None = None
    broadcast: Mapping[str, Tensor] = field(default_factory=dict)
    steps: Tensor = field(default_factory=lambda: torch.zeros(0, 1))
    step: int = 0
    still: Tensor | None = None

    def add_decay(self, gradient: Tensor, weight_decay: float) -> None:
        """Add weight decay to a gradient (n, Q), in place, for the parameters that the step at hand moves.

        Args:
            gradient: What an optimiser received.
            weight_decay: The factor of the present parameters.
        """
        if weight_decay > 0:
            gradient.add_(self.present, alpha=weight_decay)
            if self.still is not None:
                gradient.masked_fill_(self.still, 0)

    def clip(self, gradient: Tensor, norm: float) -> Tensor:
        """Divide each task's gradient by its norm over `norm`, where that is above 1, in place.

        Args:
            gradient: Tensor of shape (n, Q); what the step at hand does not move is not in its norm.
            norm: The largest norm, above 0.

        Returns:
            The gradient.
        """
        moves = gradient
        for fixed in (self.frozen, self.still):
            moves = moves if fixed is None else moves.masked_fill(fixed, 0)
        return gradient.div_((moves.norm(dim=1, keepdim=True) / norm).clamp_(min=1))

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
        self.broadcast = {name: rows[:active] for name, rows in self.broadcast.items()}
        self.steps = self.steps[:active]


Beside = tuple[Tensor, Tensor] | None
"""Other parameters (n, Q), and the share that the first have in the mixed logits, (n, 1) or a number ()."""


class GradientAt(Protocol):
    """The gradient (n, Q) of the loss at `parameters` (n, Q), on the batch of the step at hand.

    With others `beside` them, that of the loss of both models' logits, mixed by the share. The result may be
    overwritten, and holds until the next call.
    """

    def __call__(self, parameters: Tensor, beside: Beside = None) -> Tensor:
        """(n, Q) the gradient at `parameters` (n, Q)."""


class LocalRule(plugins.Configured, ABC):
    """Base of the local rules: one link of the chain, which corrects the gradient before each step.

    The last rule of a chain, and no other, is an optimiser (`is_optimiser`): what its `correct` returns is
    subtracted from the parameters.
    """

    chance: ClassVar[str] = "a local rule has no random numbers of its own yet: leave chance out"
    is_optimiser: ClassVar[bool] = False
    receives: ClassVar[frozenset[str]] = frozenset()
    """The arrays of the aggregator that it reads from `run.broadcast`: only an aggregator that broadcasts
    them can be beside it. Each is sent to the clients along with the model, and charged."""
    uploads: ClassVar[int] = 0
    """The whole models that it has a task send up besides its update; they are charged."""
    gradients: int = 0
    """The gradients that its `after_step` takes in each step, at most; they are charged like a step's own."""
    mixes: OutputMix | None = None
    """How a client mixes the logits of the model of `personal` with those of the model that serves it; the
    slot is one of the rule's. None: it uses the first alone."""
    reads_samples: bool = False
    """Whether it reads `relative_samples` from `run.settings`: the training samples that a client holds at
    dispatch, over their mean over all clients that hold some. Tasks of requests and adaptations have none."""
    changes_steps: ClassVar[bool] = True
    """Whether it does anything to the steps of a task: to the gradient, or to where it starts."""
    stops_early: ClassVar[bool] = False
    """Whether it overrides `stops`; a solver may have one such rule."""

    @property
    def state(self) -> Mapping[str, StateSpec]:
        """The rule's slots: its state that outlasts a task, by its key in `run.state`; none by default.

        See `StateSpec` for whose a row is, and how long it is kept.
        """
        return {}

    @property
    def task_settings(self) -> Mapping[str, float]:
        """The numbers that it reads from `run.settings`, where a schedule sets them, and what they are else.

        A name is that of the rule, a dot and that of one of its settings, whose bounds hold; none by default.
        """
        return {}

    @property
    def shares(self) -> Mapping[str, float]:
        """The numbers that the aggregator must have, too, as its `shares`: only with these are both right.

        A name is that of the rule, a dot and that of one of its settings; none by default.
        """
        return {}

    @property
    def form(self) -> StepForm | None:
        """What `correct` makes of a gradient: `StepForm()` if it leaves it as it is.

        The pulls of a chain add up. None, the default: it does something else, so that the solver's tasks
        have no `step_norm`.
        """
        return None

    def check(self, layout: Mapping[str, Segment], optimiser: LocalRule) -> None:
        """Reject a model or an optimiser that the rule cannot work with, before anything runs.

        Args:
            layout: Where each tensor of the model lies.
            optimiser: The last rule of the chain.

        Raises:
            ConfigurationError: The rule cannot work with it.
        """

    def unsent(self, layout: Mapping[str, Segment]) -> Sequence[Segment]:
        """The tensors of the model that stay with the client, and are sent neither way; none by default.

        The rule must leave them as received, so that the update is zero there.

        Args:
            layout: Where each tensor of the model lies.
        """
        return ()

    @property
    def plans_steps(self) -> bool:
        """Whether it reads `run.steps` before `finish`: then no rule of the solver may stop early."""
        return False

    @property
    def measures_first(self) -> bool:
        """Whether `stops` is told the loss of the received model."""
        return True

    @property
    def held_out(self) -> float:
        """The share of a client's samples that it has held out, above 0 and below 1 if it `stops_early`."""
        return 0.0

    @property
    def most_epochs(self) -> int | None:
        """The most epochs of a task, if it `stops_early`; None: as many as tasks would have without it."""
        return None

    @returns("executor.checks:stops")
    def stops(self, epoch: int, before: Tensor, after: Tensor, samples: Tensor) -> Tensor:
        """Which of n tasks stop after an epoch.

        Args:
            epoch: The number of epochs done.
            before: Tensor of shape (n,): the sum of the losses of the held-out samples, before this epoch;
                infinite before the first epoch, unless it `measures_first`.
            after: The same after it.
            samples: Tensor of shape (n,): how many samples each task holds out, at least 1.

        Returns:
            Boolean tensor of shape (n,).
        """
        raise NotImplementedError(f"{type(self).__name__} does not stop early")

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
    @returns("executor.checks:corrected", writes=True)  # to `gradient`, and `run.still`
    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        """The corrected gradient; for an optimiser, the amount to subtract from the parameters.

        Args:
            run: The n tasks that take this step.
            gradient: Tensor of shape (n, Q): the output of the rule before, or the loss's gradient. It may
                be overwritten.

        Returns:
            Tensor of shape (n, Q).
        """

    def after_step(self, run: LocalRun, gradient_at: GradientAt) -> None:
        """Use the batch of the step that was just done once more; does nothing by default.

        A rule that overrides it declares how many `gradients` it takes.

        Args:
            run: The n tasks that took the step; its `present` parameters must not be changed.
            gradient_at: The gradient of each task's loss elsewhere, on the same batch. It is zero for
                parameters that are frozen.
        """

    def finish(self, run: LocalRun) -> None:
        """Write what is remembered, once all tasks have done their steps; does nothing by default.

        Args:
            run: All tasks, also those without a step, with `steps` of each.
        """

    @returns("executor.checks:personal")
    def personal(self, received: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        """The parameters that a client uses itself; a pure function. By default the served model.

        A rule that overrides it gets rows of all its slots, and is applied only to clients that have some. A
        solver may have one such rule.

        Args:
            received: Tensor of shape (n, Q): the model that serves each client.
            state: The rule's slots, (n, Q) or (n, 1) each.

        Returns:
            Tensor of shape (n, Q).
        """
        return received

    @property
    def is_personal(self) -> bool:
        """Whether it overrides `personal`."""
        return type(self).personal is not LocalRule.personal


@dataclass(frozen=True)
class Chain:
    """Rules in their order, the optimiser last; `build_chain` makes one for models of a `layout`."""

    rules: tuple[LocalRule, ...]
    layout: Mapping[str, Segment] = field(default_factory=dict)  # with the statistics of batch norm
    kept: tuple[Segment, ...] = ()  # batch norm's tensors, if each client keeps its own

    @cached_property
    def facts(self) -> SolverFacts:
        """All that the coordinator knows of the rules, and of batch norm."""
        columns = tuple((segment.first, segment.last) for segment in self.kept)
        own = {KEPT: StateSpec("columns", until="run", start="received", columns=columns)} if columns else {}
        personal = {name for rule in self.rules if rule.is_personal for name in rule.state}
        return SolverFacts(
            state={**self.slots, **own},
            personal=frozenset(personal | own.keys()),
            mixes=next((rule.mixes for rule in self.rules if rule.mixes is not None), None),
            receives=frozenset[str]().union(*(rule.receives for rule in self.rules)),
            uploads=sum(rule.uploads for rule in self.rules),
            unsent=sum(segment.last - segment.first for segment in self._unsent),
            statistics=num_statistics(self.layout),
            gradients=1 + sum(rule.gradients for rule in self.rules),
            settings={name: number for rule in self.rules for name, number in rule.task_settings.items()},
            reads_samples=any(rule.reads_samples for rule in self.rules),
            stops=self.stopping is not None,
            epochs=None if self.stopping is None else self.stopping.most_epochs,
            shares={name: number for rule in self.rules for name, number in rule.shares.items()},
            form=_joined([rule.form for rule in self.rules]),
        )

    @cached_property
    def stopping(self) -> LocalRule | None:
        """The rule that decides when a task stops, if there is one."""
        return next((rule for rule in self.rules if rule.stops_early), None)

    @cached_property
    def slots(self) -> Mapping[str, StateSpec]:
        """The slots of the rules."""
        return {name: slot for rule in self.rules for name, slot in rule.state.items()}

    @cached_property
    def sent(self) -> Ints | None:
        """(k,) the positions of the parameters that are sent; None: all of them."""
        if not self._unsent:
            return None
        kept = [np.arange(segment.first, segment.last) for segment in self._unsent]
        size = max(segment.last for segment in self.layout.values()) - num_statistics(self.layout)
        return np.setdiff1d(np.arange(size), np.concatenate(kept))

    @cached_property
    def frozen(self) -> Tensor | None:
        """(Q,) True for parameters that no step moves; None if there are none."""
        parts = _parameters(self.layout).values()
        if all(part.trainable for part in parts):
            return None
        return torch.cat([torch.full((part.last - part.first,), not part.trainable) for part in parts])

    def seen(self, numbers: Tensor) -> Tensor:
        """What rules see of (n, P): the parameters (n, Q), without statistics of batch norm, as a view."""
        return numbers[:, : numbers.shape[1] - self.facts.statistics] if self.facts.statistics else numbers

    @property
    def _unsent(self) -> set[Segment]:
        layout = _parameters(self.layout)
        return {segment for rule in self.rules for segment in rule.unsent(layout)} | set(self.kept)

    @property
    def looks_again(self) -> bool:
        """Whether a rule uses the batch of a step once more."""
        return self.facts.gradients > 1

    @property
    def is_plain_descent(self) -> bool:
        """Whether a step is nothing but `w <- w - learning_rate g`."""
        *others, optimiser = self.rules
        # A rule that leaves steps as they are may still look at them, or remember something at their end.
        idle = not (self.slots or self.looks_again)
        return optimiser.is_plain_descent and idle and not any(rule.changes_steps for rule in others)

    def remembered(self, start: Tensor, earlier: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The state that n tasks begin with.

        Args:
            start: Tensor of shape (n, P): the parameters that each task starts from; gives n and the dtype.
            earlier: The state that earlier tasks left; some of the slots.

        Returns:
            For each slot a tensor of shape (n, P) or (n, 1): a copy of `earlier`, else of its start.
        """
        slots, start = self.slots, self.seen(start)
        assert earlier.keys() <= slots.keys()
        return {
            name: earlier[name].clone()
            if name in earlier
            else start.clone()
            if slot.start == "received"
            else torch.zeros_like(start if slot.shape == "parameters" else start[:, :1])
            for name, slot in slots.items()
        }

    def begin(self, run: LocalRun) -> None:
        """Let every rule put its initial state into `run.state`.

        Args:
            run: The n tasks, before their first step.
        """
        for rule in self.rules:
            rule.begin(run)

    def step(self, run: LocalRun, gradient: Tensor, gradient_at: GradientAt | None = None) -> None:
        """Do one local step: pass the gradient through all rules and subtract the result from the parameters.

        Args:
            run: The n tasks that take this step; `run.present` changes in place.
            gradient: Tensor of shape (n, P): the gradient of each task's loss. It is overwritten.
            gradient_at: The gradient elsewhere, for a chain that `looks_again`.
        """
        if run.frozen is not None:
            gradient.masked_fill_(run.frozen, 0)
        for rule in self.rules:
            if rule.is_optimiser and run.still is not None:  # which may remember it, as by momentum
                gradient.masked_fill_(run.still, 0)
            gradient = rule.correct(run, gradient)
        for mask in (run.frozen, run.still):  # again, since a rule may move them too, as by weight decay
            if mask is not None:
                gradient.masked_fill_(mask, 0)
        run.present.sub_(gradient)
        run.step, run.still = run.step + 1, None
        if gradient_at is not None:
            for rule in self.rules:
                rule.after_step(run, _moving(gradient_at, run.frozen))

    def finish(self, run: LocalRun) -> None:
        """Let every rule write what is remembered.

        Args:
            run: All tasks, after their last step.
        """
        for rule in self.rules:
            rule.finish(run)

    def personal(self, received: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        """The models that clients use themselves.

        Args:
            received: Tensor of shape (n, P): the model that serves each client.
            state: Rows of the slots `facts.personal`.

        Returns:
            Tensor of shape (n, P); what is `frozen` is the served model's, as are statistics of batch norm
            that are not kept.
        """
        kept = self.with_kept(received, state.get(KEPT))
        served = own = self.seen(kept)
        for rule in self.rules:
            if rule.is_personal:
                own = rule.personal(own, state)
        own = own if self.frozen is None else torch.where(self.frozen, served, own)
        return own if own.shape == kept.shape else torch.cat([own, kept[:, own.shape[1] :]], dim=1)

    @cached_property
    def _kept(self) -> Tensor:
        """(k,) the positions of what each client keeps of batch norm."""
        return torch.cat([torch.arange(segment.first, segment.last) for segment in self.kept])

    def with_kept(self, received: Tensor, rows: Tensor | None) -> Tensor:
        """(n, P) models as `received`, with what each client keeps of batch norm, if it has `rows`."""
        return received if rows is None else received.index_copy(1, self._kept, rows)

    def take_kept(self, models: Tensor, received: Tensor) -> Tensor:
        """(n, k) what each client keeps of trained `models` (n, P), which get those `received` there."""
        rows = models.index_select(1, self._kept)
        models.index_copy_(1, self._kept, received.index_select(1, self._kept))
        return rows


def _moving(gradient_at: GradientAt, frozen: Tensor | None) -> GradientAt:
    """`gradient_at`, zero for parameters that are `frozen`."""
    if frozen is None:
        return gradient_at
    return lambda parameters, beside=None: gradient_at(parameters, beside).masked_fill_(frozen, 0)


def _parameters(layout: Mapping[str, Segment]) -> Mapping[str, Segment]:
    """The tensors of a model that rules see."""
    return {name: segment for name, segment in layout.items() if segment.kind == "parameter"}


def _joined(forms: Sequence[StepForm | None]) -> StepForm | None:
    """The form of a chain's steps, of those of its rules; None if one of them has none."""
    known = [form for form in forms if form is not None]
    if len(known) < len(forms):
        return None
    return StepForm(sum(form.pull for form in known), sum(form.momentum for form in known))


def _refuse_half_stopping(rule: LocalRule) -> None:
    """ConfigurationError unless a rule has all that makes it stop early, or nothing of it."""
    overrides = type(rule).stops is not LocalRule.stops
    if rule.stops_early != overrides or (rule.held_out > 0) != overrides:
        raise ConfigurationError(
            f"solver: {type(rule).__name__} has stops_early = {rule.stops_early} and held_out = "
            f"{rule.held_out:g}, and {'overrides' if overrides else 'does not override'} stops; a rule that "
            f"stops early needs all three"
        )


def build_chain(
    rules: Sequence[LocalRule], layout: Mapping[str, Segment] | None = None, kept: Sequence[Segment] = ()
) -> Chain:
    """The chain of these rules.

    Args:
        rules: The rules in their order.
        layout: Where each tensor of the models lies that it will train; None if no rule looks at it.
        kept: The tensors of batch norm of which each client keeps its own.

    Returns:
        The chain.

    Raises:
        ConfigurationError: The last rule is not an optimiser, or another one is, or two keep a slot of the
            same name, or one cannot work with this model or optimiser.
    """
    if [rule.is_optimiser for rule in rules] != [False] * (len(rules) - 1) + [True]:
        names = ", ".join(type(rule).__name__ for rule in rules)
        raise ConfigurationError(
            f"solver [{names}]: the last rule, and no other, must be an optimiser (adam, sgd)"
        )
    slots = [name for rule in rules for name in rule.state]
    if len(slots) > len(set(slots)):
        twice = next(name for name in slots if slots.count(name) > 1)
        raise ConfigurationError(f"solver: two rules keep the slot {twice!r}; each must have its own name")
    for rule in rules:
        rule.check(_parameters(layout or {}), rules[-1])
    chain = Chain(tuple(rules), layout or {}, tuple(kept))
    stopping = [type(rule).__name__ for rule in rules if rule.stops_early]
    if len(stopping) > 1:
        raise ConfigurationError(
            f"solver: {stopping[0]} and {stopping[1]} both decide when a task stops; take one of the two"
        )
    for rule in rules:
        _refuse_half_stopping(rule)
    planning = [type(rule).__name__ for rule in rules if rule.plans_steps]
    if stopping and planning:
        raise ConfigurationError(
            f"solver: {planning[0]}, with these settings, must know how many steps a task takes, which "
            f"{stopping[0]} decides only after each epoch; take one of the two"
        )
    mixing = [type(rule).__name__ for rule in rules if rule.mixes is not None]
    if mixing and kept:
        raise ConfigurationError(
            f"solver: {mixing[0]}, with these settings, has clients use the model that serves them as it is, "
            f"without the batch norm that training.batch_norm = 'kept' keeps; take one of the two"
        )
    personal = [type(rule).__name__ for rule in rules if rule.is_personal]
    if len(personal) > 1:
        raise ConfigurationError(
            f"solver: {personal[0]} and {personal[1]} both make the parameters that a client uses itself; "
            f"take one of the two"
        )
    if chain.facts.receives and chain.facts.unsent > 0:
        raise ConfigurationError(
            f"solver: one rule reads {min(chain.facts.receives)!r}, which is of all parameters of the model, "
            f"and another leaves {chain.facts.unsent:,} of them with the client; take one of the two"
        )
    return chain
