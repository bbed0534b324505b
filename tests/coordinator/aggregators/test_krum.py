import pytest

from coordinator.aggregators.krum import Krum, KrumSettings
from tests.coordinator.aggregators.arrived import arrived, zero_models


def moved(delta, byzantine: float = 0.2, keep: int = 1, **more) -> list[list[float]]:
    updates = arrived(delta, **more)
    part = Krum(KrumSettings(byzantine=byzantine, keep=keep))
    view = zero_models(int(updates.model.max()) + 1, updates.delta.shape[1])
    return part.aggregate(updates, view).tolist()


# With n = 5 and f = 1 a score is the sum of squared distances to the 2 nearest neighbours:
# 0: 1 + 9 = 10; 1: 1 + 4 = 5; 3: 4 + 9 = 13; 6: 9 + 25 = 34; 100: 94^2 + 97^2.
FIVE = [6, 3, 100, 0, 1]


def test_the_update_nearest_to_its_neighbours_is_taken():
    assert moved(FIVE) == [[1]]


def test_multi_krum_takes_the_mean_of_the_nearest():
    assert moved(FIVE, keep=2) == [[0.5]]
    assert moved(FIVE, keep=3) == [[pytest.approx(4 / 3)]]


def test_at_most_the_updates_that_are_not_expected_to_be_false_are_used():
    assert moved(FIVE, keep=9) == [[2.5]]  # all but the one that may be false


def test_the_number_of_false_updates_is_limited_to_what_few_updates_can_withstand():
    # n = 5 allows f = 1, as before; 0.4 x 5 = 2 would leave one neighbour.
    assert moved(FIVE, byzantine=0.4) == [[1]]
    # n = 4: f = 0, two neighbours. 0: 1 + 9; 1: 1 + 4; 3: 4 + 9; 6: 9 + 25.
    assert moved([6, 3, 0, 1], byzantine=0.4) == [[1]]


def test_of_equal_scores_the_lowest_client_comes_first_whatever_the_order_of_the_rows():
    assert moved([1, 3], client=[7, 2]) == [[3]]
    assert moved([1, 2, 3, 4], client=[5, 9, 8, 1]) == [[3]]  # 2 and 3 have 1 + 1


def test_one_update_is_taken_as_it_is():
    assert moved([7]) == [[7]]


def test_each_model_has_a_krum_of_its_own_without_clients_that_have_no_samples():
    delta = [1, 50, 2, 50, 4, 50, -9, 2]
    model, num_samples = [0, 1, 0, 1, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 0]
    # The scores of 1, 2, 4 and -9 over their two nearest neighbours are 10, 5, 13 and 221.
    assert moved(delta, model=model, num_samples=num_samples) == [[2], [50]]


def test_distances_are_over_all_parameters():
    assert moved([[0, 0], [1, 1], [0, 1], [9, 0], [0, 9]]) == [[0, 1]]


@pytest.mark.parametrize(("key", "value"), [("byzantine", 0.5), ("keep", 0)])
def test_settings_that_no_krum_can_withstand_are_refused(key, value):
    with pytest.raises(ValueError, match=key):
        KrumSettings(**{key: value})
