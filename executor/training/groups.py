"""Task groups: the tasks of a wave that train side by side, with their batches gathered.

All strategies train groups, each in its own way. The borders of groups depend on the wave and the chunk,
never on ranks or memory; a group that does not fit into memory may be trained in halves (`out_of_memory.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import TaskMetric, TrainTasks
from emulator.ports import SampleReader
from emulator.seeding import RandomStreams
from executor.rules.base import LocalRun
from executor.settings import Batches
from executor.training.batches import step_counts, task_batches


@dataclass(frozen=True)
class TaskGroup:
    """n tasks of one batch size B in order of descending steps, so that the active ones are always a prefix.

    `tasks` (n,): their positions in the wave. `start` (n, P): initial parameters. `settings`: columns (n, 1).
    `state`: the rules' state that earlier tasks left, if any, (n, P) or (n, 1) each. `broadcast`: what the
    aggregator sent along with the tasks' models, (n, P) each.
    `steps` (n,). `active` (max steps,): how many tasks take each step. `features` (sum(active) * B,
    *sample_shape) and `labels` (sum(active) * B,): the batches, step by step and task by task within a step.
    `measure`: as in `TrainTasks`.
    """

    tasks: Ints
    start: Tensor
    settings: Mapping[str, Tensor]
    state: Mapping[str, Tensor]
    steps: Ints
    active: Ints
    batch_size: int
    features: Tensor
    labels: Tensor
    measure: frozenset[TaskMetric] = frozenset()
    broadcast: Mapping[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tasks)

    def local_run(self, present: Tensor, state: Mapping[str, Tensor], frozen: Tensor | None) -> LocalRun:
        """All tasks as rules see them, with the parameters (n, P) that they have at `present`."""
        steps = torch.from_numpy(self.steps).to(self.start.dtype)[:, None]
        return LocalRun(self.start, present, self.settings, dict(state), frozen, self.broadcast, steps)

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """For each step, the batches of the tasks that take it: (active, B, *sample_shape), (active, B)."""
        return zip(
            self._by_step(self.features, self.features.shape[1:]), self._by_step(self.labels), strict=True
        )

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

    `batches` states how their batches are drawn (`task_batches`). `receives` names the arrays that rules read
    beside the models. Tensors of its groups are of type `dtype`, except the labels.
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
        receives: Iterable[str] = (),
    ) -> None:
        self.steps = step_counts(tasks)  # (n,)
        self._tasks = tasks
        self._models = models
        self._start = start
        self._reader = reader
        self._streams = streams
        self._dtype = dtype
        self._batches = batches
        self._receives = sorted(receives)

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

    def group(self, members: Ints) -> TaskGroup:
        """The task group of `members`, positions in the wave: a group that `cut` returned, or part of one."""
        tasks, steps = self._tasks, self.steps[members]
        takes: Bools = np.arange(steps[0])[:, None] < steps  # (steps, n)
        rows = task_batches(tasks, members, steps, self._streams, self._batches)
        wanted = rows.ravel() if takes.all() else rows[takes].ravel()
        return TaskGroup(
            tasks=members,
            start=torch.from_numpy(self._models[self._start[members]]).to(self._dtype),
            settings={name: self._setting(name, members)[:, None] for name in tasks.settings},
            state={name: self._rows(column, members) for name, column in tasks.state.items()},
            steps=steps,
            active=takes.sum(axis=1),
            batch_size=int(tasks.settings["batch_size"][members[0]]),
            features=torch.from_numpy(self._reader.features(wanted)).to(self._dtype),
            labels=torch.from_numpy(self._reader.labels(wanted)),
            measure=tasks.measure,
            broadcast={name: self._received(name, members) for name in self._receives},
        )

    def _setting(self, name: str, members: Ints) -> Tensor:
        """(n,) a setting of the tasks; the numbers of rules, as `adam.beta2`, stay in double precision."""
        column = self._tasks.settings[name]
        return torch.from_numpy(column[members]) if "." in name else self._rows(column, members)

    def _received(self, name: str, members: Ints) -> Tensor:
        """(n, P) what was sent along with the models of the tasks; zeros if nothing was."""
        if name not in self._tasks.broadcast:
            return torch.zeros(len(members), self._models.shape[1], dtype=self._dtype)
        return self._rows(self._tasks.broadcast[name], self._start[members])

    def _rows(self, column: Floats | Floats32, members: Ints) -> Tensor:
        return torch.from_numpy(column[members]).to(self._dtype)
