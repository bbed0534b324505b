"""From the tasks of a wave to cohorts: tasks that train side by side, with their batches gathered.

All strategies train cohorts; how they do it is theirs. What a cohort holds depends on the tasks and on the
configured chunk, never on workers or memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import TrainTasks
from emulator.ports import SampleReader
from emulator.seeding import RandomStreams
from executor.batches import step_counts, task_batches


@dataclass(frozen=True)
class Cohort:
    """n tasks of one batch size B, those with most steps first, so that the active ones are always a prefix.

    `tasks` (n,): their positions in the wave. `start` (n, P). `settings`: columns (n, 1). `state`: what the
    rules remember of earlier tasks, (n, P) or (n, 1) each, as far as there is any. `steps` (n,).
    `active` (max steps,): how many tasks take each step. `features` (sum(active) * B, *sample_shape) and
    `labels` (sum(active) * B,): the batches, step by step and task by task within a step.
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

    def __len__(self) -> int:
        return len(self.tasks)

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Of each step, the batches of the tasks that take it: (active, B, *sample_shape), (active, B)."""
        sizes = [int(active) * self.batch_size for active in self.active]
        features = torch.split_with_sizes(self.features, sizes)
        labels = torch.split_with_sizes(self.labels, sizes)
        for x, y in zip(features, labels, strict=True):
            yield x.view(-1, self.batch_size, *x.shape[1:]), y.view(-1, self.batch_size)


@dataclass(frozen=True)
class Trained:
    """What became of a cohort: `parameters` (n, P); `loss` (n,), the mean over the steps, NaN without any.

    `state`: what the rules remember from now on, (n, P) or (n, 1) each.
    """

    parameters: Tensor
    loss: Floats
    state: Mapping[str, Tensor]


class Strategy(Protocol):
    """A way to train a cohort. All ways give the same numbers, but for rounding."""

    def train(self, cohort: Cohort) -> Trained: ...


def cohorts(
    tasks: TrainTasks,
    starts: Floats32,
    reader: SampleReader,
    streams: RandomStreams,
    chunk: int,
    dtype: torch.dtype = torch.float32,
) -> Iterator[Cohort]:
    """Cohorts of at most `chunk` tasks that cover the wave; `starts` (n, P) follows the tasks.

    Tasks are sorted by batch size and, within one, by falling steps, then cut: of one cohort all have the
    same batch size and nearly the same number of steps.
    """
    steps = step_counts(tasks)
    sizes = tasks.settings["batch_size"].astype(np.int64)
    order = np.lexsort((-steps, sizes))
    for group in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
        for first in range(0, len(group), chunk):
            members = group[first : first + chunk]
            longest = int(steps[members[0]])
            takes: Bools = np.arange(longest)[:, None] < steps[members]  # (steps, n)
            rows = np.zeros((longest, len(members), int(sizes[members[0]])), dtype=np.int64)
            for column, task in enumerate(members):
                own = int(steps[task])
                rows[:own, column] = task_batches(tasks, int(task), own, streams)
            wanted = rows[takes].ravel()
            yield Cohort(
                tasks=members,
                start=torch.from_numpy(starts[members]).to(dtype),
                settings={
                    name: torch.from_numpy(column[members]).to(dtype)[:, None]
                    for name, column in tasks.settings.items()
                },
                state={
                    name: torch.from_numpy(column[members]).to(dtype) for name, column in tasks.state.items()
                },
                steps=steps[members],
                active=takes.sum(axis=1),
                batch_size=rows.shape[2],
                features=torch.from_numpy(reader.features(wanted)).to(dtype),
                labels=torch.from_numpy(reader.labels(wanted)),
            )
