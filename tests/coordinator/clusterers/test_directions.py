import numpy as np
import pytest

from coordinator.clusterers.directions import (
    grouped_by_direction,
    mean_of_each,
    nearest_direction,
    principal_cosines,
)
from emulator.messages import ArrayUpdates


def updates_of(deltas) -> ArrayUpdates:
    ids = np.arange(len(deltas))
    return ArrayUpdates(ids, ids, ids, ids, np.array(deltas, dtype=np.float32))


def groups_of(deltas, most: int) -> list[int]:
    return grouped_by_direction(updates_of(deltas).gram(), most, np.random.default_rng(0)).tolist()


@pytest.mark.parametrize("count", [1, 3, 6])
def test_cosines_with_principal_directions_are_those_of_a_singular_value_decomposition(count):
    updates = np.random.default_rng(1).normal(size=(6, 40))
    # What sklearn's TruncatedSVD(count).fit_transform(updates.T) returns has these columns, times lengths.
    left = np.linalg.svd(updates.T, full_matrices=False)[0][:, :count]
    direct = updates @ left / np.linalg.norm(updates, axis=1)[:, None]
    found = principal_cosines(updates @ updates.T, count)
    assert np.allclose(np.abs(found), np.abs(direct), rtol=0, atol=1e-8)
    assert np.allclose(found @ found.T, direct @ direct.T, rtol=0, atol=1e-8)


def test_there_are_no_more_columns_than_updates_and_those_without_a_direction_are_0():
    gram = updates_of([[2, 0, 0], [-3, 0, 0], [0, 0, 0]]).gram()
    found = principal_cosines(gram, 9)
    assert found.shape == (3, 3)
    assert (found[:, 0] * found[0, 0]).tolist() == [1, -1, 0]
    assert not found[:, 1:].any()


def test_groups_are_those_of_directions_whatever_the_lengths():
    deltas = [[0, 5, 0], [1, 0.1, 0], [0, 0.1, 0], [9, -0.1, 0], [0, 0, -1], [0, 0, -2]]
    assert groups_of(deltas, 3) == [0, 1, 0, 1, 2, 2]


def test_opposite_updates_are_in_different_groups():
    assert groups_of([[1, 1, 0], [-1, -1, 0], [2, 2, 0]], 2) == [0, 1, 0]


def test_equal_updates_make_one_group_and_fewer_updates_than_groups_one_each():
    assert groups_of([[0.3, 0.1, 0.7]] * 5, 3) == [0] * 5
    assert groups_of([[0, 0, 0]] * 2, 2) == [0, 0]
    assert groups_of([[1, 0, 0], [0, 1, 0]], 3) == [0, 1]


def test_weights_are_those_of_the_mean_of_each_group():
    assert mean_of_each(np.array([0, 1, 1, 1, 0])).tolist() == [
        [1 / 2, 0, 0, 0, 1 / 2],
        [0, 1 / 3, 1 / 3, 1 / 3, 0],
    ]


def test_the_nearest_direction_has_the_largest_cosine():
    # The inner product of the second update is largest with the direction that is the longest.
    updates = updates_of([[10, 1, 0], [1, 1, 0.5], [0, -9, 0.1], [-1, 0, 0], [0, 0, 0]])
    directions = np.array([[1.0, 0, 0], [0, 0, 4], [0.5, 0.5, 0]])
    # The fourth is opposite to one direction and orthogonal to another; an update of zero has no direction.
    assert nearest_direction(updates, directions).tolist() == [0, 2, 1, 1, 0]


def test_ties_go_to_the_lowest_direction_and_one_of_zero_is_orthogonal_to_all_updates():
    updates = updates_of([[1, 0, 0], [-1, 0, 0]])
    assert nearest_direction(updates, np.array([[2.0, 0, 0], [1, 0, 0]])).tolist() == [0, 0]
    assert nearest_direction(updates, np.array([[0.0, 0, 0], [1, 0, 0]])).tolist() == [1, 0]
