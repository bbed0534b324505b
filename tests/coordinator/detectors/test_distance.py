import numpy as np
import pytest

from coordinator.detectors.distance import Distance, DistanceSettings
from coordinator.distances import DISTANCES

LAST = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
SIGNAL = np.array([[0.5, 0.5], [0.75, 0.25], [1.0, 0.0]])  # squared distances 0, 1/8 and 1/2


def detected(signal=SIGNAL, last=LAST, **settings) -> list[bool]:
    return Distance(DistanceSettings(**settings)).detect(np.arange(len(signal)), signal, last).tolist()


def test_a_client_drifted_if_it_is_farther_than_eps_and_not_at_eps_itself():
    assert detected(eps=0.125) == [False, False, True]
    assert detected(eps=np.nextafter(0.125, 0)) == [False, True, True]


def test_the_distance_is_a_setting():
    assert detected(eps=0.5, distance="l1") == [False, False, True]
    assert detected(eps=0.9, distance="l1") == [False, False, True]
    assert detected(eps=0.4, distance="euclidean") == [False, False, True]


@pytest.mark.parametrize("distance", DISTANCES)
def test_each_client_is_compared_with_its_own_last_report(distance):
    rng = np.random.default_rng(0)
    signal, last = rng.dirichlet(np.ones(4), size=(2, 50))
    apart = np.diagonal(DISTANCES[distance](signal, last))
    eps = float(np.median(apart))
    assert detected(signal, last, eps=eps, distance=distance) == (apart > eps).tolist()


def test_a_signal_that_is_not_a_number_is_no_drift():
    assert detected(np.full((3, 2), np.nan), eps=0.1) == [False] * 3


@pytest.mark.parametrize(
    ("settings", "problem"), [({}, "eps"), ({"eps": 0}, "eps"), ({"eps": 1, "distance": "l3"}, "l1")]
)
def test_eps_is_required_and_positive_and_an_unknown_distance_lists_the_choices(settings, problem):
    with pytest.raises(ValueError, match=problem):
        DistanceSettings(**settings)
