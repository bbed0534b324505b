from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from emulator.arrays import Ints
from emulator.counts import epoch_steps, samples_of_steps
from emulator.messages import SampleRanges, TrainTasks
from emulator.seeding import RandomStreams
from executor.training.batches import batch_sizes, step_counts, task_batches
from tests.executor.fakes import wave

STREAMS = RandomStreams(4)


def batches_of(tasks: TrainTasks, task: int, steps: int, streams: RandomStreams = STREAMS) -> Ints:
    """(steps, batch_size) rows of one task's batches."""
    return task_batches(tasks, np.array([task]), np.array([steps]), streams)[:, 0]


def test_every_sample_comes_once_before_any_comes_twice() -> None:
    tasks = wave(counts=[3, 10], steps=[0, 5], batch_size=4)
    drawn = batches_of(tasks, 1, 5)
    assert drawn.shape == (5, 4)
    passes = drawn.ravel().reshape(2, 10)
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(3, 13))
    assert passes[0].tolist() != passes[1].tolist()


def test_a_batch_larger_than_the_clients_data_repeats_them_evenly() -> None:
    tasks = wave(counts=[3], steps=[2], batch_size=6)
    assert [sorted(batch) for batch in batches_of(tasks, 0, 2).tolist()] == [[0, 0, 1, 1, 2, 2]] * 2


def test_batches_depend_on_the_task_alone() -> None:
    tasks = wave(counts=[5, 6, 7], steps=[3, 3, 3])
    same_task = TrainTasks(
        client=np.array([2, 9]),
        model=np.array([0, 0]),
        visit=np.array([7, 1]),
        samples=SampleRanges.one_each(np.array([11, 0]), np.array([18, 5])),
        settings={name: column[:2] for name, column in tasks.settings.items()},
        dispatch=tasks.dispatch[:2],
        step=tasks.step[:2],
    )
    assert np.array_equal(batches_of(tasks, 2, 3), batches_of(same_task, 0, 3))


def test_another_dispatch_client_model_or_seed_draws_other_batches() -> None:
    tasks = wave(counts=[20], steps=[5])
    drawn = batches_of(tasks, 0, 5).tolist()
    for changed in (
        replace(tasks, dispatch=tasks.dispatch + 1),
        replace(tasks, client=tasks.client + 1),
        replace(tasks, model=tasks.model + 1),
    ):
        assert batches_of(changed, 0, 5).tolist() != drawn
    assert batches_of(tasks, 0, 5, RandomStreams(5)).tolist() != drawn


def test_a_task_without_samples_takes_no_step() -> None:
    tasks = wave(counts=[0, 2], steps=[5, 5])
    assert step_counts(tasks).tolist() == [0, 5]
    assert batches_of(tasks, 0, 0).shape == (0, 4)


@pytest.mark.parametrize(("count", "size"), [(10, 4), (8, 4), (3, 4), (1, 1)])
def test_if_its_last_batch_is_short_a_pass_has_every_sample_once_and_begins_with_a_new_batch(
    count: int, size: int
) -> None:
    """Three passes and a step of the fourth; without short batches, the first pass is the same."""
    in_epoch = -(-count // size)
    tasks, chosen, steps = wave([5, count], [1, 1], size), np.array([1]), np.array([3 * in_epoch + 1])
    drawn = task_batches(tasks, chosen, steps, STREAMS, "reshuffled", "short")[:, 0]
    sizes = batch_sizes(steps, np.array([count]), size)[:, 0]
    counted = [batch[:number].tolist() for batch, number in zip(drawn, sizes.tolist(), strict=True)]
    for number in range(3):
        batches = counted[number * in_epoch : (number + 1) * in_epoch]
        assert sorted(chain(*batches)) == list(range(5, 5 + count))
        assert len(batches[-1]) == count - (in_epoch - 1) * size
    assert len(set(counted[-1])) == len(counted[-1]) == min(size, count)
    assert np.isin(drawn, np.arange(5, 5 + count)).all()  # also what fills a batch up
    filled = batches_of(tasks, 1, 3 * in_epoch + 1)
    assert filled.ravel()[:count].tolist() == list(chain(*counted[:in_epoch]))
    trained = samples_of_steps(steps, np.array([count]), size, "short")
    assert trained.tolist() == [sizes.sum()] == [3 * count + min(size, count)]


def test_samples_are_counted_for_each_use_and_none_of_a_client_without() -> None:
    steps, samples, sizes = np.array([6, 4, 3, 0]), np.array([10, 8, 2, 0]), np.array([4.0, 4.0, 5.0, 4.0])
    assert epoch_steps(samples, sizes).tolist() == [3, 2, 1, 0]
    assert samples_of_steps(steps, samples, sizes, "short").tolist() == [20, 16, 6, 0]
    assert samples_of_steps(steps, samples, sizes, "filled").tolist() == [24, 16, 15, 0]


def ranged(*lengths: int, weights: tuple[float, ...] = (), bootstrap: bool = False) -> TrainTasks:
    """One task of 4-sample batches, whose ranges begin at 0, 100, 200 and so on."""
    first = 100 * np.arange(len(lengths))
    weight = np.array(weights) if weights else np.ones(len(lengths))
    offsets = np.array([0, len(lengths)])
    samples = SampleRanges(offsets, first, first + np.array(lengths), weight, bootstrap)
    return replace(wave(counts=[1], steps=[1]), samples=samples)


def test_a_batch_never_crosses_a_range() -> None:
    drawn = batches_of(ranged(6, 9, 2), 0, 60)
    assert drawn.shape == (60, 4)
    owner = drawn // 100
    assert (owner == owner[:, :1]).all()
    assert np.unique(owner).tolist() == [0, 1, 2]


def test_each_range_is_drawn_in_passes() -> None:
    lengths = (6, 9, 2, 9)
    drawn = batches_of(ranged(*lengths), 0, 80)
    for number, length in enumerate(lengths):
        sequence = drawn[drawn[:, 0] // 100 == number].ravel() - 100 * number
        passes = sequence[: len(sequence) // length * length].reshape(-1, length)
        assert len(passes) >= 2
        assert all(sorted(rows) == list(range(length)) for rows in passes)
        rest = sequence[passes.size :]
        assert len(np.unique(rest)) == len(rest)


def test_a_range_is_drawn_in_proportion_to_its_weight_times_its_size() -> None:
    drawn = batches_of(ranged(10, 30, 20, weights=(3.0, 1.0, 0.0)), 0, 4000)
    shares = np.bincount(drawn[:, 0] // 100, minlength=3) / 4000
    assert abs(shares[0] - 0.5) < 0.03  # 3 * 10 against 1 * 30; one standard deviation is 0.008
    assert shares[2] == 0


def test_an_empty_range_is_never_drawn() -> None:
    drawn = batches_of(ranged(0, 5, 0), 0, 30)
    assert np.unique(drawn // 100).tolist() == [1]


def test_ranges_that_all_have_weight_0_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[0\.0, 0\.0\]: must be above 0 for at least one"):
        batches_of(ranged(5, 5, weights=(0.0, 0.0)), 0, 1)


def test_the_weight_of_a_single_range_changes_nothing() -> None:
    plain, weighed = ranged(9), ranged(9, weights=(0.25,))
    assert np.array_equal(batches_of(plain, 0, 7), batches_of(weighed, 0, 7))


def test_the_batches_of_a_single_range_are_these() -> None:
    """Runs that were logged can be repeated."""
    tasks = wave(counts=[5], steps=[2], batch_size=4)
    rng = STREAMS.generator("batches", int(tasks.dispatch[0]), 0, 0)
    expected = rng.permuted(np.tile(np.arange(5), (2, 1)), axis=1).ravel()[:8]
    assert batches_of(tasks, 0, 2).ravel().tolist() == expected.tolist()


def test_a_bootstrap_draws_as_many_samples_with_replacement() -> None:
    drawn = batches_of(ranged(40, bootstrap=True), 0, 10)  # one pass
    rows, counts = np.unique(drawn, return_counts=True)
    assert rows.min() >= 0
    assert rows.max() < 40
    assert counts.max() > 1
    assert 0.45 < len(rows) / 40 < 0.8  # 1 - 1/e of them are expected


def test_a_bootstrap_is_the_same_in_all_rounds_of_a_data_step() -> None:
    tasks = ranged(40, bootstrap=True)

    def resample(tasks: TrainTasks) -> list[int]:
        return sorted(batches_of(tasks, 0, 10).ravel().tolist())

    first = resample(tasks)
    assert resample(replace(tasks, dispatch=tasks.dispatch + 1)) == first
    for changed in (
        replace(tasks, step=tasks.step + 1),
        replace(tasks, client=tasks.client + 1),
        replace(tasks, model=tasks.model + 1),
    ):
        assert resample(changed) != first


def test_a_bootstrap_draws_within_each_range() -> None:
    drawn = batches_of(ranged(8, 12, bootstrap=True), 0, 50)
    owner = drawn // 100
    assert (owner == owner[:, :1]).all()
    first, second = (np.unique(drawn[owner[:, 0] == number]) - 100 * number for number in (0, 1))
    assert 0 < len(first) < 8  # the rows left out of the resample never come
    assert 0 < len(second) < 12
    assert second.max() < 12


def test_tasks_drawn_together_have_the_batches_of_each_alone() -> None:
    tasks = wave(counts=[5, 9, 0, 6], steps=[3, 1, 0, 2])
    together = task_batches(tasks, np.array([3, 0, 2, 1]), np.array([2, 3, 0, 1]), STREAMS)
    assert together.shape == (3, 4, 4)
    for column, (task, steps) in enumerate([(3, 2), (0, 3), (2, 0), (1, 1)]):
        assert np.array_equal(together[:steps, column], batches_of(tasks, task, steps))
        assert not together[steps:, column].any()
