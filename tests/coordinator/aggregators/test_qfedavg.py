from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.aggregators.qfedavg import QFedAvg, QFedAvgSettings
from tests.coordinator.aggregators.arrived import arrived


def a_step(models, delta, loss, *, rate=0.5, model=None, num_samples=None, **settings):
    models = np.array(models, dtype=np.float32)
    updates = replace(
        arrived(delta, model=model, num_samples=num_samples), metrics={"loss_before": np.array(loss)}
    )
    view = SimpleNamespace(models=models, model_ids=np.arange(len(models)), learning_rate=rate)
    return QFedAvg(QFedAvgSettings(**settings)).aggregate(updates, view)


def test_two_rounds_of_three_parameters_by_hand():
    # L = 1 / 0.5 = 2. Round 1: Dw = 2 (w - w_c) = (-2, -4, -4) and (0, 0, 8) with squares 36 and 64,
    # F = 1 and 2: Delta = F Dw = (-2, -4, -4) and (0, 0, 16), h = Dw^2 + 2 F = 38 and 68, so that
    # w = 0 - (-2, -4, 12) / 106.
    first = a_step([[0, 0, 0]], [[1, 2, 2], [0, 0, -4]], [1.0, 2.0])
    assert first[0].tolist() == pytest.approx([2 / 106, 4 / 106, -12 / 106])
    # Round 2: Dw = (-2, 0, 0) and (0, -2, 0) with squares 4, F = 3 and 0.5: Delta = (-6, 0, 0) and
    # (0, -1, 0), h = 4 + 6 and 4 + 1.
    second = a_step(first, [[1, 0, 0], [0, 1, 0]], [3.0, 0.5])
    assert second[0].tolist() == pytest.approx([2 / 106 + 6 / 15, 4 / 106 + 1 / 15, -12 / 106])


def test_the_second_power_by_hand():
    # L = 2, F = 3 and 1, Dw = -2 and 4: Delta = 9 x -2 and 4; h = 2 x 3 x 4 + 2 x 9 and 2 x 16 + 2.
    assert a_step([[1]], [1, -2], [3.0, 1.0], q=2)[0, 0] == pytest.approx(1 + (18 - 4) / (42 + 34))


def test_the_rate_of_local_training_unless_one_is_given():
    assert a_step([[0]], [1], [1.0], rate=0.25)[0, 0] == pytest.approx(1 / (1 + 4))
    assert a_step([[0]], [1], [1.0], rate=0.25, learning_rate=1)[0, 0] == pytest.approx(1 / (1 + 1))


def test_without_a_power_it_is_the_unweighted_mean():
    rng = np.random.default_rng(0)
    delta, models = rng.normal(size=(7, 5)), rng.normal(size=(2, 5)).astype(np.float32)
    model, loss = [0, 1, 0, 0, 1, 0, 1], [*rng.random(6), 0.0]
    mean = FedAvg(FedAvgSettings(weighting="uniform")).aggregate(
        arrived(delta, model=model), SimpleNamespace(models=models, model_ids=np.arange(2))
    )
    step = a_step(models, delta, loss, model=model, num_samples=range(1, 8), q=0)
    assert step.tolist() == [pytest.approx(row) for row in mean.tolist()]


def test_the_larger_the_power_the_more_the_largest_loss_weighs():
    # The direction of a step is that of the weights; updates of norm 1 in two directions.
    shares = []
    for q in (0, 1, 4, 100):
        step = a_step([[0, 0]], [[1, 0], [0, 1]], [2.0, 1.0], q=q)[0]
        shares.append(step[0] / step.sum())
    assert shares == pytest.approx([1 / 2, 2 / 3, 16 / 17, 1])


def test_a_loss_of_0_has_the_power_of_1e_10():
    # F = 1e-10, L = 2 and Dw^2 = 4: h = 0.5 x 1e5 x 4 + 2 x 1e-5, and Delta = 1e-5 x 2.
    assert a_step([[0]], [1], [0.0], q=0.5)[0, 0] == pytest.approx(2e-5 / 2e5, rel=1e-4)
    # Beside another loss it has no weight, and no curvature either if it has not moved.
    assert a_step([[0]], [1, 0], [1.0, 0.0], q=2)[0, 0] == pytest.approx(1 / (1 + 2 * 2))


@pytest.mark.parametrize("loss", [np.nan, np.inf, -np.inf, -1.0])
@pytest.mark.parametrize("q", [0, 1, 2.5])
def test_an_update_whose_loss_is_no_loss_is_left_out(loss, q):
    alone = a_step([[0], [5]], [1], [2.0], q=q)
    assert a_step([[0], [5]], [1, 9], [2.0, loss], q=q).tolist() == alone.tolist()
    assert a_step([[0], [5]], [1, 9], [2.0, loss], model=[0, 1], q=q).tolist() == alone.tolist()


def test_an_update_without_samples_is_left_out():
    alone = a_step([[0]], [1], [2.0])
    assert a_step([[0]], [1, 9], [2.0, np.nan], num_samples=[4, 0]).tolist() == alone.tolist()
    assert a_step([[0]], [1, 9], [2.0, 7.0], num_samples=[4, 0]).tolist() == alone.tolist()


def test_each_model_has_its_own_losses_and_one_without_updates_stays():
    alone = a_step([[1]], [2, 4], [1.0, 3.0])
    step = a_step([[1], [0.1], [1]], [2, 9, 4], [1.0, 1e6, 3.0], model=[0, 2, 0])
    assert step[0].tolist() == alone[0].tolist()
    assert step[1].tobytes() == np.float32([0.1]).tobytes()


@pytest.mark.parametrize(
    ("loss", "rate", "delta"), [(1e308, 1e38, 1e38), (0.0, 5e-324, 1e38), (1e-300, 1.0, 0)]
)
@pytest.mark.parametrize("q", [0, 0.5, 100])
def test_extreme_losses_and_updates_have_finite_weights(loss, rate, delta, q):
    step = a_step([[0]], [delta, 1], [loss, 1.0], rate=rate, q=q)
    assert np.isfinite(step).all()


def test_a_negative_power_is_refused():
    with pytest.raises(ValueError, match=r"(?s)1 validation error.*q\n.*greater than or equal to 0"):
        QFedAvgSettings(q=-0.5)
