"""Epochs of local training: how many steps and samples the passes over a client's samples have."""

from __future__ import annotations

from typing import Literal

import numpy as np

from emulator.arrays import Floats, Ints

LastBatch = Literal["filled", "short"]
"""The last batch of a pass over n samples: filled from the next pass, or with what is left of this one."""


def epoch_steps(samples: Ints, batch_size: Ints | Floats | int) -> Ints:
    """(n,) the steps of one epoch over so many `samples` (n,): ceil(samples / batch_size).

    >>> epoch_steps(np.array([0, 1, 20, 21]), 10).tolist()
    [0, 1, 2, 3]
    """
    return -(-samples // np.asarray(batch_size).astype(np.int64))


def samples_of_steps(
    steps: Ints | Floats, samples: Ints, batch_size: Ints | Floats | int, last: LastBatch
) -> Floats:
    """(n,) the samples that `steps` (n,) train on, each counted once for each use.

    Batches are of `batch_size`, but for the `last` of each pass over the `samples` (n,), if it is short.

    >>> samples_of_steps(np.array([3, 4]), np.array([25, 25]), 10, "short").tolist()
    [25.0, 35.0]
    >>> samples_of_steps(np.array([3, 4]), np.array([25, 25]), 10, "filled").tolist()
    [30.0, 40.0]
    """
    if last == "filled":
        return np.asarray(steps * batch_size, dtype=np.float64)
    in_epoch = np.maximum(epoch_steps(samples, batch_size), 1)
    passes, left = steps // in_epoch, steps % in_epoch
    return np.asarray(passes * samples + left * batch_size, dtype=np.float64)
