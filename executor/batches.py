"""Which samples a task trains on, step by step.

A pure function of the task and the seed: who else is in the wave, and in which order, changes nothing.
"""

from __future__ import annotations

import numpy as np

from emulator.arrays import Ints
from emulator.messages import TrainTasks
from emulator.seeding import RandomStreams


def step_counts(tasks: TrainTasks) -> Ints:
    """(n,) local steps of each task; a task without samples takes none."""
    return np.where(tasks.samples.counts() > 0, tasks.settings["local_steps"], 0).astype(np.int64)


def task_batches(tasks: TrainTasks, task: int, steps: int, streams: RandomStreams) -> Ints:
    """(steps, batch_size) table rows of one task's batches.

    The task's rows, permuted afresh for each pass, are strung together and cut into batches: every sample
    comes once before any comes twice, and a batch is always full. A batch may reach into the next pass, so
    a client with fewer samples than a batch sees each about equally often in it.

    The stream is ("batches", round, client, model).
    """
    size = int(tasks.settings["batch_size"][task])
    rows = tasks.samples.rows(task)
    if steps == 0:
        return np.zeros((0, size), dtype=np.int64)
    rng = streams.generator("batches", tasks.round, int(tasks.client[task]), int(tasks.model[task]))
    passes = -(-steps * size // len(rows))
    drawn = rng.permuted(np.tile(rows, (passes, 1)), axis=1)
    return drawn.ravel()[: steps * size].reshape(steps, size)
