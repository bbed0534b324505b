from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from coordinator.aggregators.async_mix import AsyncMix, AsyncMixSettings
from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.view import View
from tests.coordinator.aggregators.arrived import arrived, zero_models
from tests.fakes import FakeExecutor, Population, a_fleet, a_view, ints


def mix(**settings) -> AsyncMix:
    return AsyncMix(AsyncMixSettings(**settings))


def received(models: npt.ArrayLike, started: Sequence[int], view: View) -> View:
    rows = np.array(models, dtype=np.float32).reshape(-1, view.models.shape[1])
    return replace(view, received=rows, started=ints(*started))


def factor(late: int, **settings) -> float:
    """What a model at 0 gets of an update of 1 that started from it, with alpha = 1."""
    updates = replace(arrived([1]), late=ints(late))
    view = received([0], [0], zero_models())
    return float(mix(alpha=1, **settings).aggregate(updates, view)[0, 0])


def test_two_steps_by_hand():
    # Two clients receive 0. The first moves it by 2: x = 0.5 x 2. The other moves it by 4, one step late:
    # alpha / (1 + 1) = 0.25, so x = 0.75 x 1 + 0.25 x 4.
    part = mix(alpha=0.5, staleness="polynomial", a=1)
    first = part.aggregate(arrived([2]), received([0], [0], zero_models()))
    assert first.tolist() == [[1]]
    late = replace(arrived([4]), late=ints(1))
    second = part.aggregate(late, received([0], [0], replace(zero_models(), models=first)))
    assert second.tolist() == [[1.75]]


def test_a_stale_update_pulls_back_towards_the_model_that_it_started_from():
    view = received([0], [0], replace(zero_models(), models=np.full((1, 1), 8, dtype=np.float32)))
    unmoved = replace(arrived([0]), late=ints(5))
    assert mix(alpha=0.25, staleness="constant").aggregate(unmoved, view).tolist() == [[6]]


def test_of_several_updates_the_mean_of_what_each_would_make_is_taken():
    # At 4, of models that started at 0, 2 and 2 and end at 3, 6 and 2: the shares are 1/2, 1/4 and 1/2.
    view = received([0, 2], [0, 1, 1], replace(zero_models(), models=np.full((1, 1), 4, dtype=np.float32)))
    updates = replace(arrived([3, 4, 0]), late=ints(0, 3, 0))
    each = [4 + 0.5 * (3 - 4), 4 + 0.25 * (6 - 4), 4 + 0.5 * (2 - 4)]
    assert mix(alpha=0.5).aggregate(updates, view)[0, 0] == pytest.approx(np.mean(each))


def test_the_factors_of_staleness():
    assert [factor(s, staleness="constant") for s in (0, 9)] == [1, 1]
    assert [factor(s) for s in (0, 3, 15)] == [1, 0.5, 0.25]
    assert [factor(s, a=1) for s in (0, 3)] == [1, 0.25]
    # 1 / (10 (s - 4) + 1), and 1 / (0.5 (s - 2) + 1).
    assert [factor(s, staleness="hinge") for s in (4, 5, 6)] == pytest.approx([1, 1 / 11, 1 / 21])
    assert [factor(s, staleness="hinge", a=0.5, b=2) for s in (2, 4)] == [1, 0.5]


@pytest.mark.parametrize("alpha", [0.6, 1.0])
def test_fresh_updates_make_the_step_of_fedavg_times_alpha(alpha):
    rng = np.random.default_rng(0)
    fresh, models = arrived(rng.normal(size=(5, 3)), model=[4, 9, 4, 4, 9]), rng.normal(size=(2, 3))
    view = received(models, [0, 1, 0, 0, 1], a_view(models=models, model_ids=[4, 9]))
    expected = FedAvg(FedAvgSettings(weighting="uniform")).aggregate(fresh, view) - view.models
    assert mix(alpha=alpha).aggregate(fresh, view) - view.models == pytest.approx(alpha * expected, rel=1e-5)


def test_updates_without_samples_are_not_among_the_number():
    view = received([0, 7], [0, 1], zero_models())
    updates = arrived([3, 0], num_samples=[2, 0])
    assert mix(alpha=1).aggregate(updates, view).tolist() == [[3]]
    silent = received([7], [0], a_view(models=[[0.1]], model_ids=[0]))
    assert mix().aggregate(arrived([0], num_samples=[0]), silent).tobytes() == silent.models.tobytes()


def test_many_models_some_at_a_time_are_the_same_to_the_bit(monkeypatch):
    draw = np.random.default_rng(0)
    late = draw.integers(0, 9, 40)
    updates = replace(arrived(draw.normal(size=(40, 3)), model=draw.integers(0, 9, 40).tolist()), late=late)
    started = draw.integers(0, 6, 40).tolist()
    view = received(draw.normal(size=(6, 3)), started, zero_models(11, 3))
    together = mix().aggregate(updates, view)
    monkeypatch.setattr("coordinator.aggregators.fedavg.MODELS_AT_ONCE", 2)
    assert mix().aggregate(updates, view).tobytes() == together.tobytes()


def test_the_order_of_ids_does_not_matter():
    updates = replace(arrived([2, 4], model=[9, 4]), late=ints(0, 1))
    view = received([0, 0], [0, 1], a_view(models=[[1], [3]], model_ids=[9, 4]))
    # 1 + 0.5 (2 - 1), and 3 + 0.5 (4 - 3).
    assert mix(alpha=0.5, staleness="constant").aggregate(updates, view).tolist() == [[1.5], [3.5]]


def test_in_a_run_it_mixes_in_the_models_that_were_sent_out():
    # Visits take 1 s and 2.5 s, and training moves a model halfway to 8: the fast client makes 0.5 x 4 = 2
    # of 0, and then 2 + 0.5 (5 - 2); the slow one started from 0, two steps ago, and ends at 4.
    played = Population(
        FakeExecutor([8.0, 8.0]),
        fleet=a_fleet(2, [0.5, 2.0], 16.0, 16.0),
        aggregator=mix(alpha=0.5, staleness="constant"),
        pacing=lambda cohort: Buffered(BufferedSettings(buffer=1, concurrency=2), cohort),
        rounds=3,
        participants=1,
    ).play()
    assert [record.completed for record in played.records] == [[0], [0], [1]]
    assert played.models == [[3.5 + 0.5 * (4 - 3.5)]]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": 1.1}, "alpha"),
        ({"a": -1}, "a"),
        ({"staleness": "constant", "a": 1}, "a = 1: needs staleness = 'hinge' or 'polynomial'"),
        ({"b": 4}, "b = 4: needs staleness = 'hinge'"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings, problem):
    with pytest.raises(ValueError, match=problem):
        AsyncMixSettings(**settings)
