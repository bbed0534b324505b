from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.arrays import NO_IDS
from emulator.messages import (
    ArrayUpdates,
    InferencePlan,
    SampleRanges,
    StateSpec,
    StepForm,
    TrainTasks,
    Work,
)

Request = list[list[tuple[int, int]]]
REQUESTS = st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), max_size=3), max_size=6)


def ranges_of(request: Request) -> SampleRanges:
    """Sample ranges, given for each row as a list of (first, length)."""
    flat = np.array([span for row in request for span in row], dtype=np.int64).reshape(-1, 2)
    offsets = np.cumsum([0, *(len(row) for row in request)], dtype=np.int64)
    return SampleRanges(offsets, flat[:, 0], flat[:, 0] + flat[:, 1], np.ones(len(flat)))


def naive_rows(row: list[tuple[int, int]]) -> list[int]:
    return [sample for first, length in row for sample in range(first, first + length)]


def test_columns_of_work_that_are_not_given_are_zero() -> None:
    work = Work.of(2, upload_bytes=4.0)
    columns = (work.download_bytes, work.upload_bytes, work.forward_samples, work.trained_samples)
    assert [column.tolist() for column in columns] == [[0, 0], [4, 4], [0, 0], [0, 0]]


@pytest.mark.slow
@given(REQUESTS)
def test_rows_and_counts_of_ranges_equal_a_naive_listing(request: Request) -> None:
    ranges = ranges_of(request)
    assert len(ranges) == len(request)
    assert [ranges.rows(index).tolist() for index in range(len(request))] == [
        naive_rows(row) for row in request
    ]
    assert ranges.counts().tolist() == [len(naive_rows(row)) for row in request]


@pytest.mark.slow
@given(REQUESTS, st.lists(st.integers(0, 5), max_size=8))
def test_taking_rows_repeats_and_reorders_their_ranges(request: Request, picked: list[int]) -> None:
    picked = [index for index in picked if index < len(request)]
    taken = ranges_of(request).take(np.array(picked, dtype=np.int64))
    assert [taken.rows(index).tolist() for index in range(len(taken))] == [
        naive_rows(request[index]) for index in picked
    ]
    assert taken.counts().tolist() == [len(naive_rows(request[index])) for index in picked]


def test_one_range_each_keeps_the_order_of_the_rows() -> None:
    ranges = SampleRanges.one_each(np.array([5, 0, 9]), np.array([7, 0, 10]))
    assert [ranges.rows(index).tolist() for index in range(3)] == [[5, 6], [], [9]]
    assert ranges.counts().tolist() == [2, 0, 1]


def some_tasks() -> TrainTasks:
    return TrainTasks(
        client=np.array([2, 3, 7]),
        model=np.array([0, 1, 0]),
        visit=np.array([10, 11, 12]),
        samples=ranges_of([[(0, 2)], [], [(5, 1), (9, 2)]]),
        settings={"learning_rate": np.array([0.1, 0.2, 0.3])},
        dispatch=np.array([6, 6, 7]),
        step=np.array([1, 1, 2]),
        measure=frozenset({"loss_before"}),
    )


def test_taking_tasks_takes_every_column_of_them() -> None:
    taken = some_tasks().take(np.array([2, 0]))
    assert len(taken) == 2
    assert taken.client.tolist() == [7, 2]
    assert taken.model.tolist() == [0, 0]
    assert taken.visit.tolist() == [12, 10]
    assert [taken.samples.rows(index).tolist() for index in range(2)] == [[5, 9, 10], [0, 1]]
    assert taken.settings["learning_rate"].tolist() == [0.3, 0.1]
    assert taken.dispatch.tolist() == [7, 6]
    assert taken.step.tolist() == [2, 1]
    assert taken.measure == {"loss_before"}


def test_taking_no_task_leaves_no_task() -> None:
    taken = some_tasks().take(NO_IDS)
    assert len(taken) == len(taken.samples) == 0
    assert taken.settings["learning_rate"].tolist() == []


def some_updates(*delta: list[float]) -> ArrayUpdates:
    n = len(delta)
    ones = np.ones(n, dtype=np.int64)
    return ArrayUpdates(np.arange(n), ones, ones, ones, np.array(delta, dtype=np.float32))


def test_each_row_of_weights_makes_one_sum_of_the_updates() -> None:
    updates = some_updates([4.0, 0.0], [0.0, 8.0])
    assert len(updates) == 2
    assert updates.weighted_sum(np.array([[0.75, 0.25], [0.0, 1.0]])).tolist() == [[3.0, 2.0], [0.0, 8.0]]


def test_each_update_is_projected_on_each_vector() -> None:
    updates = some_updates([4.0, 0.0, 1.0], [0.0, 8.0, -1.0])
    products = updates.project(np.array([[1.0, 0.0, 0.0], [0.5, 0.25, 2.0]]))
    assert products.tolist() == [[4.0, 4.0], [0.0, 0.0]]
    assert products.dtype == np.float64
    assert updates.project(np.zeros((0, 3))).shape == (2, 0)
    assert updates.take(NO_IDS).project(np.ones((4, 3))).shape == (0, 4)


def test_products_are_those_of_the_gram_matrix_in_whatever_order_vectors_lie_in_memory() -> None:
    delta = np.random.default_rng(0).normal(size=(5, 3001)).astype(np.float32)
    updates = some_updates(*delta.tolist())
    products = updates.project(delta)
    assert products.tobytes() == updates.gram().tobytes()
    assert updates.project(np.asfortranarray(delta, dtype=np.float64)).tobytes() == products.tobytes()
    one = updates.take(np.array([2])).project(delta[[4]])
    assert one[0, 0] == products[2, 4]


def test_among_those_that_hold_data_the_others_are_served_by_no_model() -> None:
    plan = InferencePlan(np.array([[0, 1], [1, -1]]), np.array([[0.5, 0.5], [1.0, 0.0]]), "votes")
    some = plan.among(np.array([False, True]))
    assert some.models.tolist() == [[-1, -1], [1, -1]]
    assert some.weights.tolist() == [[0, 0], [1, 0]]
    assert some.combine == "votes"
    assert some.first().tolist() == [-1, 1]
    assert plan.among(np.array([True, True])) is plan


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"shape": "matrix"}, "^shape = 'matrix' of a slot; choices: parameters, scalar, columns$"),
        ({"shape": "scalar", "until": "ever"}, "^until = 'ever' of a slot; choices: data, model, run$"),
        ({"shape": "scalar", "start": "ones"}, "^start = 'ones' of a slot; choices: zeros, received$"),
        ({"shape": "scalar", "start": "received"}, "cannot begin with the received parameters"),
    ],
)
def test_a_slot_names_its_choices(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        StateSpec(**arguments)


def test_the_norm_of_steps_has_the_closed_forms_of_momentum_and_of_a_pull() -> None:
    """Of tasks of 0, 1, 3 and 20 steps; of a pull so strong that each step overshoots, too."""
    steps, rate = np.array([0, 1, 3, 20]), np.array([0.1, 0.2, 0.05, 0.1])
    plain = StepForm().norms(steps, rate)
    assert np.isnan(plain[0])
    assert plain[1:].tolist() == [1, 3, 20]
    count = steps[1:].astype(float)
    for rho in (0.5, 0.95):
        expected = (count - rho * (1 - rho**count) / (1 - rho)) / (1 - rho)
        assert StepForm(momentum=rho).norms(steps, rate)[1:] == pytest.approx(expected, rel=1e-12)
    for mu in (-0.1, 0.5, 12.0):
        pull = rate[1:] * mu
        expected = (1 - (1 - pull) ** count) / pull
        assert StepForm(pull=mu).norms(steps, rate)[1:] == pytest.approx(expected, rel=1e-9)


def test_a_rate_of_0_counts_the_steps_as_the_smallest_rate_does() -> None:
    form, steps = StepForm(pull=0.5, momentum=0.5), np.array([3])
    assert form.norms(steps, np.zeros(1)) == pytest.approx(form.norms(steps, np.full(1, 1e-9)))
