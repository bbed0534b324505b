import numpy as np
import pytest

from coordinator.clusterers.linkage import UNKNOWN, difference, distances, linked, merge_weights, pooled
from tests.fakes import ints

# Model i (row) on the samples of model j (column).
THREE = np.array(
    [
        [0.90, 0.85, 0.50],
        [0.88, 0.95, 0.40],
        [0.60, 0.30, 0.80],
    ]
)


def test_the_distance_is_the_larger_loss_of_either_model_on_the_samples_of_the_other():
    # 0-1: max(.90 - .85, .95 - .88); 0-2: max(.90 - .50, .80 - .60); 1-2: max(.95 - .40, .80 - .30).
    assert distances(THREE).tolist() == [[0, 0.07, 0.4], [0.07, 0, 0.55], [0.4, 0.55, 0]]


def test_two_models_that_do_better_on_the_samples_of_the_other_are_at_distance_zero():
    assert distances(np.array([[0.6, 0.9], [0.9, 0.7]])).tolist() == [[0, 0], [0, 0]]


def test_models_that_cannot_be_compared_are_never_linked():
    distance = distances(np.array([[0.9, np.nan], [0.9, np.nan]]))
    assert distance.tolist() == [[0, UNKNOWN], [UNKNOWN, 0]]
    assert [group.tolist() for group in linked(distance, delta=1.0)] == [[0], [1]]


NAN = np.nan


def test_accuracy_is_pooled_over_the_claimed_and_the_newest_samples_of_each_model():
    claimed = np.array([[0.9, 0.6], [0.5, 0.8]])
    newest = np.array([[50.0, 30.0], [100.0, 90.0]])
    accuracy = pooled(claimed, ints(300, 100), newest, ints(100, 100))
    # Model 0 on its own: (270 + 50) / 400, on those of model 1: (60 + 30) / 200.
    assert accuracy.tolist() == [[0.8, 0.45], [0.625, 0.85]]


def test_without_responses_on_the_claimed_samples_the_newest_count_alone():
    claimed = np.array([[0.9, NAN], [0.5, NAN]])
    newest = np.array([[0.0, 30.0], [0.0, 90.0]])
    assert pooled(claimed, ints(300, 100), newest, ints(0, 100)).tolist() == [[0.9, 0.3], [0.5, 0.9]]


def test_where_nothing_is_known_the_pooled_accuracy_is_not_known_either():
    claimed = np.array([[0.9, NAN], [0.5, NAN]])
    accuracy = pooled(claimed, ints(300, 100), np.zeros((2, 2)), ints(0, 0))
    assert np.isnan(accuracy).tolist() == [[False, True], [False, True]]


def groups(pairs: dict[tuple[int, int], float], models: int, delta: float) -> list[list[int]]:
    distance = np.zeros((models, models))
    for (first, second), apart in pairs.items():
        distance[first, second] = distance[second, first] = apart
    return [group.tolist() for group in linked(distance, delta)]


def test_models_at_most_delta_apart_are_one_group():
    assert groups({(0, 1): 0.3, (0, 2): 0.05, (1, 2): 0.3}, models=3, delta=0.1) == [[0, 2], [1]]
    assert groups({(0, 1): 0.1}, models=2, delta=0.1) == [[0, 1]]
    assert groups({(0, 1): 0.11}, models=2, delta=0.1) == [[0], [1]]


def test_a_chain_of_alike_models_is_not_one_group_when_its_ends_are_far_apart():
    assert groups({(0, 1): 0.02, (1, 2): 0.05, (0, 2): 0.2}, models=3, delta=0.1) == [[0, 1], [2]]


def test_a_chain_is_one_group_once_delta_covers_its_ends():
    assert groups({(0, 1): 0.02, (1, 2): 0.05, (0, 2): 0.2}, models=3, delta=0.2) == [[0, 1, 2]]


def test_one_model_is_its_own_group():
    assert groups({}, models=1, delta=0.1) == [[0]]


def test_the_last_digits_do_not_push_a_difference_beyond_delta():
    assert 0.8 - 0.7 > 0.1  # why it is rounded
    assert difference(np.array([0.8]), np.array([0.7])) <= 0.1
    accuracy = np.array([[0.8, 0.7], [0.8, 0.8]])
    assert [group.tolist() for group in linked(distances(accuracy), delta=0.1)] == [[0, 1]]


def test_merging_by_share_equals_merging_one_after_the_other():
    models = np.array([[1.0, 0.0], [4.0, 2.0], [-2.0, 8.0]])
    samples = ints(100, 300, 400)
    first = (100 * models[0] + 300 * models[1]) / 400
    both = (400 * first + 400 * models[2]) / 800
    assert merge_weights(samples).tolist() == [0.125, 0.375, 0.5]
    assert (merge_weights(samples) @ models).tolist() == pytest.approx(both.tolist())
