import pytest

from coordinator.aggregators.norm_clip import NormClip, NormClipSettings
from tests.coordinator.aggregators.arrived import arrived, zero_models


def moved(delta, max_norm=None, weighting="samples", **more) -> list[list[float]]:
    updates = arrived(delta, **more)
    part = NormClip(NormClipSettings(max_norm=max_norm, weighting=weighting))
    view = zero_models(int(updates.model.max()) + 1, updates.delta.shape[1])
    return part.aggregate(updates, view).tolist()


def test_an_update_longer_than_allowed_is_shortened_and_keeps_its_direction():
    # (30, 40) has norm 50 and comes down to (3, 4); (0, 2) stays.
    assert moved([[30, 40], [0, 2]], max_norm=5) == [[1.5, 3]]


def test_an_update_of_just_that_norm_stays():
    assert moved([[3, 4]], max_norm=5) == [[3, 4]]


def test_updates_weigh_as_in_the_mean():
    assert moved([100, 1], max_norm=2, num_samples=[3, 1]) == [[(3 * 2 + 1) / 4]]
    assert moved([100, 1], max_norm=2, num_samples=[3, 1], weighting="uniform") == [[1.5]]


def test_without_a_norm_it_is_the_median_one_of_each_model_alone():
    # Model 0 has norms 1, 2 and 300, so 2; model 1 has 8 and 10, so 9.
    new = moved([1, 8, -2, 10, 300], model=[0, 1, 0, 1, 0])
    assert new == [[pytest.approx(1 / 3)], [8.5]]


def test_updates_without_samples_do_not_count_in_the_median():
    assert moved([6, 2, 0, 0, 0], num_samples=[1, 1, 0, 0, 0]) == [[3]]  # the median of 6 and 2 is 4


def test_updates_of_nothing_are_nothing():
    assert moved([0, 0]) == [[0]]


def test_a_norm_of_zero_is_refused():
    with pytest.raises(ValueError, match="greater than 0"):
        NormClipSettings(max_norm=0)
