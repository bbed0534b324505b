"""The metrics of training tasks that parts ask for besides the loss, from the predictions of single samples.

They read losses and labels only: whether and what is measured changes no bit of the training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from torch import Tensor

from emulator.arrays import Bools, Floats, Ints
from emulator.messages import TaskMetric, empty_metric
from executor.training.groups import TaskGroup


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """(k, B) whether another label than that of `labels` (k, B) has the largest of the logits (k, B, L)."""
    return logits.argmax(dim=2) != labels


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

    def add(self, step: int, losses: Tensor, predicted_wrongly: Callable[[], Tensor], task: int = 0) -> None:
        """Add the batches of one step, of the k tasks from `task` on.

        `losses` (k, B) are those of their samples before the step is done; `predicted_wrongly` returns what
        `wrong` does, and is called only if that is asked for.
        """
        if not self._filled:
            return
        rows = slice(task, task + len(losses))
        if step == 0 and "loss_before" in self._filled:
            self._filled["loss_before"][rows] = losses.detach().mean(dim=1).numpy()
        if "batch_losses" in self._filled:
            self._filled["batch_losses"][rows, step] = losses.detach().mean(dim=1).numpy()
        if "batch_errors" in self._filled:
            self._filled["batch_errors"][rows, step] = predicted_wrongly().numpy().mean(axis=1)
        if "loss_squared" in self._filled:
            ends: Bools = self._steps[rows] == step + 1
            members: Ints = np.flatnonzero(ends)
            if len(members) > 0:
                squares = losses.detach()[members].double().square()
                self._filled["loss_squared"][task + members] = squares.mean(dim=1).numpy()
