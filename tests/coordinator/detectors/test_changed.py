import numpy as np

from coordinator.detectors.changed import Changed
from tests.fakes import NOTHING


def test_any_difference_in_any_number_is_drift_and_equality_is_not():
    last = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    signal = np.array([[0.5, 0.5], [0.5, np.nextafter(0.5, 1)], [0.0, 1.0]])
    assert Changed(NOTHING).detect(np.arange(len(signal)), signal, last).tolist() == [False, True, True]


def test_counts_that_give_the_same_shares_are_the_same_report():
    shares = np.array([[1, 2]]) / 3
    assert not Changed(NOTHING).detect(np.arange(1), np.array([[7, 14]]) / 21, shares).any()


def test_a_client_that_never_reported_has_drifted():
    assert Changed(NOTHING).detect(
        np.arange(1), np.array([[1.0, 0.0]]), np.full((1, 2), np.nan)
    ).tolist() == [True]
