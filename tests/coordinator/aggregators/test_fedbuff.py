from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.aggregators.fedbuff import FedBuff, FedBuffSettings
from coordinator.assignment import Assignment
from emulator.messages import ArrayUpdates
from experiments import contracts
from tests.coordinator.aggregators.arrived import arrived, zero_models
from tests.fakes import a_view, ints

# By staleness 0, 3 and 8 the discounts are 1, 1/2 and 1/3.
LATE = (0, 3, 8)


def fedbuff(**settings) -> FedBuff:
    return FedBuff(FedBuffSettings(**settings))


def stale(delta: npt.ArrayLike, late: Sequence[int] = LATE, **more) -> ArrayUpdates:
    return replace(arrived(delta, **more), late=ints(*late))


def moved(delta: npt.ArrayLike, late: Sequence[int] = LATE, num_samples=None, **settings) -> float:
    new = fedbuff(**settings).aggregate(stale(delta, late, num_samples=num_samples), zero_models())
    return float(new[0, 0])


def test_stale_updates_shorten_the_step_if_it_is_divided_by_their_number():
    assert moved([6, 6, 6]) == pytest.approx((6 + 3 + 2) / 3)
    assert moved([6, 6, 6], divide_by="number", rate=0.5) == pytest.approx((6 + 3 + 2) / 6)


def test_stale_updates_alone_make_a_full_step_if_it_is_divided_by_the_sum_of_discounts():
    assert moved([6, 6, 6], late=(3, 3, 3), divide_by="sum") == pytest.approx(6)
    assert moved([6, 0, 0], divide_by="sum") == pytest.approx(6 / (1 + 1 / 2 + 1 / 3))


@pytest.mark.parametrize(("exponent", "discount"), [(0, 1), (0.5, 1 / 2), (1, 1 / 4), (2, 1 / 16)])
def test_the_exponent_says_what_staleness_takes_off(exponent, discount):
    assert moved([0, 2], late=(0, 3), exponent=exponent) == pytest.approx(discount)


def test_an_update_beyond_the_cut_off_counts_for_nothing_but_among_the_number():
    assert moved([6, 6, 6], cut_off=3) == pytest.approx((6 + 3) / 3)
    assert moved([6, 6, 6], cut_off=3, divide_by="sum") == pytest.approx(6)
    assert moved([6, 6, 6], cut_off=0) == 2


def test_shares_may_follow_the_samples():
    assert moved([4, 2], late=(0, 3), num_samples=[1, 3], weighting="samples") == pytest.approx((4 + 3) / 4)
    by_sum = moved([4, 2], late=(0, 3), num_samples=[1, 3], weighting="samples", divide_by="sum")
    assert by_sum == pytest.approx((4 + 3) / (1 + 1.5))


@pytest.mark.parametrize("divide_by", ["number", "sum"])
def test_a_model_of_which_nothing_counts_stays_to_the_bit(divide_by):
    view = a_view(models=[[0.1], [0.7]], model_ids=[4, 9])
    of_one = stale([5, 5], late=(6, 7), model=[4, 4])
    new = fedbuff(cut_off=5, divide_by=divide_by).aggregate(of_one, view)
    assert new.tobytes() == view.models.tobytes()
    assert new.dtype == np.float32


def test_each_model_is_divided_by_its_own_updates():
    new = fedbuff(divide_by="sum").aggregate(stale([6, 6, 4], model=[0, 0, 1]), zero_models(2))
    assert new[:, 0].tolist() == pytest.approx([6, 4])


@pytest.mark.parametrize("divide_by", ["number", "sum"])
@pytest.mark.parametrize("weighting", ["samples", "uniform"])
def test_fresh_updates_make_the_step_of_fedavg_to_the_bit(divide_by, weighting):
    fresh = arrived(np.random.default_rng(0).normal(size=(5, 3)), num_samples=[3, 1, 4, 1, 5])
    view = zero_models(1, 3)
    expected = FedAvg(FedAvgSettings(weighting=weighting)).aggregate(fresh, view)
    part = fedbuff(divide_by=divide_by, weighting=weighting)
    assert part.aggregate(fresh, view).tobytes() == expected.tobytes()
    # The view says nothing of staleness where there is none.
    unsaid, said = view, replace(view, staleness=0 * fresh.client)
    declared = [part.weights(fresh.model, fresh.num_samples, of).tolist() for of in (unsaid, said)]
    assert declared[0] == declared[1]


def test_many_models_some_at_a_time_are_the_same_to_the_bit(monkeypatch):
    draw = np.random.default_rng(0)
    updates = replace(
        arrived(draw.normal(size=(40, 3)), model=draw.integers(0, 9, 40).tolist()),
        late=draw.integers(0, 9, 40),
    )
    together = fedbuff().aggregate(updates, zero_models(11, 3))
    monkeypatch.setattr("coordinator.aggregators.fedavg.MODELS_AT_ONCE", 2)
    assert fedbuff().aggregate(updates, zero_models(11, 3)).tobytes() == together.tobytes()


def flsim(buffers, lr: float, momentum: float, exponent: float, avg_staleness: int) -> list[float]:
    """The model of FLSim's asynchronous trainer, from 0 on, after each of `buffers` of (change, staleness).

    Its reducer sums weighted differences of the received model and the trained one; torch's SGD steps down.
    """
    weight_of_mean = 1 / (1 + avg_staleness) ** exponent
    model, velocity, after = 0.0, None, []
    for buffer in buffers:
        gradient = 0.0
        for change, staleness in buffer:
            weight = (1 / (1 + staleness) ** exponent) / weight_of_mean
            gradient += weight * -change
        velocity = gradient if velocity is None else momentum * velocity + gradient
        model -= lr * velocity
        after.append(model)
    return after


@pytest.mark.parametrize(("momentum", "exponent", "mean"), [(0.9, 0.5, 1), (0.0, 1.0, 3), (0.5, 0.0, 1)])
def test_a_sum_with_momentum_makes_the_30_steps_of_flsim(momentum, exponent, mean):
    draw = np.random.default_rng(3)
    buffers = [
        list(zip(draw.normal(size=size).tolist(), draw.integers(0, 9, size).tolist(), strict=True))
        for size in draw.integers(1, 7, 30).tolist()
    ]
    rate = 0.1 * (1 + mean) ** exponent
    part = fedbuff(combine="sum", momentum=momentum, exponent=exponent, rate=rate)
    models, ours = np.zeros((1, 1), dtype=np.float32), []
    for buffer in buffers:
        changes, late = zip(*buffer, strict=True)
        models = part.aggregate(stale(changes, late), a_view(models=models, model_ids=[0]))
        ours.append(float(models[0, 0]))
    assert ours == pytest.approx(flsim(buffers, 0.1, momentum, exponent, mean), abs=1e-5)


def test_a_mean_may_have_momentum_too():
    part, buffers = fedbuff(momentum=0.5, rate=2), ([1, 3], [0, 0], [-1, -1])
    moves = [part.aggregate(stale(delta, (0, 0)), zero_models())[0, 0] for delta in buffers]
    assert moves == [4, 2, -1]


@pytest.mark.parametrize("late", [(9, 9), (0, 0)], ids=["all too stale", "no samples"])
def test_a_model_of_which_no_update_counts_makes_no_step_and_its_momentum_stays(late):
    part = fedbuff(combine="sum", momentum=0.5, cut_off=5)
    view = a_view(models=[[0.0], [1.0]], model_ids=[4, 9])
    assert part.aggregate(stale([8, 6], (0, 0), model=[4, 9]), view).tolist() == [[8], [7]]
    samples = [0, 0] if late == (0, 0) else None
    delta = [0, 0] if samples else [8, 6]
    nothing = stale(delta, late, model=[9, 9], num_samples=samples)
    assert part.aggregate(nothing, view).tolist() == view.models.tolist()
    assert part.aggregate(stale([0, 0], (0, 0), model=[4, 9]), view).tolist() == [[4], [4]]


def test_momentum_follows_copies_and_starts_anew_in_models_that_are_mixed_or_new():
    part = fedbuff(combine="sum", momentum=0.5)
    part.aggregate(stale([8, 6], (0, 0), model=[0, 1]), zero_models(2))
    mixing = np.array([[0, 1, 0], [0.5, 0.5, 0], [0, 0, 1], [1, 0, 0]])
    part.models_changed(Assignment(mixing, np.zeros((1, 1), "f"), ints(3, 0), np.zeros((1, 1), int)))
    moved = part.aggregate(stale([0, 0, 0, 0], (0,) * 4, model=[0, 1, 2, 3]), zero_models(4))
    assert moved[:, 0].tolist() == [3, 0, 0, 4]


def test_with_momentum_it_meets_the_contract_of_aggregators():
    contracts.check_aggregator(lambda: fedbuff(combine="sum", momentum=0.9))
    contracts.check_aggregator(lambda: fedbuff(momentum=0.9, cut_off=5, divide_by="sum"))


def test_a_sum_that_is_to_be_divided_is_refused_in_one_line():
    with pytest.raises(ValueError, match=r"divide_by = 'sum': a sum is not divided; needs combine = 'mean'"):
        fedbuff(combine="sum", divide_by="sum")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("momentum", 1),
        ("momentum", -0.1),
        ("combine", "total"),
        ("rate", 0),
        ("exponent", -0.5),
        ("cut_off", -1),
        ("divide_by", "mean"),
    ],
)
def test_settings_without_a_meaning_are_refused(key, value):
    with pytest.raises(ValueError, match=key):
        FedBuffSettings(**{key: value})
