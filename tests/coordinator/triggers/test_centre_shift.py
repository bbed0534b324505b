import numpy as np
import pytest

from coordinator.distances import DISTANCES
from coordinator.triggers.base import Moved
from coordinator.triggers.centre_shift import CentreShift, CentreShiftSettings
from emulator.messages import Trigger

# Centres at 0 and 4 on a line; the second moved to 5, and was at 7 after the last global clustering.
LINE = {"centers": [[0.0], [5.0]], "previous": [[0.0], [4.0]], "last_global": [[0.0], [7.0]]}


def evaluated(distance="euclidean", *, centers=LINE, reports=((0.0,), (5.0,)), **settings) -> Trigger:
    """The trigger of centres 5 apart that moved by 1, or by 2 since the last global clustering."""
    arrays = {name: np.array(values) for name, values in centers.items()}
    reports = np.array(reports)
    members, rng = np.arange(len(reports)), np.random.default_rng
    moved = Moved(reports=reports, members=members, distance=distance, rng=rng, **arrays)
    return CentreShift(CentreShiftSettings(**settings)).evaluate(moved)


def test_a_shift_is_compared_with_a_share_of_the_mean_distance_of_the_new_centres():
    assert evaluated(threshold=0.2) == Trigger(1.0, 5.0, 0.2, 2, True)
    assert evaluated(threshold=0.21) == Trigger(1.0, 5.0, 0.21, 2, False)


def test_a_shift_from_the_last_global_clustering_adds_up():
    assert evaluated(threshold=0.4, shift_from="last_global") == Trigger(2.0, 5.0, 0.4, 2, True)


def test_between_squared_distances_the_threshold_is_squared():
    assert evaluated("squared_euclidean", threshold=0.19) == Trigger(1.0, 25.0, 0.19, 2, True)
    assert evaluated("squared_euclidean", threshold=0.21) == Trigger(1.0, 25.0, 0.21, 2, False)


def test_the_mean_is_over_pairs_of_different_centres():
    three = {name: [[0.0], [3.0], [9.0]] for name in LINE}
    assert evaluated(centers=three).mean_distance == pytest.approx((3 + 9 + 6) / 3)


@pytest.mark.parametrize("distance", DISTANCES)
def test_shift_and_mean_are_taken_in_the_distance_of_the_clusterer(distance):
    before, after = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 2))
    centers = {"centers": after, "previous": before, "last_global": before}
    trigger = evaluated(distance, centers=centers)
    shifts = [DISTANCES[distance](after[[row]], before[[row]])[0, 0] for row in (0, 1)]
    assert trigger.shift == max(shifts)
    assert trigger.mean_distance == DISTANCES[distance](after[:1], after[1:])[0, 0]


def test_a_single_centre_fires_when_reports_differ_and_never_if_that_is_the_threshold():
    one = {name: values[:1] for name, values in LINE.items()}
    assert evaluated(centers=one) == Trigger(0.0, None, 1 / 3, 1, True)
    assert evaluated(centers=one, reports=((1.0,), (1.0,))).fired is False
    assert evaluated(centers=one, threshold="never") == Trigger(0.0, None, None, 1, False)


def test_zero_fires_always_and_never_does_not():
    still = {name: [[0.0], [4.0]] for name in LINE}
    assert evaluated(centers=still, threshold=0).fired is True
    assert evaluated(threshold="never") == Trigger(1.0, 5.0, None, 2, False)


@pytest.mark.parametrize(
    ("threshold", "problem"),
    [
        ("nevr", 'must be a number, or "never"'),
        (-0.1, "greater than or equal to 0"),
        ("0.5", "must be a number"),
    ],
)
def test_a_threshold_is_a_number_or_never(threshold, problem):
    with pytest.raises(ValueError, match=problem):
        CentreShiftSettings(threshold=threshold)
