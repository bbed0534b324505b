"""FLASH by hand: d, its ratio to the square of a constant update, the bound of the denominator, copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from pydantic import ValidationError

from coordinator.aggregators.fedadam import FedAdam, FedAdamSettings
from coordinator.aggregators.flash import Flash, FlashSettings
from coordinator.assignment import Assignment
from emulator.arrays import Floats, Floats32
from experiments import contracts
from tests.coordinator.aggregators.arrived import arrived
from tests.fakes import FakeExecutor, Population, a_view

BETA2 = 0.75


def flash(**settings: object) -> Flash:
    """By default m is D."""
    return Flash(FlashSettings.model_validate({"beta1": 0, "beta2": BETA2, "tau": 0.5, **settings}))


def step(part: Flash, models: Floats32, delta: Sequence[float]) -> Floats32:
    rows = np.array(delta, dtype=np.float32).reshape(len(models), -1)
    view = a_view(models=models, model_ids=list(range(len(models))))
    return part.aggregate(arrived(rows, model=list(range(len(models)))), view)


def ahead(part: Flash) -> Floats:
    d = part.state()["_ahead"]
    assert isinstance(d, np.ndarray)
    return d


def test_in_the_first_round_all_of_the_excess_counts() -> None:
    part = flash()
    step(part, np.zeros((1, 3), dtype="f"), [2, -0.5, 0])
    assert ahead(part).tolist() == [[BETA2 * 4, BETA2 * 0.25, 0]]
    assert part.noted == {"disparity": pytest.approx(np.hypot(BETA2 * 4, BETA2 * 0.25), rel=1e-12)}


@pytest.mark.parametrize("second_moment", ["adam", "yogi"])
def test_two_rounds_by_hand(second_moment: str) -> None:
    """D = 1, then 0.5: v is 0.25 in either case, then 0.25 or, of Yogi, which has v = D^2, the same."""
    part = flash(second_moment=second_moment, learning_rate=1)
    models = step(part, np.zeros((1, 1), dtype="f"), [1])
    assert models.item() == pytest.approx(1 / 0.5)  # 0.5 - 0.75 + 0.5 is less than tau
    models = step(part, models, [0.5])
    assert ahead(part).item() == 0.75  # v = D^2: b = 1
    assert models.item() == pytest.approx(2 + 0.5 / 0.5)
    step(part, models, [0])
    second = 0.25 * BETA2 if second_moment == "adam" else 0.25
    share = 0.25 / (second + 0.25)
    assert ahead(part).item() == pytest.approx(share * 0.75 + (1 - share) * -second)


@pytest.mark.parametrize(("beta2", "rounds"), [(0.9, 500), (0.99, 3000)])
def test_under_a_constant_update_d_falls_to_nearly_1_minus_beta2_times_its_square(
    beta2: float, rounds: int
) -> None:
    """Exactly to `beta2 (1 - beta2) / (1 - beta2 + beta2^2)` times it."""
    part, models = flash(beta2=beta2), np.zeros((1, 2), dtype="f")
    ratios = []
    for _ in range(rounds):
        models = step(part, models, [2.0, 0.01])
        ratios.append(ahead(part)[0] / np.square(np.float32([2.0, 0.01]), dtype=np.float64))
    limit = beta2 * (1 - beta2) / (1 - beta2 + beta2**2)
    assert ratios[0] == pytest.approx([beta2, beta2])
    assert ratios[-1] == pytest.approx([limit, limit], rel=1e-6)
    assert limit == pytest.approx(1 - beta2, rel=0.02)
    assert part.noted["disparity"] == pytest.approx(0, abs=1e-12)


def test_no_denominator_is_below_tau() -> None:
    part = flash(learning_rate=1)
    generator, models = np.random.default_rng(0), np.zeros((1, 50), dtype="f")
    for scale in (1, 1, 100, 0.01, 10):
        delta = scale * generator.normal(size=50).astype("f")
        moved = np.abs(step(part, models, delta.tolist()))
        assert (moved <= np.abs(delta) / 0.5 * (1 + 1e-6)).all()


def test_small_updates_make_the_steps_of_fedadam() -> None:
    """Then d, of the size of D^2, is small beside the root of v, of the size of D."""
    settings = {"beta2": 0.9, "tau": 1e-6, "learning_rate": 1, "initial_v": 0.0}
    adam = FedAdam(FedAdamSettings.model_validate({**settings, "weighting": "uniform"}))
    part = Flash(FlashSettings.model_validate(settings))
    for delta in ([1e-5, -2e-5], [3e-5, 1e-5]):
        view = a_view(models=np.zeros((1, 2)), model_ids=[0])
        made = [aggregator.aggregate(arrived([delta]), view) for aggregator in (adam, part)]
        assert made[1] == pytest.approx(made[0], rel=1e-3)


@pytest.mark.parametrize("moments", ["reset", "averaged"])
def test_copies_of_a_model_keep_d_and_a_merged_one_starts_anew_or_has_the_mean(moments: str) -> None:
    part = flash(moments=moments)
    step(part, np.zeros((2, 1), dtype="f"), [1, 2])
    mixing = np.array([[0, 1, 0], [0, 1, 0], [0.5, 0.5, 0], [0, 0, 1]])
    members = np.zeros((1, 1), dtype=np.int64)
    part.models_changed(Assignment(mixing, np.zeros((1, 1), dtype="f"), np.array([2, 0]), members))
    merged = BETA2 * 2.5 if moments == "averaged" else 0
    assert ahead(part).flatten().tolist() == [BETA2 * 4, BETA2 * 4, merged, 0]


def test_a_model_without_updates_keeps_d_and_is_not_in_the_disparity() -> None:
    part, models = flash(), np.zeros((2, 1), dtype="f")
    step(part, models, [1, 2])
    assert part.noted["disparity"] == pytest.approx(BETA2 * (1 + 4) / 2)
    view = a_view(models=models, model_ids=[0, 1])
    part.aggregate(arrived([3.0], model=[0]), view)
    assert ahead(part)[1].tolist() == [BETA2 * 4]
    assert part.noted["disparity"] == pytest.approx(BETA2 * 9 - 0.25 * BETA2)  # 9 - v, with v = 2.4375
    part.aggregate(arrived([3.0], model=[0], num_samples=[0]), view)
    assert part.noted == {}


def test_the_disparity_of_each_rounds_step_is_in_its_record() -> None:
    population = Population(FakeExecutor([1.0, 1.0]), aggregator=flash(learning_rate=1e-6), rounds=3)
    noted = [record.noted for record in population.play().records]
    # D = 0.5 in all rounds: v is D^2 (1 - beta2^t).
    expected = [0.25 * BETA2**number for number in (1, 2, 3)]
    assert noted == [{"disparity": pytest.approx(disparity, rel=1e-4)} for disparity in expected]


def test_it_meets_the_contract_of_aggregators() -> None:
    contracts.check_aggregator(lambda: flash(moments="averaged"))
    contracts.check_aggregator(lambda: flash(second_moment="yogi"))


def test_its_defaults_start_all_moments_at_0_and_weigh_clients_alike() -> None:
    settings = FlashSettings()
    assert (settings.initial_v, settings.weighting, settings.beta2) == (0, "uniform", 0.99)


@pytest.mark.parametrize(("key", "value"), [("tau", 0), ("second_moment", "adagrad"), ("beta2", 1)])
def test_settings_out_of_range_are_refused(key: str, value: object) -> None:
    with pytest.raises(ValidationError, match=key):
        FlashSettings.model_validate({key: value})
