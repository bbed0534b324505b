from __future__ import annotations

import numpy as np
import pytest

from benchmarks.gradients import LARGE, gradient_figures, num_clusters
from benchmarks.rivals.plain_loop import PlainLoop
from benchmarks.training import Contest, Network, Schedule, wave

TINY = Network("mlp", {"hidden": (4,)}, (6,), num_labels=3)
ONE_STEP = Schedule(samples=12, steps=1, batch_size=12)


def ignore(text: str) -> None:
    pass


@pytest.mark.slow
def test_a_gradient_is_the_step_of_the_plain_loop_on_the_same_samples() -> None:
    contest = Contest(TINY, 3, ONE_STEP)
    tasks = wave(3, ONE_STEP, 0)
    loop = PlainLoop(contest.reader, TINY.spec(), contest.streams)
    loop.load(tasks)
    updates, _ = loop.train(contest.start)
    gradients = contest.executor(1).gradients(contest.start, tasks.samples)
    np.testing.assert_allclose(updates, -0.05 * gradients, atol=1e-7)
    assert np.abs(gradients).max() > 1e-2


def test_the_measured_network_has_about_50_000_parameters() -> None:
    assert Contest(LARGE, 1, ONE_STEP).executor(1).num_parameters == 784 * 64 + 64 + 64 * 10 + 10 == 50_890


def test_clients_with_the_same_two_gradients_are_two_clusters() -> None:
    contest = Contest(TINY, 1, ONE_STEP)
    gradients = np.repeat(np.eye(2, 50, dtype=np.float32), 6, axis=0)
    assert num_clusters(gradients, 20, contest) == 2


def test_gradients_are_compared_with_training_and_their_clustering_has_a_limit() -> None:
    gradients, recluster = gradient_figures(12, TINY, 5, 1, ignore, ONE_STEP)
    assert (gradients.name, gradients.unit) == ("gradients", "us")
    assert gradients.ratio is not None
    assert (recluster.name, recluster.unit, recluster.ratio) == ("gradients-recluster", "s", None)
