"""What the experimenter sees of a run: free of charge, over every client, online or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coordinator.heterogeneity import mean_client_distance
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import SampleRanges
from emulator.ports import Executor


@dataclass(frozen=True)
class Measurement:
    """Means over clients that hold test samples, and distances over all; not finite where models are not."""

    accuracy: float
    accuracy_std: float
    loss: float
    mean_client_distance: float
    unclustered_distance: float


def measure(
    executor: Executor, models: Floats32, serves: Ints, samples: SampleRanges, histograms: Floats
) -> Measurement:
    """Score every client's test `samples` with row `serves` (N,) of `models`; some client must hold some.

    `histograms` (N, D) say how unlike the clients are that one model serves.
    """
    scores = executor.evaluate(models, serves, samples)
    scored = samples.counts() > 0
    return Measurement(
        accuracy=float(scores.accuracy[scored].mean()),
        accuracy_std=float(scores.accuracy[scored].std()),
        loss=float(scores.loss[scored].mean()),
        mean_client_distance=mean_client_distance(histograms, serves),
        unclustered_distance=mean_client_distance(histograms, np.zeros_like(serves)),
    )
