"""Training epoch by epoch, of clients that stop early: after each epoch a local rule decides which stop.

An epoch is a task group of those that have not stopped, trained as any other; in between, the losses of the
held-out samples are computed. So all strategies train such tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Floats, Ints
from emulator.messages import BATCH_METRICS, empty_metric
from executor.rules.base import Chain
from executor.training.groups import Interim, Strategy, TaskGroup, Trained, Wave
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

    def __init__(self, chain: Chain, strategy: Strategy, losses: HeldOutLosses) -> None:
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
        group = wave.without_steps(members)
        progress = _Progress(group, self._chain, int(wave.steps.max(initial=0)))
        before = torch.full((len(members),), torch.inf, dtype=torch.float64)
        forward = np.zeros(len(members), dtype=np.int64)
        decides = np.flatnonzero((most > 1) & (in_epoch > 0))
        held_out_rows = [wave.held_out_rows(task) for task in members.tolist()]
        if rule.measures_first:
            before[decides] = self._losses.sums(group.start, decides, _of(held_out_rows, decides))
            forward[decides] += held_out[decides]
        running: Ints = np.flatnonzero((most > 0) & (in_epoch > 0))
        epoch = 0
        while len(running) > 0:
            epoch += 1
            running = running[np.argsort(-in_epoch[running], kind="stable")]
            done = (epoch - 1) * in_epoch[running]
            at = np.minimum(done + np.arange(in_epoch[running].max())[:, None], len(batches) - 1)
            so_far = progress.of(running, epoch)
            of_epoch = wave.with_batches(so_far, batches[at, running], in_epoch[running])
            progress.add(of_epoch, running, self._strategy.train(of_epoch))
            decides = running[most[running] > epoch]
            forward[decides] += held_out[decides]
            after = self._losses.sums(progress.present, decides, _of(held_out_rows, decides))
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
        return Stopped(progress.finished(steps), group.start, steps, columns)


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

    def of(self, tasks: Ints, epoch: int) -> TaskGroup:
        """The group of `tasks` (k,), positions among the n, with what they have before that epoch of them."""
        group, interim = self._group, None
        if self.epochs[tasks[0]] > 0:
            state = {name: _rows(column, tasks) for name, column in self._state.items()}
            interim = Interim(_rows(self.present, tasks), state)
        some = group.some(tasks, lambda rows: _rows(rows, tasks))
        return replace(some, interim=interim, ends=False, chances=group.chances.of(tasks, epoch))

    def add(self, group: TaskGroup, tasks: Ints, trained: Trained) -> None:
        """Take note of an epoch of `tasks` (k,), which `group` is."""
        at = torch.from_numpy(tasks)
        self.present.index_copy_(0, at, trained.parameters)
        if group.interim is None:
            self._group.start.index_copy_(0, at, group.start)  # which rules may have changed as they began
        for name, rows in trained.state.items():
            if name not in self._state:
                self._state[name] = rows.new_zeros(len(self.present), *rows.shape[1:])
            self._state[name].index_copy_(0, at, rows)
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

    def finished(self, steps: Ints) -> Trained:
        """What came out, after all `steps` (n,) of each task."""
        self._chain.finish(self._group.local_run(self._chain, self.present, self._state, steps))
        state = {name: self._state[name] for name in self._chain.slots}
        with np.errstate(invalid="ignore"):
            loss = self._losses / steps
        return Trained(self.present, loss, state, self._measured)


def _of(arrays: Sequence[Ints], tasks: Ints) -> list[Ints]:
    return [arrays[task] for task in tasks.tolist()]


def _rows(of: Tensor, tasks: Ints) -> Tensor:
    """(k, ...) the rows of some tasks (k,), as a copy."""
    # NOTE: copies whole rows; indexing by an array takes each number by itself, several times as long.
    return of.index_select(0, torch.from_numpy(tasks))
