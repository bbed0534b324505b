from dataclasses import replace

import numpy as np

from tests.fakes import a_view, ints


def test_drifted_are_the_clients_that_any_detector_found():
    view = a_view(num_clients=4)
    flags = {"first": np.array([True, True, False, False]), "second": np.array([False, True, False, True])}
    assert replace(view, drift=flags).drifted.tolist() == [0, 1, 3]
    assert replace(view, drift={}).drifted.tolist() == []


def test_a_stream_is_keyed_by_purpose_round_and_key():
    def draw(round_: int, purpose: str, *key: int) -> float:
        return float(a_view(num_clients=1, round_=round_).rng(purpose, *key).random())

    assert draw(3, "selection", 1) == draw(3, "selection", 1)
    other_draws = {
        draw(4, "selection", 1),
        draw(3, "clustering", 1),
        draw(3, "selection", 2),
        draw(3, "selection"),
    }
    assert len(other_draws | {draw(3, "selection", 1)}) == 5


def test_streams_made_together_equal_those_made_one_by_one():
    view = a_view(num_clients=1, round_=3, seed=5)
    together = [rng.random() for rng in view.rngs("selection", ints(0, 4, 9))]
    assert together == [view.rng("selection", key).random() for key in (0, 4, 9)]
