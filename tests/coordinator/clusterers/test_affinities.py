from math import sqrt

import numpy as np
import pytest

from coordinator.clusterers.affinities import Affinities, centred, rewards, two_sides, votes_of_labelled
from tests.fakes import ints


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def trained(affinity, lean=None, times=1, explore=0.0) -> Affinities:
    """Affinities (N, M) of clients with these leans (N, M), each of them trained `times` in each cluster."""
    made = Affinities(len(affinity), explore)
    made.affinity = np.array(affinity, dtype=np.float64)
    made.lean = np.zeros(made.affinity.shape, dtype=np.int64) if lean is None else np.array(lean)
    made.times = np.full(made.affinity.shape, times)
    made.rounds = np.zeros(made.affinity.shape[1], dtype=np.int64)
    made.has_sides = made.rounds > 0
    return made


# -- what is compared --------------------------------------------------------------------------------------


def test_updates_are_compared_in_half_precision() -> None:
    # Between 2048 and 4096 half precision has the even numbers only, and a tie goes to 2048.
    assert centred(np.array([[2049.0], [2048.0]], dtype=np.float32)).tolist() == [[0.0], [0.0]]
    assert centred(np.array([[3.0, 1.0], [1.0, -1.0]], dtype=np.float32)).tolist() == [[1, 1], [-1, -1]]


def test_numbers_beyond_half_precision_saturate() -> None:
    points = centred(np.array([[1e30], [-1e30]], dtype=np.float32))
    assert points.tolist() == [[65504.0], [-65504.0]]


# -- (a) sides ---------------------------------------------------------------------------------------------


def test_the_first_client_is_on_side_1_whatever_the_generator() -> None:
    points = np.array([[9.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    for seed in range(5):
        assert two_sides(points, np.random.default_rng(seed)).tolist() == [1, -1, -1]


@pytest.mark.parametrize("num", [0, 1, 4])
def test_clients_that_do_not_differ_take_no_sides(num: int) -> None:
    assert two_sides(np.ones((num, 2)), generator()).tolist() == [0] * num
    affinities = Affinities(4, explore=0.0)
    affinities.take_sides(0, np.arange(num), np.zeros((num, 2)), generator())
    assert affinities.has_sides.tolist() == [False]
    assert not affinities.times.any()


def test_of_two_labelled_clients_at_one_distance_the_lower_decides() -> None:
    points = np.array([[0.0], [2.0], [1.0]])
    assert votes_of_labelled(points, ints(-1, 1, 0)).tolist() == [0, 0, -1]


def test_where_one_side_is_missing_a_quarter_votes_for_the_other() -> None:
    # Two of eight: client 3, the first with a side, and client 6 beside it, which has that side already.
    points = np.array([[9.0], [8.0], [7.0], [1.0], [4.0], [5.0], [1.5], [6.0]])
    assert votes_of_labelled(points, ints(0, 0, 0, -1, 0, 0, -1, 0)).tolist() == [0, 0, 0, -1, 0, 0, -1, 0]
    assert votes_of_labelled(points[:7], ints(0, 0, 0, -1, 0, 0, 0)).tolist() == [0, 0, 0, -1, 0, 0, 0]


def test_where_nobody_has_a_side_nobody_votes() -> None:
    assert votes_of_labelled(np.array([[0.0], [1.0]]), ints(0, 0)).tolist() == [0, 0]


def test_below_an_affinity_of_0_a_client_has_no_side() -> None:
    affinities = trained([[0.0], [-0.1], [3.0], [3.0]], [[2], [2], [-1], [0]])
    assert affinities.sides(0, ints(0, 1, 2, 3)).tolist() == [1, 0, -1, 0]


def test_only_directions_decide_on_sides() -> None:
    affinities = trained([[1.0]] * 4)
    points = np.array([[0.1, 0.0], [0.0, 50.0], [80.0, 0.0], [0.0, 0.1]])
    affinities.take_sides(0, np.arange(4), points, generator())
    assert affinities.lean.ravel().tolist() == [1, -1, 1, -1]


def test_of_several_clusters_only_known_clients_take_the_first_sides() -> None:
    # Clients 0 and 3 have no affinity above 1; of the others, ids and not positions get the votes.
    affinities = trained([[1.0, 1.0], [2.0, 1.0], [2.0, 1.0], [0.5, 1.0], [2.0, 1.0]])
    points = np.array([[9.0], [-1.0], [1.0], [9.0], [1.0]])
    affinities.take_sides(0, np.arange(5), points, generator())
    assert affinities.lean[:, 0].tolist() == [0, 1, -1, 0, -1]
    assert affinities.times[:, 0].tolist() == [1, 2, 2, 1, 2]
    assert affinities.lean[:, 1].tolist() == [0] * 5


# -- (b) rewards -------------------------------------------------------------------------------------------


def test_rewards_fall_to_0_at_the_mean_plus_a_deviation() -> None:
    # Distances 0, 0, 3, 3: the mean is 1.5, and so is the deviation.
    points = np.array([[0.0], [0.0], [3.0], [-3.0]])
    assert rewards(points, np.array([True, True, False, False]), 5.0).tolist() == [2.5, 2.5, 0.0, 0.0]


def test_equal_updates_get_the_whole_reward() -> None:
    assert rewards(np.zeros((4, 2)), np.array([True, True, True, False]), 4.0).tolist() == [3.0] * 4


def test_a_single_cluster_rewards_nobody() -> None:
    affinities = trained([[2.0]] * 3)
    assert affinities.reward(0, np.arange(3), np.array([[1.0], [2.0], [3.0]]), 5.0)
    assert affinities.affinity.tolist() == [[2.0]] * 3


def test_fewer_than_two_known_clients_reward_nobody_and_end_the_round() -> None:
    affinities = trained([[2.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    assert not affinities.reward(0, np.arange(3), np.array([[1.0], [2.0], [3.0]]), 5.0)
    assert affinities.affinity[:, 0].tolist() == [2.0, 1.0, 1.0]


def test_a_negative_reward_takes_the_side_and_all_times_but_this_one() -> None:
    affinities = trained([[2.0, 0.0]] * 4, [[3, 0]] * 4, times=7)
    # Distances to the centre of all four, 0: 1, 1, 1 and 3; the mean is 1.5, the deviation sqrt(0.75).
    reach = 1.5 + sqrt(0.75)
    points = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-3.0, 0.0]])
    assert affinities.reward(0, np.arange(4), points, 5.0)
    assert affinities.affinity[:, 0].tolist() == pytest.approx([7 - 5 / reach] * 3 + [7 - 15 / reach])
    assert affinities.lean[:, 0].tolist() == [3, 3, 3, 0]
    assert affinities.times[:, 0].tolist() == [8, 8, 8, 1]


# -- (c) splits --------------------------------------------------------------------------------------------


def test_a_child_takes_over_the_clients_that_lean_to_it() -> None:
    affinities = trained([[3.0, 1.0], [-2.0, 5.0], [4.0, 1.0]], [[2, 1], [-1, 1], [0, 0]], times=6)
    affinities.rounds, affinities.has_sides = ints(50, 40), np.array([True, True])
    affinities.split(0)
    assert affinities.affinity.tolist() == [[4, 1, 3], [-2, 5, -1], [4, 1, 4]]
    assert affinities.times.tolist() == [[6, 6, 0], [0, 6, 6], [0, 6, 0]]
    assert affinities.lean.tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert affinities.rounds.tolist() == [50, 40, 50]
    assert affinities.has_sides.tolist() == [False, True, False]


def test_the_first_automatic_split_needs_a_twentieth_of_all_clients_on_each_side() -> None:
    affinities = trained([[1.0]] * 40, [[1]] * 3 + [[-1]] * 37)
    assert affinities.divides(0, np.arange(40), 40)
    assert not affinities.divides(0, np.arange(1, 40), 40)  # 2 are not more than 40 / 20


def test_later_automatic_splits_need_a_little_less_but_balanced_sides() -> None:
    # After one split 40 x 0.9 / 20 = 1.8 are enough, but not twice as many may be on the other side.
    affinities = trained([[1.0, 1.0]] * 40, [[1, 1]] * 2 + [[-1, -1]] * 38)
    assert affinities.divides(0, np.arange(5), 40)
    assert not affinities.divides(0, np.arange(6), 40)
    assert not affinities.divides(0, np.arange(1, 4), 40)


# -- (d) decisions -----------------------------------------------------------------------------------------


def test_equal_affinities_keep_the_lowest_cluster() -> None:
    affinities = trained([[1.0, 2.0, 2.0], [3.0, 3.0, 0.0], [1.0, 1.0, 1.5]])
    assert affinities.decide(ints(0, 2, 1), 0.99, generator()).tolist() == [1, 2, 0]


def test_a_client_that_was_never_trained_goes_anywhere() -> None:
    affinities = trained([[9.0, 1.0]] * 200, times=0)
    affinities.times[0, 1] = 1
    went = affinities.decide(np.arange(200), 0.99, generator())
    assert went[0] == 0
    assert np.bincount(went[1:]).tolist() == [95, 104]
    assert went[1:].tolist() == np.floor(2 * generator().random((200, 2))[1:, 1]).tolist()


def test_exploring_fades_with_every_decision() -> None:
    affinities = trained([[9.0, 1.0]] * 4, explore=1.0)
    draws = generator().random((4, 2))
    expected = [int(2 * where) if die < 0.5**i else 0 for i, (die, where) in enumerate(draws.tolist())]
    assert affinities.decide(np.arange(4), 0.5, generator()).tolist() == expected
    assert affinities.explore == 1 / 16
    affinities.decide(ints(1, 3), 0.5, generator())
    assert affinities.explore == 1 / 64
