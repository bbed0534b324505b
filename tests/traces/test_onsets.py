from __future__ import annotations

import re

import numpy as np
import pytest

from emulator.arrays import Floats, Ints
from traces.onsets import (
    NO_ONSETS,
    Onsets,
    SharesWatch,
    is_mass_event,
    merged,
    newest,
    of_changes,
    of_concepts,
    of_steps,
)


def pairs(onsets: Onsets) -> list[tuple[int, int]]:
    return list(zip(onsets.step.tolist(), onsets.client.tolist(), strict=True))


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def test_a_change_of_concept_and_the_way_back_are_onsets_and_the_row_of_the_last_test_is_not() -> None:
    concepts = np.array([[0, 0, 5], [0, 1, 5], [2, 0, 5], [2, 0, 7]])
    assert pairs(of_concepts(concepts)) == [(1, 1), (2, 0), (2, 1)]
    assert pairs(of_changes(concepts)) == [(1, 1), (2, 0), (2, 1), (3, 2)]
    assert len(of_concepts(concepts[:2])) == 0


def test_onsets_by_step_by_client_and_up_to_a_step() -> None:
    onsets = of_steps([(1, ints(3)), (4, ints(0, 3, 8))])
    assert (len(onsets), onsets.num_clients) == (4, 3)
    steps, counts = onsets.by_step()
    assert (steps.tolist(), counts.tolist()) == ([1, 4], [1, 3])
    assert pairs(onsets.up_to(3)) == [(1, 3)]
    assert onsets.up_to(4) is onsets
    assert len(onsets.up_to(0)) == 0
    assert (onsets.step.dtype, onsets.client.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize(
    ("step", "client", "problem"),
    [
        ([2, 1], [0, 0], "must be ascending by step, then by client, no pair twice"),
        ([1, 1], [4, 3], "must be ascending by step, then by client, no pair twice"),
        ([1, 1], [3, 3], "must be ascending by step, then by client, no pair twice"),
        ([0], [3], "steps must be 1 or more"),
        ([1], [-1], "clients 0 or more"),
        ([1, 2], [3], "must be pairs"),
    ],
)
def test_pairs_that_are_no_onsets_are_refused(step: list[int], client: list[int], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        Onsets(ints(*step), ints(*client))


def test_merging_keeps_one_of_two_equal_onsets() -> None:
    a, b = of_steps([(2, ints(9)), (3, ints(0, 4))]), of_steps([(2, ints(1, 9)), (3, ints(4)), (7, ints(2))])
    expected = [(2, 1), (2, 9), (3, 0), (3, 4), (7, 2)]
    assert pairs(merged(a, b)) == pairs(merged(b, a)) == expected
    assert merged(a, NO_ONSETS) is a
    assert merged(NO_ONSETS, a) is a


@pytest.mark.parametrize(("clients", "events"), [(4, [2, 5]), (5, [5]), (7, [])])
def test_a_mass_event_is_an_onset_of_at_least_half_of_the_clients(clients: int, events: list[int]) -> None:
    onsets = of_steps([(1, ints(0)), (2, ints(0, 3)), (5, ints(1, 2, 3))])
    steps, counts = onsets.by_step()
    assert steps[is_mass_event(counts, clients)].tolist() == events


def test_the_newest_onset_is_the_last_up_to_a_step() -> None:
    onsets = of_steps([(1, ints(0, 1)), (2, ints(1)), (4, ints(0, 2))])
    assert [newest(onsets, 4, step).tolist() for step in range(5)] == [
        [0, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 2, 0, 0],
        [1, 2, 0, 0],
        [4, 2, 4, 0],
    ]


def watched(windows: list[Floats], first_step: int, last_step: int) -> list[tuple[int, int]]:
    watch = SharesWatch(first_step, last_step)
    passed = list(watch.passed_on(windows))
    assert all(given is window for given, window in zip(passed, windows, strict=True))
    return pairs(watch.onsets())


def test_a_watch_finds_rows_of_shares_that_become_others_at_steps_of_the_run_from_1_on() -> None:
    a, b = np.eye(3), np.eye(3)[[1, 1, 2]]  # the first row differs
    c = np.eye(3)[[1, 0, 0]]  # then the others do
    assert watched([a, b, b, c], first_step=0, last_step=3) == [(1, 0), (3, 1), (3, 2)]
    assert watched([a, b, b, c], first_step=-1, last_step=2) == [(2, 1), (2, 2)]  # the first move is at 0
    assert watched([a, b, b, c], first_step=0, last_step=2) == [(1, 0)]
    assert watched([a, a.copy(), a.copy()], first_step=0, last_step=2) == []


def test_labels_that_shares_leave_out_have_none() -> None:
    narrow, wide = np.array([[1.0], [1.0]]), np.array([[1.0, 0.0], [0.5, 0.5]])
    assert watched([narrow, wide], first_step=0, last_step=1) == [(1, 1)]
    assert watched([wide, narrow], first_step=0, last_step=1) == [(1, 1)]


def test_shares_that_cannot_be_drawn_from_are_passed_on_to_be_refused() -> None:
    assert watched([np.eye(2), np.eye(3), np.ones(3)], first_step=0, last_step=2) == []
