"""Workload stopping: W1 by a solver that stops early, against as many steps of each client without it.

CPU time of one process on one thread. A solver that stops holds samples out, predicts them before the first
epoch and after each, and trains epoch by epoch, ever fewer clients side by side. The labels follow from the
features, so that there is something to learn; 70 of 100 samples, in at most 5 epochs, have about as many
steps as W1.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Measured, Say, interleaved
from benchmarks.training import DENSE, SEED, Contest, Network, Samples, Schedule, wave
from emulator.arrays import Floats
from emulator.messages import TrainTasks
from executor.executor import LocalExecutor
from executor.rules.early_stopping import EarlyStopping
from executor.rules.settings import EarlyStoppingSettings
from executor.rules.sgd import Sgd

EPOCHS = 5
"""The most of a task."""

GAMMAS = {"w1-early-stopping": 0.01, "w1-stopping-at-once": 0.03}
"""By figure: with 0.01 half of the clients take all epochs, and a quarter one; with 0.03 most take one."""

MOST = {"w1-early-stopping": 2.0}
"""The most CPU time, in times that of the steps alone."""


class Learnable(Samples):
    """Samples whose label is the largest of as many random linear functions of the features."""

    def __init__(self, network: Network, num_samples: int) -> None:
        super().__init__(network, num_samples)
        flat = self._features.reshape(num_samples, -1)
        shape = (flat.shape[1], network.num_labels)
        self._labels = (flat @ np.random.default_rng(SEED).standard_normal(shape)).argmax(axis=1)


def measure_stopping(repeats: int, say: Say) -> list[Figure]:
    return stopping_figures(repeats, say, waves=8)


def stopping_figures(
    repeats: int, say: Say, clients: int = 50, schedule: Schedule | None = None, waves: int = 1
) -> list[Figure]:
    """Milliseconds of CPU time of a wave that stops early, against one of the same steps that does not."""
    contest = Contest(DENSE, clients, schedule or Schedule())
    contest.reader = Learnable(DENSE, clients * contest.schedule.samples)
    return [_figure(contest, name, repeats, say, clients, waves) for name in GAMMAS]


def _figure(contest: Contest, name: str, repeats: int, say: Say, clients: int, waves: int) -> Figure:
    say(name)
    rule = EarlyStopping(EarlyStoppingSettings(gamma=GAMMAS[name]))
    stopping, plain = contest.by_rules(1, [rule, Sgd(Sgd.Settings())]), contest.executor(1)
    models, row = contest.start[None, :], np.zeros(clients, dtype=np.int64)
    ready = [wave(clients, contest.schedule, round_) for round_ in range(waves)]
    ours = [_with(tasks, "local_epochs", np.full(clients, float(EPOCHS))) for tasks in ready]
    steps = [stopping.train(tasks, models, row).num_steps for tasks in ours]
    same = [
        _with(tasks, "local_steps", taken.astype(float)) for tasks, taken in zip(ready, steps, strict=True)
    ]
    contenders = {"stops": _training(stopping, contest, ours), "plain": _training(plain, contest, same)}
    samples = interleaved(contenders, repeats)
    return figure(
        name,
        f"one wave of {clients} clients that stop after {np.mean(steps):.1f} steps on average, "
        f"of at most {EPOCHS} epochs",
        1000 * samples["stops"],
        "ms",
        better="lower",
        against=Reference(1000 * samples["plain"], "as many steps of each client by plain SGD"),
        target=Target("ratio", 1 / MOST[name]) if name in MOST else None,
    )


def _with(tasks: TrainTasks, name: str, column: Floats) -> TrainTasks:
    """The tasks with another setting (n,)."""
    return replace(tasks, settings={**tasks.settings, name: column})


def _training(executor: LocalExecutor, contest: Contest, ready: Sequence[TrainTasks]) -> Measured:
    """A function that trains the waves `ready` and returns the mean CPU seconds of one."""
    models, row = contest.start[None, :], np.zeros(len(ready[0]), dtype=np.int64)

    def measured() -> float:
        begun = time.process_time()
        for tasks in ready:
            executor.train(tasks, models, row)
        return (time.process_time() - begun) / len(ready)

    return measured
