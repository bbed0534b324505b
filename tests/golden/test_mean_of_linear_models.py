"""The mean of two linear models, worked out by hand."""

import numpy as np
import pytest

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from tests.fakes import FakeClusterer, FakeExecutor, FakeStream, Population, fresh


# From (0, 0): client 0 goes half of the way to (1, 2), client 1 half of the way to (-3, 10).
# Updates (0.5, 1) and (-1.5, 5); client 0 holds 1 sample, client 1 holds 3.
def two_clients(weighting: str) -> Population:
    return Population(
        FakeExecutor([[1.0, 2.0], [-3.0, 10.0]], num_parameters=2),
        stream=FakeStream([[[1.0], [1.0]]], train=[1, 3]),
        aggregator=FedAvg(FedAvgSettings(weighting=weighting)),
    )


@pytest.mark.parametrize(
    ("weighting", "model"),
    [
        ("samples", [-1.0, 4.0]),  # (0.5 - 4.5) / 4 and (1 + 15) / 4
        ("uniform", [-0.5, 3.0]),  # (0.5 - 1.5) / 2 and (1 + 5) / 2
    ],
)
def test_one_round_gives_the_mean_of_the_two_models(weighting, model):
    assert two_clients(weighting).play().models == [model]


def test_two_rounds_start_the_second_from_the_mean_of_the_first():
    # From (-0.5, 3): half of the way to (1, 2) is +(0.75, -0.5), to (-3, 10) is +(-1.25, 3.5).
    population = two_clients("uniform")
    population.rounds = 2
    assert population.play().models == [[-0.75, 4.5]]


def test_clusters_are_averaged_apart_and_one_without_updates_keeps_its_model():
    population = two_clients("samples")
    population.clusterer = FakeClusterer({0: fresh([0, 1], num_parameters=2)})
    population.participants = 1  # half a visit each: the tie goes to the lower lane
    played = population.play()
    assert played.executor.trained == [[0]]
    assert played.models == [[0.5, 1.0], [0.0, 0.0]]
    assert played.coordinator.federation.bank.versions.tolist() == [1, 0]


def test_the_mean_of_equal_models_is_that_model_to_the_bit():
    third = 1 / 3
    played = Population(
        FakeExecutor([third] * 3, pull=1.0), stream=FakeStream([[[1.0]] * 3], train=[1, 1, 1])
    ).play()

    assert played.models == [[float(np.float32(third))]]
