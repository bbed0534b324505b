"""The metrics of training tasks that parts ask for besides the loss, from the losses of single samples.

They read losses only: whether and what is measured changes no bit of the training.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Bools, Floats, Ints
from emulator.messages import TaskMetric
from executor.training.groups import TaskGroup


class Measured:
    """Collects `group.measure` (see `TaskMetric`) while a strategy trains the group.

    `columns`: (n,) by name, NaN for a task whose batches have not been added.
    """

    def __init__(self, group: TaskGroup) -> None:
        self._filled = {name: np.full(len(group), np.nan) for name in sorted(group.measure)}
        self._steps = group.steps

    @property
    def columns(self) -> Mapping[TaskMetric, Floats]:
        return self._filled

    def needs(self, step: int, task: int) -> bool:
        """Whether any metric is computed from the batch that `task` takes in `step`."""
        if not self._filled:
            return False
        first, last = step == 0, bool(self._steps[task] == step + 1)
        return (first and "loss_before" in self._filled) or (last and "loss_squared" in self._filled)

    def add(self, step: int, losses: Tensor, task: int = 0) -> None:
        """Add the batches of one step, with the losses (k, B) of their samples before the step is done.

        They are of the k tasks from `task` on.
        """
        if step == 0 and "loss_before" in self._filled:
            self._filled["loss_before"][task : task + len(losses)] = losses.detach().mean(dim=1).numpy()
        if "loss_squared" in self._filled:
            ends: Bools = self._steps[task : task + len(losses)] == step + 1
            members: Ints = np.flatnonzero(ends)
            if len(members) > 0:
                squares = losses.detach()[torch.from_numpy(members)].double().square()
                self._filled["loss_squared"][task + members] = squares.mean(dim=1).numpy()
