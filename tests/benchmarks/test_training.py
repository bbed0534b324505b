from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.figures import Target
from benchmarks.rivals.plain_loop import PlainLoop
from benchmarks.training import (
    CONVOLUTIONAL,
    DENSE,
    PLAIN_LOOP,
    Contest,
    Network,
    Schedule,
    cohort_size_figures,
    rank_figures,
    training_figures,
    wave,
)
from executor.executor import LocalExecutor
from tests.executor.fakes import rule

SMALL = Schedule(samples=12, steps=3, batch_size=5)
TINY = Network("mlp", {"hidden": (4,)}, (6,), num_labels=3)


def ignore(text: str) -> None:
    pass


@pytest.mark.parametrize("network", [DENSE, CONVOLUTIONAL, TINY])
def test_the_plain_loop_and_the_executor_make_the_same_updates(network: Network) -> None:
    contest = Contest(network, 3, SMALL)
    tasks = wave(3, SMALL, round_=2)
    ours = contest.executor(1).train(tasks, contest.start[None, :], np.zeros(3, dtype=np.int64))
    loop = PlainLoop(contest.reader, network.spec(), contest.streams)
    loop.load(tasks)
    updates, losses = loop.train(contest.start)
    np.testing.assert_allclose(updates, ours.delta, atol=1e-6)
    np.testing.assert_allclose(losses, ours.metrics["loss"], rtol=1e-5)
    assert np.abs(updates).max() > 1e-3


@pytest.mark.parametrize("network", [DENSE, CONVOLUTIONAL, TINY])
def test_the_plain_loop_and_the_executor_evaluate_alike(network: Network) -> None:
    ours, plain = Contest(network, 5, SMALL).evaluation(5, num_models=2)
    for mine, theirs in zip(ours(), plain(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
        assert len(set(mine.tolist())) > 1


def test_the_plain_loop_trains_on_fixed_batches_too() -> None:
    contest = Contest(TINY, 3, SMALL)
    tasks = wave(3, SMALL, round_=2)
    executor = LocalExecutor(contest.reader, TINY.spec(), [rule("sgd")], contest.streams, batches="fixed")
    ours = executor.train(tasks, contest.start[None, :], np.zeros(3, dtype=np.int64))
    reshuffled = contest.executor(1).train(tasks, contest.start[None, :], np.zeros(3, dtype=np.int64))
    loop = PlainLoop(contest.reader, TINY.spec(), contest.streams, "fixed")
    loop.load(tasks)
    updates, _ = loop.train(contest.start)
    np.testing.assert_allclose(updates, ours.delta, atol=1e-6)
    assert np.abs(updates - reshuffled.delta).max() > 1e-3


def test_the_plain_loop_leaves_the_threads_and_the_random_numbers_of_torch_alone() -> None:
    contest = Contest(TINY, 2, SMALL)
    before, state = torch.get_num_threads(), torch.random.get_rng_state()
    torch.set_num_threads(2)
    try:
        loop = PlainLoop(contest.reader, TINY.spec(), contest.streams)
        loop.load(wave(2, SMALL, 0))
        loop.train(contest.start)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_client_without_samples_is_not_moved_by_the_plain_loop() -> None:
    contest = Contest(TINY, 2, SMALL)
    tasks = wave(2, SMALL, 0)
    tasks.samples.last[1] = tasks.samples.first[1]
    loop = PlainLoop(contest.reader, TINY.spec(), contest.streams)
    loop.load(tasks)
    updates, losses = loop.train(contest.start)
    assert not updates[1].any()
    assert np.isnan(losses[1])
    assert np.isfinite(losses[0])


def test_the_networks_are_those_of_the_workloads() -> None:
    assert Contest(DENSE, 1, SMALL).start.shape == (64 * 128 + 128 + 128 * 10 + 10,)
    convolutions = 16 * 9 + 16 + 32 * 16 * 9 + 32
    assert Contest(CONVOLUTIONAL, 1, SMALL).start.shape == (convolutions + 800 * 10 + 10,)


def test_training_has_a_figure_for_each_number_of_threads() -> None:
    targets = {1: Target("ratio", 8.0), 2: Target("ratio", 14.0)}
    one, two = training_figures("w0", TINY, 2, ignore, targets, clients=3, schedule=SMALL)
    assert (one.name, one.threads, one.unit) == ("w0-1-thread", 1, "clients/s")
    assert (two.name, two.threads, two.against) == ("w0-2-threads", 2, PLAIN_LOOP)
    assert two.target == targets[2]


def test_cohort_sizes_lie_on_one_curve() -> None:
    figures = cohort_size_figures((1, 4), 1, ignore, TINY, SMALL)
    assert [(item.name, item.curve, item.size) for item in figures] == [
        ("cohort-1", "training", 1),
        ("cohort-4", "training", 4),
    ]


@pytest.mark.slow
def test_ranks_have_a_figure_beside_that_of_one_process() -> None:
    schedule = Schedule(samples=12, steps=3, batch_size=5)
    ranks, alone = rank_figures("w0", TINY, 1, ignore, None, clients=3, schedule=schedule)
    assert (ranks.name, ranks.threads, ranks.against) == ("w0-2-ranks", 2, PLAIN_LOOP)
    assert (alone.name, alone.threads, alone.against) == ("w0-beside-ranks", 1, PLAIN_LOOP)
