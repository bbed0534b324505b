"""Task groups: the tasks of a wave that train side by side, with their batches gathered.

All strategies train groups, each in its own way. The borders of groups depend on the wave and the chunk,
never on ranks or memory; a group that does not fit into memory may be trained in halves (`out_of_memory.py`).
Where clients stop early, a group is trained epoch by epoch (`epochs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.counts import LastBatch, epoch_steps, samples_of_steps
from emulator.messages import TaskMetric, TrainTasks
from emulator.ports import SampleReader
from emulator.seeding import RandomStreams
from executor.flat import inputs
from executor.objectives.base import Objective
from executor.objectives.labels import LABELS
from executor.rules.base import KEPT, Chain, LocalRun
from executor.settings import Batches
from executor.training.batches import batch_sizes, step_counts, task_batches
from executor.training.chance import NO_CHANCES, Chances
from executor.training.held_out import HeldOut


@dataclass(frozen=True)
class BatchMean:
    """The mean over the samples of batches, by the `shares` (r, B) that samples have in them; None: equal."""

    shares: Tensor | None = None

    def __call__(self, of_samples: Tensor) -> Tensor:
        """(r,) the means of numbers of r batches (r, B)."""
        if self.shares is None:
            return of_samples.mean(dim=1)
        return (of_samples * self.shares).sum(dim=1)

    def of(self, rows: Ints) -> BatchMean:
        """The mean over the samples of some of the batches, by their numbers (k,)."""
        return self if self.shares is None else BatchMean(self.shares[rows])


@dataclass(frozen=True)
class Interim:
    """What n tasks have between two epochs: parameters (n, P), and all state of the rules, by name."""

    present: Tensor
    state: Mapping[str, Tensor]


@dataclass(frozen=True)
class TaskGroup:
    """n tasks of one batch size B in order of descending steps, so that the active ones are always a prefix.

    `tasks` (n,): their positions in the wave. `start` (n, P): initial parameters. `settings`: columns (n, 1).
    `state`: the rules' state that earlier tasks left, if any, (n, P) or (n, 1) each. `broadcast`: what the
    aggregator sent along with the tasks' models, (n, P) each.
    `steps` (n,). `active` (max steps,): how many tasks take each step. `features` (sum(active) * B,
    *sample_shape) and `targets` (sum(active) * B,
    *target_shape): the batches, step by step and task by task within a step.
    `measure`: as in `TrainTasks`. `sizes` (sum(active),): how many samples of each batch count; None: all of
    them. `interim`: what the tasks have after earlier epochs; None: these steps are their first.
    `ends`: whether these are their last steps. `chances`: what models draw from.
    """

    tasks: Ints
    start: Tensor
    settings: Mapping[str, Tensor]
    state: Mapping[str, Tensor]
    steps: Ints
    active: Ints
    batch_size: int
    features: Tensor
    targets: Tensor
    measure: frozenset[TaskMetric] = frozenset()
    broadcast: Mapping[str, Tensor] = field(default_factory=dict)
    sizes: Ints | None = None
    interim: Interim | None = None
    ends: bool = True
    chances: Chances = NO_CHANCES

    def __len__(self) -> int:
        return len(self.tasks)

    def local_run(
        self, chain: Chain, present: Tensor, state: Mapping[str, Tensor], steps: Ints | None = None
    ) -> LocalRun:
        """All tasks as rules see them, with the models (n, P) that they have at `present`.

        `steps` (n,): those that they take in all; None: the group's.
        """
        taken = torch.from_numpy(self.steps if steps is None else steps).to(self.start.dtype)[:, None]
        received, seen = chain.seen(self.start), chain.seen(present)
        return LocalRun(received, seen, self.settings, dict(state), chain.frozen, self.broadcast, taken)

    def some(self, tasks: Ints | slice, of: Callable[[Tensor], Tensor]) -> TaskGroup:
        """Some of the tasks, without their batches; `of` takes their rows of a tensor."""
        settings, state, broadcast = (
            {name: of(column) for name, column in columns.items()}
            for columns in (self.settings, self.state, self.broadcast)
        )
        some = replace(self, tasks=self.tasks[tasks], start=of(self.start), steps=self.steps[tasks])
        return replace(some, settings=settings, state=state, broadcast=broadcast)

    @property
    def present(self) -> Tensor:
        """(n, P) the parameters with which these steps begin; they must not be changed."""
        return self.start if self.interim is None else self.interim.present

    def remembered(self, chain: Chain) -> dict[str, Tensor]:
        """The state with which these steps begin, which may be changed; `LocalRule.begin` may add to it."""
        if self.interim is None:
            return chain.remembered(self.start, self.state)
        return {name: rows.clone() for name, rows in self.interim.state.items()}

    def begun(self, chain: Chain, trained: Tensor) -> tuple[LocalRun, dict[str, Tensor]]:
        """The run of all tasks, before the first of these steps, and its state, all rows of it.

        `trained` (n, P): the parameters that the steps change, with the content of `present`.
        """
        run = self.local_run(chain, trained, self.remembered(chain))
        if self.interim is None:
            chain.begin(run)
        return run, dict(run.state)

    def finished(self, chain: Chain, trained: Tensor, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """The state after these steps: if they are the last ones, what the pairs' next tasks start with."""
        if not self.ends:
            return state
        chain.finish(self.local_run(chain, trained, state))
        return {name: state[name] for name in chain.slots}

    def shares(self) -> Tensor | None:
        """(sum(active), B) the share of each sample in the mean of its batch; None if all have the same."""
        if self.sizes is None:
            return None
        sizes = torch.from_numpy(self.sizes)[:, None]
        return (torch.arange(self.batch_size) < sizes).to(self.start.dtype) / sizes

    def shares_by_step(self) -> Sequence[Tensor | None]:
        """For each step, `shares` of the batches of the tasks that take it: (active, B), or None."""
        shares = self.shares()
        if shares is None:
            return [None] * len(self.active)
        steps: Sequence[Tensor] = torch.split_with_sizes(shares, self.active.tolist())
        return steps

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """For each step, the batches of the tasks that take it: features and targets, (active, B, *shape)."""
        parts = (self._by_step(rows, rows.shape[1:]) for rows in (self.features, self.targets))
        return zip(*parts, strict=True)

    def vectors(self) -> Sequence[Tensor]:
        """For each step, the features alone, flattened: (active, B, features)."""
        return self._by_step(self.features, (prod(self.features.shape[1:]),))

    def _by_step(self, rows: Tensor, shape: tuple[int, ...] = ()) -> Sequence[Tensor]:
        """For each step, a view (active, B, *shape) of `rows`."""
        active = self.active.tolist()
        whole = rows.view(sum(active), self.batch_size, *shape)
        steps: Sequence[Tensor] = torch.split_with_sizes(whole, active)
        return steps


@dataclass(frozen=True)
class Trained:
    """The result of training a group: the `parameters` (n, P) and mean `loss` (n,) of its tasks.

    The mean is over a task's steps, NaN for a task without steps. `state`: the rules' state that the pairs'
    next tasks start with, (n, P) or (n, 1) each. `measured`: a column for each of `TaskGroup.measure`.
    """

    parameters: Tensor
    loss: Floats
    state: Mapping[str, Tensor]
    measured: Mapping[TaskMetric, Floats] = field(default_factory=dict)


class Strategy(Protocol):
    """A way to train a group. All strategies give the same numbers up to rounding."""

    def train(self, group: TaskGroup) -> Trained: ...


class Wave:
    """n tasks to be trained at the same virtual time; task i starts from row `start[i]` of `models` (M, P).

    `batches` and `last` state how their batches are drawn (`task_batches`), without what is `held_out`. The
    `chain` knows what clients keep of batch norm, and which arrays rules read beside the models; None:
    nothing. `draws`: whether models draw as they train. Tensors of its groups are of type `dtype`, except the
    targets, which are those of the `objective`.
    """

    def __init__(
        self,
        tasks: TrainTasks,
        models: Floats32,
        start: Ints,
        reader: SampleReader,
        streams: RandomStreams,
        dtype: torch.dtype = torch.float32,
        batches: Batches = "reshuffled",
        chain: Chain | None = None,
        last: LastBatch = "filled",
        held_out: HeldOut | None = None,
        draws: bool = False,
        objective: Objective = LABELS,
    ) -> None:
        self._chain, self._draws, self._objective = chain, draws, objective
        self._held_out: Sequence[Bools] | None = None
        # (n,) the samples that each task trains on
        self._samples = tasks.samples.counts()
        if held_out is not None:
            self._held_out = held_out.split(tasks.samples)
            self._samples = self._samples - self.held_out
        self._tasks = tasks
        self._last: LastBatch = last
        # (n,) the most epochs of each task; None if none stops early
        self.epochs = self._epochs(tasks)
        # (n,) local steps, or the most, if the solver may stop earlier
        self.steps = step_counts(tasks) if self.epochs is None else self.epochs * self.in_epoch
        self._models = models
        self._start = start
        self._reader = reader
        self._streams = streams
        self._dtype = dtype
        self._batches = batches

    def cut(self, chunk: int) -> list[Ints]:
        """The tasks of each group, as positions in the wave; at most `chunk` per group.

        Tasks are sorted by batch size and then by descending steps, and cut into parts of nearly equal size:
        all tasks of a group have the same batch size and similar numbers of steps.
        """
        sizes = self._tasks.settings["batch_size"].astype(np.int64)
        order = np.lexsort((-self.steps, sizes))
        alike = np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1)
        parts = [np.array_split(tasks, -(-len(tasks) // chunk)) for tasks in alike if len(tasks) > 0]
        return [members for part in parts for members in part]

    def rows(self, members: Ints) -> Ints:
        """(max steps, n, batch_size) the batches of `members` (n,) in all their steps, as `task_batches`."""
        steps, how = self.steps[members], (self._streams, self._batches, self._last, self._held_out)
        return task_batches(self._tasks, members, steps, *how)

    def group(self, members: Ints) -> TaskGroup:
        """The task group of `members`, positions in the wave: a group that `cut` returned, or part of one."""
        return self.with_batches(self.without_steps(members), self.rows(members), self.steps[members])

    def with_batches(self, group: TaskGroup, rows: Ints, steps: Ints) -> TaskGroup:
        """A group `without_steps` of n tasks as one that takes `steps` (n,), descending.

        `rows` (max steps, n, batch_size): its batches, as those of `rows`.
        """
        takes: Bools = np.arange(steps[0])[:, None] < steps  # (steps, n)
        wanted = rows.ravel() if takes.all() else rows[takes].ravel()
        sizes = None
        if self._last == "short":
            sizes = batch_sizes(steps, self._samples[group.tasks], group.batch_size)[takes]
        return replace(
            group,
            steps=steps,
            active=takes.sum(axis=1),
            features=inputs(self._reader, wanted, self._dtype),
            targets=self._objective.targets(self._reader, wanted),
            sizes=sizes,
        )

    def sent(self, members: Ints) -> Floats32:
        """(n, P) the models that the server has sent to `members` (n,)."""
        return self._models[self._start[members]]

    def without_steps(self, members: Ints) -> TaskGroup:
        """The task group of `members` (n,), of one batch size, before it has any steps."""
        tasks = self._tasks
        start = torch.from_numpy(self.sent(members)).to(self._dtype)
        state = {name: self._rows(column, members) for name, column in tasks.state.items()}
        kept, receives = state.pop(KEPT, None), list[str]()
        if self._chain is not None:
            start, receives = self._chain.with_kept(start, kept), sorted(self._chain.facts.receives)
        of_task = (column[members] for column in (tasks.dispatch, tasks.client, tasks.model))
        keys = self._streams.keys("chance", *of_task) if self._draws else None
        return TaskGroup(
            tasks=members,
            start=start,
            settings={name: self._setting(name, members)[:, None] for name in tasks.settings},
            state=state,
            steps=0 * members,
            active=members[:0],
            batch_size=int(tasks.settings["batch_size"][members[0]]),
            features=torch.empty(0, *self._reader.sample_shape, dtype=self._dtype),
            targets=torch.empty(0, dtype=torch.int64),
            measure=tasks.measure,
            broadcast={name: self._received(name, members, start) for name in receives},
            chances=Chances(keys),
        )

    @cached_property
    def held_out(self) -> Ints:
        """(n,) the number of samples that each task holds out."""
        return np.array([int(held.sum()) for held in self._held_out or []], dtype=np.int64)

    def samples_of(self, members: Ints, steps: Ints) -> Floats:
        """(n,) the samples that `members` (n,) train on in so many `steps` (n,), once for each use."""
        batch_size = self._tasks.settings["batch_size"][members]
        return samples_of_steps(steps, self._samples[members], batch_size, self._last)

    def held_out_rows(self, task: int) -> Ints:
        """The table rows of the samples that a task holds out."""
        assert self._held_out is not None
        return self._tasks.samples.rows(task)[self._held_out[task]]

    @property
    def in_epoch(self) -> Ints:
        """(n,) the steps of an epoch of each task."""
        return epoch_steps(self._samples, self._tasks.settings["batch_size"])

    def _epochs(self, tasks: TrainTasks) -> Ints | None:
        """(n,) the most epochs of each task: one if it holds nothing out; None if none stops early."""
        if self._held_out is None or "local_epochs" not in tasks.settings:
            return None
        most = tasks.settings["local_epochs"]
        return np.where(self.held_out > 0, most, np.minimum(most, 1)).astype(np.int64)

    def _setting(self, name: str, members: Ints) -> Tensor:
        """(n,) a setting of the tasks; the numbers of rules, as `adam.beta2`, stay in double precision."""
        column = self._tasks.settings[name]
        return torch.from_numpy(column[members]) if "." in name else self._rows(column, members)

    def _received(self, name: str, members: Ints, start: Tensor) -> Tensor:
        """(n, Q) what was sent along with the models of the tasks; zeros if nothing was."""
        if name not in self._tasks.broadcast:
            return torch.zeros_like(start if self._chain is None else self._chain.seen(start))
        return self._rows(self._tasks.broadcast[name], self._start[members])

    def _rows(self, column: Floats | Floats32, members: Ints) -> Tensor:
        return torch.from_numpy(column[members]).to(self._dtype)
