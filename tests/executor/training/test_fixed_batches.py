"""Batches that are cut once per client and data step, and drawn with replacement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from emulator.arrays import Ints
from emulator.messages import SampleRanges, TrainTasks
from emulator.seeding import RandomStreams
from executor.training.batches import task_batches
from tests.executor.fakes import wave

STREAMS = RandomStreams(4)


def drawn(tasks: TrainTasks, steps: int, streams: RandomStreams = STREAMS, task: int = 0) -> Ints:
    """(steps, batch_size) rows of one task's batches."""
    return task_batches(tasks, np.array([task]), np.array([steps]), streams, "fixed")[:, 0]


def cut(tasks: TrainTasks, streams: RandomStreams = STREAMS) -> set[tuple[int, ...]]:
    """The different batches that 200 steps of the first task draw."""
    return {tuple(batch) for batch in drawn(tasks, 200, streams).tolist()}


def ranged(
    *spans: tuple[int, int], batch_size: int = 2, weights: tuple[float, ...] = (), bootstrap: bool = False
) -> TrainTasks:
    """One task, of client 0 and model 0, whose ranges are the rows of each span [first, last)."""
    first, last = np.array(spans, dtype=np.int64).T
    weight = np.array(weights) if weights else np.ones(len(spans))
    samples = SampleRanges(np.array([0, len(spans)]), first, last, weight, bootstrap)
    return replace(wave(counts=[1], steps=[1], batch_size=batch_size), samples=samples)


def test_four_samples_have_the_same_two_batches_of_two_in_all_rounds_of_a_data_step() -> None:
    first = cut(ranged((0, 4)))
    assert len(first) == 2
    assert sorted(row for batch in first for row in batch) == [0, 1, 2, 3]
    for round_ in range(30):
        assert cut(replace(ranged((0, 4)), dispatch=np.array([round_]))) == first


def test_the_order_of_the_draws_differs_from_round_to_round_and_model_to_model() -> None:
    tasks = ranged((0, 40))
    for changed in (replace(tasks, dispatch=tasks.dispatch + 1), replace(tasks, model=tasks.model + 1)):
        assert drawn(changed, 20).tolist() != drawn(tasks, 20).tolist()
        assert cut(changed) == cut(tasks)


def test_the_batches_are_drawn_uniformly() -> None:
    counts = np.unique(drawn(ranged((0, 20), batch_size=5), 4000)[:, 0], return_counts=True)[1]
    assert len(counts) == 4
    assert np.abs(counts - 1000).max() < 110  # four standard deviations


def test_a_sample_may_come_twice_before_another_comes_once() -> None:
    batches = drawn(ranged((0, 20), batch_size=5), 4)  # as many steps as batches
    assert len(np.unique(batches)) < 20


def test_another_data_step_client_or_seed_cuts_other_batches() -> None:
    tasks = ranged((0, 20))
    for changed in (replace(tasks, step=tasks.step + 1), replace(tasks, client=tasks.client + 1)):
        assert cut(changed) != cut(tasks)
    assert cut(tasks, RandomStreams(5)) != cut(tasks)


def test_a_range_has_the_same_cut_whatever_other_ranges_the_task_has() -> None:
    together = cut(ranged((0, 4), (4, 10), (10, 16)))
    assert together == cut(ranged((0, 4))) | cut(ranged((4, 10))) | cut(ranged((10, 16)))


def test_a_cut_does_not_depend_on_where_the_rows_of_its_range_begin() -> None:
    """A longer run has more rows before a client's, and cuts the same batches."""
    assert cut(ranged((2**32, 2**32 + 20))) == {
        tuple(row + 2**32 for row in batch) for batch in cut(ranged((0, 20)))
    }


def test_ranges_never_mix_in_a_batch() -> None:
    owner = drawn(ranged((0, 6), (100, 109), (200, 202), batch_size=4), 300) // 100
    assert (owner == owner[:, :1]).all()
    assert np.unique(owner).tolist() == [0, 1, 2]


def test_a_range_is_drawn_in_proportion_to_its_weight_times_its_size() -> None:
    batches = drawn(ranged((0, 10), (100, 130), (200, 220), weights=(3.0, 1.0, 0.0)), 4000)
    shares = np.bincount(batches[:, 0] // 100, minlength=3) / 4000
    assert abs(shares[0] - 0.5) < 0.03  # 3 * 10 against 1 * 30; one standard deviation is 0.008
    assert shares[2] == 0


def test_ranges_that_all_have_weight_0_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[0\.0, 0\.0\]: must be above 0 for at least one"):
        drawn(ranged((0, 5), (5, 10), weights=(0.0, 0.0)), 1)


def test_an_incomplete_last_batch_is_filled_up_from_the_first() -> None:
    batches = cut(ranged((0, 12), batch_size=5))  # 5 + 5 + 2 samples
    assert len(batches) == 3
    assert all(len(set(batch)) == 5 for batch in batches)
    counts = np.bincount([row for batch in batches for row in batch])
    assert sorted(counts) == [1] * 9 + [2] * 3
    twice = set(np.flatnonzero(counts == 2).tolist())
    one, other = (batch for batch in batches if twice < set(batch))
    assert one[:3] == other[2:] or other[:3] == one[2:]


def test_a_range_smaller_than_a_batch_is_one_batch_that_repeats_it_evenly() -> None:
    [batch] = cut(ranged((0, 3), batch_size=7))
    assert sorted(np.bincount(batch)) == [2, 2, 3]


def test_a_bootstrap_is_cut_once_per_model_and_data_step() -> None:
    tasks = ranged((0, 40), batch_size=4, bootstrap=True)
    first = cut(tasks)
    rows, counts = np.unique([row for batch in first for row in batch], return_counts=True)
    assert counts.sum() == 40
    assert 0.45 < len(rows) / 40 < 0.8  # 1 - 1/e of them are expected
    assert cut(replace(tasks, dispatch=tasks.dispatch + 1)) == first
    for changed in (replace(tasks, step=tasks.step + 1), replace(tasks, model=tasks.model + 1)):
        assert cut(changed) != first


def test_tasks_drawn_together_have_the_batches_of_each_alone() -> None:
    tasks = wave(counts=[5, 9, 0, 6], steps=[3, 1, 0, 2])
    together = task_batches(tasks, np.array([3, 0, 2, 1]), np.array([2, 3, 0, 1]), STREAMS, "fixed")
    for column, (task, steps) in enumerate([(3, 2), (0, 3), (2, 0), (1, 1)]):
        assert np.array_equal(together[:steps, column], drawn(tasks, steps, task=task))
        assert not together[steps:, column].any()


def test_the_cut_and_the_draws_come_from_their_documented_streams() -> None:
    """Runs that were logged can be repeated."""
    tasks = replace(ranged((7, 19), batch_size=5), step=np.array([3]))
    permuted = 7 + STREAMS.generator("cut", 3, 0).permutation(12)
    batches = np.array([permuted[:5], permuted[5:10], [*permuted[10:], *permuted[:3]]])
    numbers = STREAMS.generator("batches", int(tasks.dispatch[0]), 0, 0).integers(np.full(6, 3))
    assert np.array_equal(drawn(tasks, 6), batches[numbers])
