import numpy as np
import pytest

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from emulator.messages import ArrayUpdates
from tests.fakes import a_view, ints


def updates(model, delta, num_samples) -> ArrayUpdates:
    rows = len(model)
    return ArrayUpdates(
        client=np.arange(rows),
        model=np.array(model, dtype=np.int64),
        num_samples=np.array(num_samples),
        num_steps=np.ones(rows, dtype=np.int64),
        delta=np.array(delta, dtype=np.float32).reshape(rows, 1),
    )


def fedavg(weighting: str = "samples") -> FedAvg:
    return FedAvg(FedAvgSettings(weighting=weighting))


# Bank rows 0, 1, 2 have ids 4, 9, 5.
VIEW = a_view(models=[[1.0], [10.0], [0.1]], model_ids=[4, 9, 5])


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [
        ("samples", [1 + (1 * 4 + 3 * 8) / 4, 10 - 2]),  # 8, 8
        ("uniform", [1 + (4 + 8) / 2, 10 - 2]),  # 7, 8
    ],
)
def test_each_model_moves_by_the_weighted_mean_of_its_own_updates(weighting, expected):
    arrived = updates([4, 4, 9], [4, 8, -2], [1, 3, 7])
    assert fedavg(weighting).aggregate(arrived, VIEW)[:2, 0].tolist() == expected


@pytest.mark.parametrize("weighting", ["samples", "uniform"])
def test_a_model_without_updates_stays_to_the_bit(weighting):
    new = fedavg(weighting).aggregate(updates([4], [0.3], [5]), VIEW)
    assert new[1:].tobytes() == VIEW.models[1:].tobytes()
    assert new.dtype == np.float32


def test_rows_are_found_by_id_not_by_place():
    new = fedavg().aggregate(updates([5], [1], [1]), VIEW)
    assert new[:, 0].tolist() == pytest.approx([1, 10, 1.1])


def test_an_update_that_is_not_finite_spoils_its_own_model_alone():
    new = fedavg().aggregate(updates([4, 9], [np.nan, 1], [1, 1]), VIEW)
    assert np.isnan(new[0]).all()
    assert new[1:, 0].tolist() == [11, pytest.approx(0.1)]


def test_a_client_without_samples_weighs_nothing_and_alone_leaves_the_model():
    assert fedavg().aggregate(updates([4, 4], [2, 100], [5, 0]), VIEW)[0, 0] == 3
    assert fedavg().aggregate(updates([4], [100], [0]), VIEW)[0, 0] == 1


def test_the_mean_of_many_is_taken_in_double_precision():
    # 2**24 + 1 is not a float32: sums of float32 would lose the ones.
    delta = [2.0**24, 1, 1, 1]
    new = fedavg("uniform").aggregate(updates([4] * 4, delta, [1] * 4), a_view(models=[[0.0]], model_ids=[4]))
    assert new[0, 0] == np.float32((2.0**24 + 3) / 4)


def test_nothing_came_back_nothing_changes():
    new = fedavg().aggregate(updates([], np.zeros((0, 1)), ints()), VIEW)
    assert new.tobytes() == VIEW.models.tobytes()


def test_unknown_weightings_are_refused():
    with pytest.raises(ValueError, match="'samples' or 'uniform'"):
        FedAvgSettings(weighting="loss")


@pytest.mark.parametrize("weighting", ["samples", "uniform"])
def test_models_some_at_a_time_are_the_same_to_the_bit(weighting, monkeypatch):
    draw = np.random.default_rng(0)
    ids, rows = draw.permutation(40)[:11], 60
    arrived = ArrayUpdates(
        client=np.arange(rows),
        model=draw.choice(ids[:9], rows),
        num_samples=draw.integers(0, 50, rows),
        num_steps=np.ones(rows, dtype=np.int64),
        delta=draw.normal(size=(rows, 3)).astype(np.float32),
        group=draw.integers(0, 3, rows),
    )
    view = a_view(models=draw.normal(size=(11, 3)), model_ids=ids)
    together = fedavg(weighting).aggregate(arrived, view)
    for at_once in (1, 2, 4):
        monkeypatch.setattr("coordinator.aggregators.fedavg.MODELS_AT_ONCE", at_once)
        assert fedavg(weighting).aggregate(arrived, view).tobytes() == together.tobytes()
