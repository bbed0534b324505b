"""Training epoch by epoch, of clients that stop early: after each epoch a local rule decides who goes on.

An epoch is a task group of those that go on, trained as any other; in between, the losses of the held-out
samples are computed. So all strategies train such tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Floats, Ints
from emulator.messages import BATCH_METRICS, empty_metric
from executor.flat import FlatModel
from executor.rules.base import Chain, LocalRun
from executor.training.groups import GoesOn, Strategy, TaskGroup, Trained, Wave
from executor.training.held_out import HeldOutLosses


@dataclass(frozen=True)
class Stopped:
    """A trained group whose tasks stopped early.

    `start` (n, P): the parameters that they received. `steps` (n,): the local steps that they took. `metrics`
    has (n,) a column for each of `STOPPED_METRICS`.
    """

    trained: Trained
    start: Tensor
    steps: Ints
    metrics: Mapping[str, Floats]


class Epochs:
    """Trains groups whose tasks decide after each epoch whether to stop."""

    def __init__(self, model: FlatModel, chain: Chain, strategy: Strategy, losses: HeldOutLosses) -> None:
        self._frozen = model.frozen
        self._chain = chain
        self._strategy = strategy
        self._losses = losses

    def train(self, wave: Wave, members: Ints) -> Stopped:
        """Train `members` (n,), positions in the wave.

        A task that holds nothing out takes one epoch, and predicts nothing. After the last possible epoch
        there is nothing to decide, and nothing is predicted.
        """
        rule = self._chain.stopping
        assert rule is not None
        assert wave.epochs is not None
        most, in_epoch, held_out = wave.epochs[members], wave.in_epoch[members], wave.held_out[members]
        batches = wave.rows(members)
        group = wave.gathered(members, batches[:0], 0 * in_epoch)  # of no step
        progress = _Progress(group, self._chain, int(wave.steps.max(initial=0)))
        before = torch.full((len(members),), torch.inf, dtype=torch.float64)
        forward = np.zeros(len(members), dtype=np.int64)
        decides = np.flatnonzero((most > 1) & (in_epoch > 0))
        if rule.measures_first:
            before[decides] = self._held_out_losses(wave, members[decides], group.start[decides])
            forward[decides] += held_out[decides]
        running: Ints = np.flatnonzero((most > 0) & (in_epoch > 0))
        epoch = 0
        while len(running) > 0:
            epoch += 1
            running = running[np.argsort(-in_epoch[running], kind="stable")]
            done = (epoch - 1) * in_epoch[running]
            at = np.minimum(done + np.arange(in_epoch[running].max())[:, None], len(batches) - 1)
            of_epoch = wave.gathered(members[running], batches[at, running], in_epoch[running])
            of_epoch = progress.going_on(of_epoch, running)
            progress.add(of_epoch, running, self._strategy.train(of_epoch))
            decides = running[most[running] > epoch]
            forward[decides] += held_out[decides]
            after = self._held_out_losses(wave, members[decides], progress.present[decides])
            stops = rule.stops(epoch, before[decides], after, torch.from_numpy(held_out[decides]))
            before[decides] = after
            running = decides[~stops.numpy()]
        steps = progress.epochs * in_epoch
        metrics = {
            "epochs": progress.epochs,
            "held_out": held_out,
            "trained_samples": wave.samples_of(members, steps),
            "forward_samples": forward,
        }
        columns = {name: column.astype(np.float64) for name, column in metrics.items()}
        return Stopped(progress.finished(self._frozen, steps), group.start, steps, columns)

    def _held_out_losses(self, wave: Wave, tasks: Ints, parameters: Tensor) -> Tensor:
        """(n,) the sum of the losses of `parameters` (n, P) over the held-out samples of n tasks."""
        rows = [wave.held_out_rows(task) for task in tasks.tolist()]
        counts = np.array([len(of_task) for of_task in rows], dtype=np.int64)
        return self._losses.sums(parameters, np.concatenate([*rows, counts[:0]]), counts)


class _Progress:
    """What the n tasks of `group` have after some `epochs` (n,): `present` (n, P), state and metrics."""

    def __init__(self, group: TaskGroup, chain: Chain, most_steps: int) -> None:
        self.present = group.start.clone()
        self._group = group
        self._chain = chain
        self._state = chain.remembered(group.start, group.state)
        self.epochs = np.zeros(len(group), dtype=np.int64)
        self._losses = np.zeros(len(group))
        self._measured = {name: empty_metric(name, len(group), most_steps) for name in sorted(group.measure)}

    def going_on(self, group: TaskGroup, tasks: Ints) -> TaskGroup:
        """The `group` of an epoch of `tasks` (k,), positions among the n: what they have is put into it."""
        goes_on = None
        if self.epochs[tasks[0]] > 0:
            state = {name: rows[tasks] for name, rows in self._state.items()}
            goes_on = GoesOn(self.present[tasks], state)
        return replace(group, start=self._group.start[tasks], goes_on=goes_on, ends=False)

    def add(self, group: TaskGroup, tasks: Ints, trained: Trained) -> None:
        """Take note of an epoch of `tasks` (k,), which `group` is."""
        self.present[tasks] = trained.parameters
        self._group.start[tasks] = group.start  # which rules may have changed as they began
        for name, rows in trained.state.items():
            if name not in self._state:
                self._state[name] = rows.new_zeros(len(self.present), *rows.shape[1:])
            self._state[name][tasks] = rows
        self._losses[tasks] += trained.loss * group.steps
        takes = np.arange(len(group.active)) < group.steps[:, None]  # (k, steps)
        task, step = takes.nonzero()
        done = self.epochs[tasks] * group.steps
        for name, column in trained.measured.items():
            if name in BATCH_METRICS:
                self._measured[name][tasks[task], done[task] + step] = column[takes]
            elif name != "loss_before" or not done.any():
                self._measured[name][tasks] = column
        self.epochs[tasks] += 1

    def finished(self, frozen: Tensor | None, steps: Ints) -> Trained:
        """What came out, after all `steps` (n,) of each task."""
        group = self._group
        of_steps = torch.from_numpy(steps).to(group.start.dtype)[:, None]
        run = LocalRun(
            group.start, self.present, group.settings, self._state, frozen, group.broadcast, of_steps
        )
        self._chain.finish(run)
        state = {name: self._state[name] for name in self._chain.facts.state}
        with np.errstate(invalid="ignore"):
            loss = self._losses / steps
        return Trained(self.present, loss, state, self._measured)
