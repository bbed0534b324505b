import numpy as np
import pytest
from scipy.stats import chisquare

from coordinator.candidates import Candidates
from coordinator.selectors.random import Random
from tests.fakes import NOTHING, a_view, ints

SELECTOR = Random(NOTHING)


def selected(candidates: list[np.ndarray], wanted: list[int], round_: int = 0, seed: int = 0) -> list[int]:
    view = a_view(num_clients=1, round_=round_, seed=seed)
    available = Candidates(candidates, lambda ids: np.ones(len(ids), dtype=bool))
    return SELECTOR.select(available, np.array(wanted), view).tolist()


def test_a_selection_is_ascending_distinct_and_from_the_pool():
    candidates = [ints(2, 3, 5, 7, 11, 13), ints(0, 1, 4)]
    for round_ in range(50):
        chosen = selected(candidates, [3, 2], round_)
        assert chosen == sorted(set(chosen))
        assert len(set(chosen) & {2, 3, 5, 7, 11, 13}) == 3
        assert len(set(chosen) & {0, 1, 4}) == 2


def test_of_a_lane_with_fewer_all_are_taken_and_no_other_lane_makes_up_for_it():
    assert selected([ints(4, 9), ints(1, 2, 3)], [5, 1])[-2:] == [4, 9]
    assert len(selected([ints(4, 9), ints(1, 2, 3)], [5, 1])) == 3


def test_an_empty_lane_and_a_lane_without_wanted_participants_give_no_client():
    assert selected([ints(), ints(3, 4)], [2, 0]) == []


@pytest.mark.slow
def test_every_candidate_is_equally_likely_and_so_is_every_pair():
    # 4000 rounds of 2 out of 5: each of the 10 pairs is expected 400 times.
    pairs = [tuple(selected([ints(1, 3, 4, 6, 8)], [2], round_)) for round_ in range(4000)]
    counts = np.unique(np.array(pairs), axis=0, return_counts=True)[1]
    assert len(counts) == 10
    assert chisquare(counts).pvalue > 1e-3


def test_a_selection_depends_on_seed_round_and_lane_alone():
    candidates = [np.arange(100)]
    assert selected(candidates, [10]) == selected(candidates, [10])
    assert selected(candidates, [10]) != selected(candidates, [10], round_=1)
    assert selected(candidates, [10]) != selected(candidates, [10], seed=1)
    # The draw from lane 1 does not depend on one from lane 0 before it.
    lanes = [np.arange(100, 200), np.arange(100)]
    alone, both = selected(lanes, [0, 10]), selected(lanes, [10, 10])
    assert both[:10] == alone
    # And it differs from that of lane 0.
    assert [client - 100 for client in both[10:]] != alone
