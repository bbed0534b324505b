"""Workload gradients: reports that are gradients, and their clustering.

302 clients, as many as in Fielding's FMoW, with 100 samples each, and a dense network 784-64-10 of 50,890
parameters. Measured is the time of their mean gradients per sample, against one pass of local training over
the same samples; and the time to sketch these gradients to 1,024 numbers and cluster them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Say, interleaved, timed
from benchmarks.training import SEED, Contest, Network, Schedule, wave
from coordinator.clusterers.partition import PartitionSettings, partition
from coordinator.representations.sketch import CountSketch
from emulator.arrays import Floats32

CLIENTS = 302
SKETCH = 1_024
ONE_PASS = Schedule(samples=100, steps=5, batch_size=20)
LARGE = Network("mlp", {"hidden": (64,)}, (28, 28))
TRAINING = "local training on the same samples, one pass in batches of 20"


def measure_gradients(repeats: int, say: Say) -> list[Figure]:
    return gradient_figures(CLIENTS, LARGE, SKETCH, repeats, say)


def gradient_figures(
    clients: int, network: Network, sketch: int, repeats: int, say: Say, schedule: Schedule = ONE_PASS
) -> list[Figure]:
    """Microseconds per sample of the clients' gradients, and seconds to sketch and cluster them."""
    contest = Contest(network, clients, schedule)
    executor, held = contest.executor(1), wave(clients, schedule, 0).samples
    gradients = executor.gradients(contest.start, held)
    samples = interleaved(
        {
            "gradients": timed(lambda: executor.gradients(contest.start, held)),
            "training": contest.ours(clients, 1),
            "clustering": timed(lambda: num_clusters(gradients, sketch, contest)),
        },
        repeats,
        say=say,
    )
    differentiated = clients * schedule.samples
    trained = clients * schedule.steps * schedule.batch_size
    of = f"{clients:,} clients x {gradients.shape[1]:,} parameters"
    return [
        figure(
            "gradients",
            f"gradients of {of}, {schedule.samples} samples each, per sample",
            1e6 * samples["gradients"] / differentiated,
            "us",
            better="lower",
            against=Reference(1e6 * samples["training"] / trained, TRAINING),
            target=Target("ratio", 1 / 1.5),
        ),
        figure(
            "gradients-recluster",
            f"sketching of {of} to {sketch:,} numbers, and one re-clustering",
            samples["clustering"],
            "s",
            better="lower",
            target=Target("value", 1.0),
        ),
    ]


def num_clusters(gradients: Floats32, size: int, contest: Contest) -> int:
    """The number of clusters of `gradients` (N, P), sketched to `size` numbers each."""
    sketches = CountSketch(gradients.shape[1], size, contest.streams).of(gradients)
    generator = np.random.default_rng(SEED)
    return len(partition(sketches, PartitionSettings(), generator, "euclidean").centers)
