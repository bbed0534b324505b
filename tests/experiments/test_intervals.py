import math

import numpy as np
import pytest

from experiments.intervals import amount_estimate, difference_estimate, mean_estimate, ratio_estimate


def test_the_interval_of_a_mean_is_students_t_by_hand():
    # Values 1, 2, 3: std 1, t(0.975, 2) = 4.302653, half = 4.302653 / sqrt(3).
    estimate = mean_estimate([1.0, 2.0, 3.0])
    assert estimate.mean == 2.0
    assert estimate.ci95 == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-6)
    assert estimate.per_seed == [1.0, 2.0, 3.0]


def test_differences_are_paired():
    # Both arms vary, their difference does not: a paired interval has no width.
    estimate = difference_estimate([0.75, 0.5, 0.25], [0.5, 0.25, 0.0], scale=100)
    assert estimate.mean == 25.0
    assert estimate.ci95 == (25.0, 25.0)


def test_a_ratio_is_a_geometric_mean_with_the_interval_of_its_logarithms():
    # Ratios 1 and 4: logs 0 and ln 4, mean ln 2, std ln 4 / sqrt 2; t(0.975, 1) = 12.7062, so half
    # the interval is 12.7062 * ln 4 / 2 = 12.7062 ln 2.
    estimate = ratio_estimate([10.0, 40.0], [10.0, 10.0])
    assert estimate.mean == pytest.approx(2.0)
    assert estimate.ci95 == pytest.approx((2 / 2**12.7062047, 2 * 2**12.7062047), rel=1e-6)
    assert estimate.per_seed == [1.0, 4.0]


def test_one_seed_has_a_mean_and_no_interval():
    assert mean_estimate([0.5]).as_json() == {"mean": 0.5, "ci95": None, "per_seed": [0.5]}


def test_a_seed_without_a_value_leaves_no_mean():
    assert mean_estimate([0.5, None]).as_json() == {"mean": None, "ci95": None, "per_seed": [0.5, None]}
    assert mean_estimate([]).mean is None


def test_a_time_of_zero_has_no_ratio():
    assert ratio_estimate([1.0, 2.0], [0.0, 1.0]).as_json() == {
        "mean": None,
        "ci95": None,
        "per_seed": [None, 2.0],
    }


def test_arms_of_different_length_cannot_be_paired():
    with pytest.raises(ValueError, match="zip"):
        difference_estimate([1.0], [1.0, 2.0])


def test_five_seeds_cover_the_true_difference_about_95_times_in_100():
    rng = np.random.default_rng(1)
    trials, covered = 4_000, 0
    for _ in range(trials):
        world = rng.normal(0.5, 0.1, 5)  # what a seed's data adds to both arms
        values = world + rng.normal(0.05, 0.02, 5)
        ci95 = difference_estimate(values.tolist(), world.tolist()).ci95
        assert ci95 is not None
        covered += ci95[0] <= 0.05 <= ci95[1]
    assert abs(covered / trials - 0.95) < 3 * math.sqrt(0.95 * 0.05 / trials)


def test_the_interval_of_an_amount_does_not_reach_below_nothing() -> None:
    # mean 3, std 3 sqrt(2), t(0.975, 1) = 12.7: far below 0
    estimate = amount_estimate([0.0, 6.0])
    assert estimate.mean == 3
    assert estimate.ci95 is not None
    assert estimate.ci95[0] == 0
    assert estimate.ci95[1] == pytest.approx(3 + 12.7062 * 3, rel=1e-4)
    assert amount_estimate([1.0]).ci95 is None
