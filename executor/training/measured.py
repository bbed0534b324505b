"""The metrics of training tasks that parts ask for besides the loss, from the predictions of single samples.

They read losses and predictions only: whether and what is measured changes no bit of the training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from torch import Tensor

from emulator.arrays import Floats, Ints
from emulator.messages import TaskMetric, empty_metric
from executor.training.groups import BatchMean, TaskGroup


class Measured:
    """Collects `group.measure` (see `TaskMetric`) while a strategy trains the group.

    `columns`: by name, NaN where batches have not been added.
    """

    def __init__(self, group: TaskGroup) -> None:
        steps = len(group.active)
        self._filled = {name: empty_metric(name, len(group), steps) for name in sorted(group.measure)}
        self._of_batches = {"batch_losses", "batch_errors"} & self._filled.keys()
        self._steps = group.steps

    @property
    def columns(self) -> Mapping[TaskMetric, Floats]:
        return self._filled

    def needs(self, step: int, task: int) -> bool:
        """Whether any metric is computed from the batch that `task` takes in `step`."""
        if self._of_batches:
            return True
        if not self._filled:
            return False
        first, last = step == 0, bool(self._steps[task] == step + 1)
        return (first and "loss_before" in self._filled) or (last and "loss_squared" in self._filled)

    def add(
        self,
        task: Ints,
        step: Ints,
        losses: Tensor,
        errors: Callable[[], Tensor],
        mean: BatchMean,
    ) -> None:
        """Add r batches: of `task` (r,) in its `step` (r,).

        `losses` (r, B) are those of their samples before the step is done; `errors` returns their errors,
        (r B,) or (r, B), as `Objective.errors` has them, and is called only if these are asked for. `mean` is
        that over the samples of a batch.
        """
        of_batches = mean(losses).numpy() if {"batch_losses", "loss_before"} & self._filled.keys() else None
        if "loss_before" in self._filled and of_batches is not None:
            self._filled["loss_before"][task[step == 0]] = of_batches[step == 0]
        if "batch_losses" in self._filled and of_batches is not None:
            self._filled["batch_losses"][task, step] = of_batches
        if "batch_errors" in self._filled:
            self._filled["batch_errors"][task, step] = mean(errors().float().view(losses.shape)).numpy()
        if "loss_squared" in self._filled:
            ends: Ints = np.flatnonzero(self._steps[task] == step + 1)
            if len(ends) > 0:
                squares = mean.of(ends)(losses[ends].double().square())
                self._filled["loss_squared"][task[ends]] = squares.numpy()
