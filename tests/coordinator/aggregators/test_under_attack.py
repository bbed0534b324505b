"""Ten clients with the same target, two of which send their update reversed and ten times as large."""

import numpy as np
import pytest

from coordinator.aggregators import AGGREGATORS
from tests.coordinator.aggregators.arrived import arrived
from tests.fakes import a_view

TARGET = np.array([1.0, -2.0, 3.0], dtype=np.float32)


def distance_after(name: str, rounds: int = 12) -> float:
    """The final distance to the target; honest clients move the model half of the way in each round."""
    part = AGGREGATORS.find(name)
    aggregator = part(part.Settings())
    models = np.zeros((1, 3), dtype=np.float32)
    for round_ in range(rounds):
        noise = np.random.default_rng(round_).normal(0, 0.01, (10, 3))
        delta = 0.5 * (TARGET - models) + noise
        delta[[2, 7]] *= -10
        models = aggregator.aggregate(arrived(delta), a_view(models=models, model_ids=[0]))
    return float(np.linalg.norm(models[0].astype(np.float64) - TARGET))


def test_a_mean_is_carried_away():
    assert distance_after("fedavg") > 10 * np.linalg.norm(TARGET)


@pytest.mark.parametrize("name", ["median", "krum"])
def test_robust_aggregators_arrive(name):
    assert distance_after(name) < 0.05


def test_a_trimmed_mean_arrives_if_it_trims_as_many_updates_as_are_false():
    part = AGGREGATORS.find("trimmed_mean")
    delta = np.full((10, 3), 0.5)
    delta[[2, 7]] *= -10
    view = a_view(models=np.zeros((1, 3)), model_ids=[0])
    cut = part(part.Settings(trim=0.2)).aggregate(arrived(delta), view)
    assert cut.tolist() == [[0.5] * 3]
    # With one update cut at each end, the second false update stays among eight: (7 x 0.5 - 5) / 8.
    assert part(part.Settings(trim=0.1)).aggregate(arrived(delta), view).tolist() == [[-0.1875] * 3]


def test_clipped_byzantine_clients_slow_a_mean_but_do_not_carry_it_away():
    # Two of ten equal steps go backwards: 0.6 of the way in each round, instead of all of it.
    assert distance_after("norm_clip") < 0.1
