from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.aggregators.fedbuff import FedBuff, FedBuffSettings
from emulator.messages import ArrayUpdates
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


@pytest.mark.parametrize(
    ("key", "value"), [("rate", 0), ("exponent", -0.5), ("cut_off", -1), ("divide_by", "mean")]
)
def test_settings_without_a_meaning_are_refused(key, value):
    with pytest.raises(ValueError, match=key):
        FedBuffSettings(**{key: value})
