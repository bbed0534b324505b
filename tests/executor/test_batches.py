from __future__ import annotations

from dataclasses import replace

import numpy as np

from emulator.messages import SampleRanges, TrainTasks
from emulator.seeding import RandomStreams
from executor.batches import step_counts, task_batches
from tests.executor.fakes import wave

STREAMS = RandomStreams(4)


def test_every_sample_comes_once_before_any_comes_twice() -> None:
    tasks = wave(counts=[3, 10], steps=[0, 5], batch_size=4)
    drawn = task_batches(tasks, 1, 5, STREAMS)
    assert drawn.shape == (5, 4)
    passes = drawn.ravel().reshape(2, 10)
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(3, 13))
    assert passes[0].tolist() != passes[1].tolist()


def test_a_batch_larger_than_the_clients_data_repeats_them_evenly() -> None:
    tasks = wave(counts=[3], steps=[2], batch_size=6)
    assert [sorted(batch) for batch in task_batches(tasks, 0, 2, STREAMS).tolist()] == [
        [0, 0, 1, 1, 2, 2]
    ] * 2


def test_batches_depend_on_the_task_alone() -> None:
    tasks = wave(counts=[5, 6, 7], steps=[3, 3, 3])
    other = TrainTasks(
        client=np.array([2, 9]),
        model=np.array([0, 0]),
        version=np.array([8, 8]),
        visit=np.array([7, 1]),
        samples=SampleRanges.one_each(np.array([11, 0]), np.array([18, 5])),
        settings={name: column[:2] for name, column in tasks.settings.items()},
        round=tasks.round,
    )
    assert np.array_equal(task_batches(tasks, 2, 3, STREAMS), task_batches(other, 0, 3, STREAMS))


def test_another_round_client_model_or_seed_draws_otherwise() -> None:
    tasks = wave(counts=[20], steps=[5])
    drawn = task_batches(tasks, 0, 5, STREAMS).tolist()
    for changed in (
        replace(tasks, round=tasks.round + 1),
        replace(tasks, client=tasks.client + 1),
        replace(tasks, model=tasks.model + 1),
    ):
        assert task_batches(changed, 0, 5, STREAMS).tolist() != drawn
    assert task_batches(tasks, 0, 5, RandomStreams(5)).tolist() != drawn


def test_a_task_without_samples_takes_no_step() -> None:
    tasks = wave(counts=[0, 2], steps=[5, 5])
    assert step_counts(tasks).tolist() == [0, 5]
    assert task_batches(tasks, 0, 0, STREAMS).shape == (0, 4)
