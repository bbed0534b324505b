from __future__ import annotations

from typing import Any

import pytest

from experiments.results.reading.header_truth import concepts_of_tests, known_onsets

ROWS = [[0, 0, 0, 0], [0, 0, 1, 1], [0, 2, 1, 1], [3, 3, 3, 3]]
"""Concepts of four clients at three data steps, and of the last tests."""


@pytest.mark.parametrize(
    ("facts", "tested"),
    [
        ({}, ROWS[1:]),
        ({"test_then_train": False}, ROWS[:-1]),
        ({"test_then_train": False, "test_concepts": [[9] * 4] * 3}, [[9] * 4] * 3),
    ],
)
def test_the_concepts_of_tests_have_a_row_for_each_data_step(
    facts: dict[str, Any], tested: list[list[int]]
) -> None:
    assert concepts_of_tests({"concepts": ROWS, **facts}) == tested


def test_all_onsets_are_those_of_the_header_and_of_its_concepts() -> None:
    onsets = {"steps": [1, 2], "counts": [1, 2], "clients": [[2], [0, 3]]}
    found = known_onsets({"concepts": ROWS, "onsets": onsets})
    assert found is not None
    assert found.onsets is not None
    assert found.onsets.step.tolist() == [1, 1, 2, 2, 2]
    assert found.onsets.client.tolist() == [2, 3, 0, 1, 3]
    assert (found.steps.tolist(), found.counts.tolist()) == ([1, 2], [2, 3])
    assert found.mass_events(num_clients=4) == {1: 2, 2: 3}
    assert found.mass_events(num_clients=6) == {2: 3}


def test_changes_of_the_tests_alone_are_onsets() -> None:
    still = [[0, 0]] * 4
    assert known_onsets({"concepts": still}) is None
    of_tests = {"concepts": still, "test_concepts": [[0, 0], [5, 0], [5, 7]]}
    # Tests ahead are of the step after, and the last ones of none of the run.
    for header, steps, clients in (({"test_then_train": False}, [1, 2], [0, 1]), ({}, [2], [0])):
        found = known_onsets({**of_tests, **header})
        assert found is not None
        assert found.onsets is not None
        assert (found.onsets.step.tolist(), found.onsets.client.tolist()) == (steps, clients)


def test_of_very_many_onsets_only_the_numbers_are_known() -> None:
    found = known_onsets({"onsets": {"steps": [3, 7], "counts": [900, 20_000]}})
    assert found is not None
    assert found.onsets is None
    assert found.mass_events(num_clients=30_000) == {7: 20_000}


def test_a_header_without_concepts_and_onsets_tells_none() -> None:
    assert known_onsets({"num_clients": 3}) is None
