import math

import numpy as np
import pytest

from experiments.results.statistics.intervals import (
    amount_estimate,
    gain_estimate,
    mean_estimate,
    ratio_estimate,
    share_estimate,
)


def test_the_interval_of_a_mean_is_students_t_by_hand():
    # Values 1, 2, 3: std 1, t(0.975, 2) = 4.302653, half = 4.302653 / sqrt(3).
    estimate = mean_estimate([1.0, 2.0, 3.0])
    assert estimate.mean == 2.0
    assert estimate.ci95 == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-6)
    assert estimate.per_seed == [1.0, 2.0, 3.0]


def test_differences_are_paired():
    # Both arms vary, their difference does not: a paired interval has no width.
    estimate = gain_estimate([0.75, 0.5, 0.25], [0.5, 0.25, 0.0], scale=100)
    assert estimate.mean == 25.0
    assert estimate.ci95 == (25.0, 25.0)


def test_a_joint_interval_is_as_wide_as_its_share_of_the_error_asks_for():
    # Gains 1, 2, 3 against one of five arms: t(1 - 0.025 / 4, 2) = 8.860, half = 8.860 / sqrt(3).
    gain = gain_estimate([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], comparisons=4)
    assert gain.ci95 == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-6)
    assert gain.ci95_joint == pytest.approx((2 - 5.1154, 2 + 5.1154), abs=1e-3)
    assert list(gain.as_json()) == ["mean", "ci95", "per_seed", "ci95_joint"]


def test_of_one_comparison_the_joint_interval_is_its_own():
    gain = gain_estimate([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    assert gain.ci95_joint == gain.ci95


def test_a_gain_over_a_seed_that_was_not_measured_is_unknown():
    gain = gain_estimate([1.0, None, 3.0], [0.0, 0.0, 0.0])
    assert gain.as_json() == {"mean": None, "ci95": None, "per_seed": [1.0, None, 3.0], "ci95_joint": None}


def test_a_ratio_is_a_geometric_mean_with_the_interval_of_its_logarithms():
    # Ratios 1, 2 and 4: logs 0, ln 2 and 2 ln 2, mean ln 2, std ln 2; t(0.975, 2) = 4.302653, so half the
    # interval is 4.302653 * ln 2 / sqrt(3).
    estimate = ratio_estimate([10.0, 20.0, 40.0], [10.0, 10.0, 10.0])
    assert estimate.mean == pytest.approx(2.0)
    half = 4.302653 / math.sqrt(3)
    assert estimate.ci95 == pytest.approx((2 / 2**half, 2 * 2**half), rel=1e-6)
    assert estimate.per_seed == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("seeds", [1, 2])
def test_under_three_seeds_there_is_a_mean_and_no_interval(seeds):
    assert mean_estimate([0.5] * seeds).as_json() == {"mean": 0.5, "ci95": None, "per_seed": [0.5] * seeds}


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
        gain_estimate([1.0], [1.0, 2.0])


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("gain", [0.0, 0.05])
def test_t_intervals_of_gains_miss_about_one_time_in_twenty(seeds, gain):
    rng = np.random.default_rng([seeds, int(100 * gain)])
    draws, missed = 2_000, 0
    for _ in range(draws):
        world = rng.normal(0.5, 0.1, seeds)  # the effect of a seed's data, the same in both arms
        reference, values = world + rng.normal(0, 0.02, seeds), world + gain + rng.normal(0, 0.03, seeds)
        ci95 = gain_estimate(values.tolist(), reference.tolist()).ci95
        assert ci95 is not None
        missed += not ci95[0] <= gain <= ci95[1]
    assert 0.035 <= missed / draws <= 0.065


def test_the_interval_of_an_amount_does_not_reach_below_zero() -> None:
    # Mean 2, std 2 sqrt(3), t(0.975, 2) = 4.303: 2 - 4.303 * 2 is below 0.
    estimate = amount_estimate([0.0, 0.0, 6.0])
    assert estimate.mean == 2
    assert estimate.ci95 is not None
    assert estimate.ci95[0] == 0
    assert estimate.ci95[1] == pytest.approx(2 + 2 * 4.302653, rel=1e-4)
    assert amount_estimate([1.0]).ci95 is None


def test_the_interval_of_an_accuracy_stays_within_0_and_1() -> None:
    assert share_estimate([1.0, 1.0, 0.7]).ci95 == (pytest.approx(0.9 - 4.302653 * 0.1), 1.0)
    assert share_estimate([0.0, 0.0, 0.3]).ci95 == (0.0, pytest.approx(0.1 + 4.302653 * 0.1))
