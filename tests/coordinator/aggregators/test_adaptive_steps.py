"""Adam, Yogi, Adagrad and FedScale's Yogi, by hand: three parameters, over several rounds."""

import math

import numpy as np
import pytest

from coordinator.aggregators.fedadagrad import FedAdagrad, FedAdagradSettings
from coordinator.aggregators.fedadam import FedAdam, FedAdamSettings
from coordinator.aggregators.fedyogi import FedYogi, FedYogiSettings
from tests.coordinator.aggregators.arrived import arrived
from tests.fakes import a_view


def steps(part, updates) -> list[list[float]]:
    """The model, which starts at 0, after each round; a round has one or several updates of equal weight."""
    models, made = np.zeros((1, 3), dtype=np.float32), []
    for delta in updates:
        rows = np.atleast_2d(delta)
        models = part.aggregate(arrived(rows), a_view(models=models, model_ids=[0]))
        made.append(models[0].tolist())
    return made


def test_adam():
    # D    = ( 2, -4,  0), ( 1, -2, 6), (0, 0, 0)
    # m    = ( 1, -2,  0), ( 1, -2, 3), (0.5, -1, 1.5)       half of the last one and half of D
    # v    = ( 1,  4,  0), ( 1,  4, 9), (0.75, 3, 6.75)      3/4 of the last one and 1/4 of D^2
    # step = 2 m / (sqrt(v) + 1)
    part = FedAdam(FedAdamSettings(learning_rate=2, beta1=0.5, beta2=0.75, tau=1, initial_v=0))
    first = [1, -4 / 3, 0]
    second = [2, -8 / 3, 1.5]
    roots = math.sqrt(0.75), math.sqrt(3), math.sqrt(6.75)
    third = [2 + 1 / (roots[0] + 1), -8 / 3 - 2 / (roots[1] + 1), 1.5 + 3 / (roots[2] + 1)]
    made = steps(part, [[[2, -6, 0], [2, -2, 0]], [1, -2, 6], [0, 0, 0]])
    assert made == [pytest.approx(row) for row in (first, second, third)]


def test_yogi():
    # D    = (4, 2, 0), (0, -2, 4)
    # m    = (2, 1, 0), (1, -0.5, 2)
    # v    = 5 + 16/4, 5 - 4/4, 5; then 9, 4 (v = D^2: no change), 5 + 16/4
    # step = 2 m / (3 + 1), 2 m / (2 + 1), 2 m / (sqrt(5) + 1) or 2 m / (3 + 1)
    part = FedYogi(FedYogiSettings(learning_rate=2, beta1=0.5, beta2=0.75, tau=1, initial_v=5))
    made = steps(part, [[4, 2, 0], [0, -2, 4]])
    assert made == [pytest.approx([1, 2 / 3, 0]), pytest.approx([1.5, 1 / 3, 1])]


def test_yogi_forgets_a_large_update_slowly_and_adam_at_once():
    # v = 1e4 / 4 = 2500 after D = 100; after D = 1, 2500 - 1/4, but of Adam 2500 * 3/4 + 1/4.
    yogi = FedYogi(FedYogiSettings(learning_rate=1, beta1=0, beta2=0.75, tau=1, initial_v=0))
    adam = FedAdam(FedAdamSettings(learning_rate=1, beta1=0, beta2=0.75, tau=1, initial_v=0))
    rounds = [[100, 0, 0], [1, 0, 0]]
    moved = [np.diff(steps(part, rounds), axis=0)[0, 0] for part in (yogi, adam)]
    assert moved == pytest.approx([1 / (math.sqrt(2499.75) + 1), 1 / (math.sqrt(1875.25) + 1)], rel=1e-4)


def test_adagrad():
    # D = (4, 0, -4), (12, 4, 12); v = 9 + 16 = 25, 9, 25; then 169, 25, 169; step = 2 D / (sqrt(v) + 1)
    part = FedAdagrad(FedAdagradSettings(learning_rate=2, tau=1, initial_v=9))
    first = [8 / 6, 0, -8 / 6]
    made = steps(part, [[4, 0, -4], [12, 4, 12]])
    second = [8 / 6 + 24 / 14, 8 / 6, -8 / 6 + 24 / 14]
    assert made == [pytest.approx(first), pytest.approx(second)]


def test_adagrad_with_a_first_moment():
    part = FedAdagrad(FedAdagradSettings(learning_rate=2, beta1=0.5, tau=1, initial_v=9))
    made = steps(part, [[4, 0, 0], [0, 0, 0]])  # m = 2, 1; v = 25
    assert made == [pytest.approx([4 / 6, 0, 0]), pytest.approx([1, 0, 0])]


def test_the_yogi_of_fedscale():
    # m = 0.1 D; v = 1e-8 + 0.01 D^2 where D^2 is larger; the second round has D = 0.
    made = steps(FedYogi(FedYogiSettings(preset="fedscale")), [[[0.02, 0, 0], [0, 0, 2]], [0, 0, 0]])
    roots = math.sqrt(1e-8 + 0.01 * 0.01**2) + 1e-8, math.sqrt(1e-8 + 0.01) + 1e-8
    first = [3e-3 * 0.001 / roots[0], 0, 3e-3 * 0.1 / roots[1]]
    second = [first[0] + 3e-3 * 0.0009 / roots[0], 0, first[2] + 3e-3 * 0.09 / roots[1]]
    assert made == [pytest.approx(first), pytest.approx(second)]


def test_a_preset_shows_its_numbers_and_gives_way_to_those_that_are_given():
    table = FedYogiSettings(preset="fedscale").model_dump()
    assert table == {
        "learning_rate": 3e-3,
        "beta1": 0.9,
        "tau": 1e-8,
        "initial_v": 1e-8,
        "weighting": "uniform",
        "moments": "reset",
        "beta2": 0.99,
        "preset": "fedscale",
    }
    given = FedYogiSettings(preset="fedscale", tau=1e-3, weighting="samples", moments="averaged")
    assert (given.tau, given.initial_v, given.learning_rate) == (1e-3, 1e-3, 3e-3)
    assert (given.weighting, given.moments) == ("samples", "averaged")
    with pytest.raises(ValueError, match="'fedscale'"):
        FedYogiSettings(preset="flower")
