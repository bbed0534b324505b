from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from coordinator.candidates import FIRST_BLOCK, Candidates
from emulator.arrays import Bools, Ints


class Online:
    """The clients in `ids` are online; counts the clients that were checked."""

    def __init__(self, ids: Ints) -> None:
        self.ids = ids
        self.checked = 0

    def __call__(self, ids: Ints) -> Bools:
        self.checked += len(ids)
        return np.isin(ids, self.ids)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("online_share", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("count", [0, 1, 7, 60])
def test_a_draw_is_distinct_and_of_those_that_are_there(online_share: float, count: int) -> None:
    members = np.arange(10_000, 20_000)
    online = Online(members[rng(1).random(len(members)) < online_share])
    for seed in range(5):
        drawn = Candidates([members], online).draw(0, count, rng(seed))
        assert len(drawn) == len(set(drawn.tolist())) == count
        assert np.isin(drawn, online.ids).all()


def test_a_draw_from_a_large_lane_looks_at_few_of_its_clients() -> None:
    members = np.arange(1_000_000)
    online = Online(members[::5])
    Candidates([members], online).draw(0, 130, rng(0))
    assert online.checked < 5000


def test_where_fewer_are_there_than_wanted_all_are_drawn() -> None:
    members = np.arange(5000)
    online = Online(np.array([3, 77, 4999]))
    assert sorted(Candidates([members], online).draw(0, 10, rng(0)).tolist()) == [3, 77, 4999]
    assert Candidates([members[:0]], online).draw(0, 10, rng(0)).tolist() == []


@pytest.mark.slow
@pytest.mark.parametrize(("size", "online"), [(6, [0, 2, 3, 5]), (5000, [5, 900, 901, 4998])])
def test_every_pair_of_those_that_are_there_is_equally_likely(size: int, online: list[int]) -> None:
    # 6 pairs of 4 clients, each expected 300 times; of the large lane some are tried and rejected first.
    candidates = Candidates([np.arange(size)], Online(np.array(online)))
    pairs = [tuple(sorted(candidates.draw(0, 2, rng(seed)).tolist())) for seed in range(1800)]
    counts = np.unique(np.array(pairs), axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert chisquare(counts).pvalue > 1e-3


def test_drawing_by_rejection_is_uniform_over_all_that_are_there() -> None:
    online = np.arange(0, 8000, 2)
    candidates = Candidates([np.arange(8000)], Online(online))
    hits = np.zeros(10)
    for seed in range(800):
        hits += np.bincount(candidates.draw(0, 10, rng(seed)) // 800, minlength=10)
    assert chisquare(hits).pvalue > 1e-3


def test_the_ids_of_a_lane_are_all_of_its_clients_that_are_online() -> None:
    candidates = Candidates([np.array([2, 3, 5]), np.array([4, 6])], lambda ids: ids % 2 == 0)
    assert candidates.ids(0).tolist() == [2]
    assert candidates.ids(1).tolist() == [4, 6]
    assert len(candidates) == 2


def test_no_more_clients_are_checked_than_needed_to_know_that_there_are_enough() -> None:
    lanes = [np.arange(0, 100_000), np.arange(100_000, 200_000)]
    online = Online(np.array([3, 5, 50_000, 150_000]))
    assert Candidates(lanes, online).holds(2)
    assert online.checked == FIRST_BLOCK
    assert Candidates(lanes, online).holds(4)
    assert not Candidates(lanes, online).holds(5)
    assert Candidates([], online).holds(0)


def test_few_candidates_are_looked_up_once_for_all_its_lanes() -> None:
    online = Online(np.array([1, 4, 5]))
    candidates = Candidates([np.array([1, 2, 3]), np.zeros(0, dtype=np.int64), np.array([4, 5])], online)
    assert candidates.holds(3)
    assert not candidates.holds(4)
    assert [candidates.ids(lane).tolist() for lane in range(3)] == [[1], [], [4, 5]]
    assert sorted(candidates.draw(2, 2, rng(0)).tolist()) == [4, 5]
    assert online.checked == 5
