"""What training a wave gives, column by column, as its task groups are trained: all but the updates."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import BATCH_METRICS, STOPPED_METRICS, SolverFacts, TrainTasks, empty_metric
from executor.rules.base import KEPT, Chain
from executor.training.epochs import Stopped
from executor.training.groups import Trained, Wave


class Results:
    """The columns of the updates of n tasks, with Q numbers each.

    Attributes:
        counts: (n,) the samples of each task.
        steps: (n,) the local steps of each.
        statistics: (n, S) of batch norm, as they arrive.
        metrics: Columns by name, NaN where nothing was trained yet.
        state: By slot (n, width) what is remembered.
    """

    def __init__(self, tasks: TrainTasks, wave: Wave, solver: SolverFacts, num_parameters: int) -> None:
        number, most_steps = len(tasks), int(wave.steps.max(initial=0))
        stopped = STOPPED_METRICS if wave.epochs is not None else ()
        names = ("loss", *stopped, *sorted(tasks.measure))
        slots = {name: slot.width(num_parameters) for name, slot in solver.state.items()}
        self.counts, self.steps = tasks.samples.counts(), wave.steps.copy()
        self.statistics = np.zeros((number, solver.statistics), dtype=np.float32)
        self.metrics: dict[str, Floats] = {name: empty_metric(name, number, most_steps) for name in names}
        self.state = {name: np.zeros((number, width), dtype=np.float32) for name, width in slots.items()}

    def take(
        self, members: Ints, trained: Trained, begun: Tensor, chain: Chain, sent: Floats32 | None = None
    ) -> Floats32:
        """Take what `members` (m,) have trained; returns their updates (m, Q), in place of their parameters.

        They have `begun` with models (m, P), which are those that the server has `sent` (m, P), but for what
        clients keep of batch norm.
        """
        self.metrics["loss"][members] = trained.loss
        for metric, column in trained.measured.items():
            into = self.metrics[metric]
            if metric in BATCH_METRICS:
                into = into[:, : column.shape[1]]
            into[members] = column
        for name, rows in trained.state.items():
            self.state[name][members] = rows.numpy()
        arrived = trained.parameters.numpy()
        if sent is not None:
            self.state[KEPT][members] = chain.take_kept(trained.parameters, begun).numpy()
            arrived = sent  # what is kept is not sent: the server's statistics stay as they are
        moved = chain.seen(trained.parameters).numpy()
        self.statistics[members] = arrived[:, moved.shape[1] :]
        moved -= chain.seen(begun).numpy()
        return moved

    def take_epochs(self, members: Ints, stopped: Stopped) -> None:
        """Take the steps of `members` (m,) that have stopped early, and what is measured of that."""
        self.steps[members] = stopped.steps
        for name, column in stopped.metrics.items():
            self.metrics[name][members] = column

    def usable(self, members: Ints) -> bool:
        """Whether the statistics of `members` (m,) are finite, and the losses of those that have samples."""
        loss = self.metrics["loss"][members[self.counts[members] > 0]]
        return bool(np.isfinite(loss).all() and np.isfinite(self.statistics[members]).all())
