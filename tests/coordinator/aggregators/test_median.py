import numpy as np
import pytest

from coordinator.aggregators import by_coordinate
from coordinator.aggregators.median import Median
from tests.coordinator.aggregators.arrived import arrived, zero_models
from tests.fakes import NOTHING, a_view


def moved(delta, **more) -> list[list[float]]:
    updates = arrived(delta, **more)
    view = zero_models(int(updates.model.max(initial=0)) + 1, updates.delta.shape[1])
    return Median(NOTHING).aggregate(updates, view).tolist()


@pytest.mark.parametrize(
    ("delta", "middle"), [([5], 5), ([5, 1], 3), ([5, 1, 100], 5), ([1, 2, 4, -1e30], 1.5)]
)
def test_a_model_moves_by_the_value_in_the_middle_or_the_mean_of_the_two(delta, middle):
    assert moved(delta) == [[middle]]


def test_each_parameter_has_a_median_of_its_own():
    assert moved([[1, 30, 0], [2, 10, 0], [3, 20, 9]]) == [[2, 20, 0]]


def test_each_model_moves_by_its_own_updates_and_one_without_any_stays():
    view = a_view(models=[[1.0], [10.0], [0.1]], model_ids=[4, 9, 5])
    new = Median(NOTHING).aggregate(arrived([1, 7, 2, 3], model=[4, 9, 4, 4]), view)
    assert new[:2, 0].tolist() == [3, 17]
    assert new[2:].tobytes() == view.models[2:].tobytes()


def test_samples_are_no_weights_but_an_update_without_samples_is_left_out():
    assert moved([1, 2, 3, -9], num_samples=[1000, 1, 1, 0]) == [[2]]


def test_two_large_updates_have_a_mean_in_the_middle():
    assert moved([3e38, 3e38]) == [[np.float32(3e38)]]


def test_models_wider_than_a_slab_come_out_the_same(monkeypatch):
    delta = np.random.default_rng(0).normal(size=(7, 50))
    whole = moved(delta, model=[0, 1, 0, 1, 0, 1, 1])
    monkeypatch.setattr(by_coordinate, "AT_ONCE", 7 * 9)
    assert moved(delta, model=[0, 1, 0, 1, 0, 1, 1]) == whole
    medians = np.median(delta.astype(np.float32)[[0, 2, 4]], axis=0)
    assert whole[0] == medians.tolist()


def test_the_updates_are_not_reordered():
    updates = arrived([3, 1, 2])
    Median(NOTHING).aggregate(updates, zero_models())
    assert updates.delta[:, 0].tolist() == [3, 1, 2]
