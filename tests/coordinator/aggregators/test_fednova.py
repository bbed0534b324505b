from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from coordinator.aggregators.fednova import FedNova, FedNovaSettings
from emulator.messages import ArrayUpdates
from experiments import contracts
from tests.coordinator.aggregators.arrived import arrived
from tests.fakes import FakeExecutor, Population, a_view


def updates(delta: list[float], norms: list[float], model: list[int], samples: list[int]) -> ArrayUpdates:
    metrics = {"step_norm": np.array(norms, dtype=np.float64)}
    return replace(arrived(delta, model=model, num_samples=samples), metrics=metrics)


VIEW = a_view(models=[[1.0], [10.0], [5.0]], model_ids=[0, 1, 2])


def test_each_model_has_its_own_mean_per_step_and_its_own_number_of_steps() -> None:
    came = updates([-6, 3, 4], [2, 6, 5], [0, 0, 1], [3, 1, 7])
    # by samples: -3 x 3/4 + 0.5 x 1/4 for each of 2 x 3/4 + 6 x 1/4 steps
    assert FedNova(FedNovaSettings()).aggregate(came, VIEW).tolist() == [[1 - 2.125 * 3], [14], [5]]
    uniform = FedNova(FedNovaSettings(weighting="uniform", rate=0.5)).aggregate(came, VIEW)
    assert uniform.tolist() == [[1 - 0.5 * 1.25 * 4], [12], [5]]


def test_with_equal_steps_it_is_the_mean_of_the_updates() -> None:
    came = updates([-6, 2], [4, 4], [0, 0], [3, 1])
    assert FedNova(FedNovaSettings()).aggregate(came, VIEW).tolist() == [[1 - 4], [10], [5]]


@pytest.mark.parametrize("norm", [np.nan, 0.0, -1.0, np.inf])
def test_an_update_without_a_norm_above_0_is_left_out(norm: float) -> None:
    came = updates([-6, 2], [norm, 4], [0, 0], [3, 1])
    assert FedNova(FedNovaSettings()).aggregate(came, VIEW).tolist() == [[3], [10], [5]]


def test_it_asks_executors_for_the_norms() -> None:
    population = Population(FakeExecutor([1.0, 1.0]), aggregator=FedNova(FedNovaSettings()), rounds=2)
    assert np.array(population.play().models).tolist() == [[0.75]]
    assert population.executor.waves[0].measure == {"step_norm"}


def test_it_meets_the_contract_of_aggregators() -> None:
    contracts.check_aggregator(lambda: FedNova(FedNovaSettings(rate=0.5)))
    contracts.check_aggregator(lambda: FedNova(FedNovaSettings(weighting="uniform")))


def test_a_rate_of_0_is_refused() -> None:
    with pytest.raises(ValidationError, match="rate"):
        FedNovaSettings(rate=0)
