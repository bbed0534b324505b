import json
import math
from pathlib import Path

import numpy as np
import pytest

from experiments.results.statistics.intervals import (
    amount_estimate,
    gain_estimate,
    mean_estimate,
    pointwise_estimates,
    ratio_estimate,
    share_estimate,
    share_of_seeds,
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


def test_ratios_that_no_float_holds_are_none_nor_is_an_interval_that_reaches_beyond():
    assert ratio_estimate([1.0, 1e300], [1e300, 5e-324]).per_seed == [1e-300, None]
    assert ratio_estimate([5e-324], [2.0]).mean is None
    wide = ratio_estimate([1e-100, 1.0, 1e100], [1e100, 1.0, 1e-100])
    assert wide.mean == pytest.approx(1.0)
    assert wide.ci95 is None


def test_arms_of_different_length_cannot_be_paired():
    with pytest.raises(ValueError, match="zip"):
        gain_estimate([1.0], [1.0, 2.0])


OF_ARMS = np.array(list(json.loads(Path(__file__).with_name("residuals.json").read_text())["arms"].values()))
"""(n_arms, 10) gains in mean accuracy minus their mean over ten seeds, in units of their spread."""

RESIDUALS = OF_ARMS.ravel()


def coverage(draw, mean: float, seeds: int, draws: int = 20_000) -> float:
    """How often, in %, the t interval of `seeds` values that `draw(rng, shape)` draws has their true mean."""
    means, halves = pointwise_estimates(draw(np.random.default_rng(seeds), (seeds, draws)))
    assert halves is not None
    return 100 * float(np.mean(np.abs(means - mean) <= halves))


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_t_intervals_cover_normal_draws_and_residuals_of_our_own_runs(seeds):
    assert 94.5 <= coverage(lambda rng, shape: rng.normal(size=shape), 0.0, seeds) <= 95.5
    assert 93 <= coverage(lambda rng, shape: rng.choice(RESIDUALS, shape), RESIDUALS.mean(), seeds) <= 96


def test_within_arms_residuals_are_covered_as_often_as_ten_normal_values_each():
    """Ten values spread less than what they are of, normal or not: that alone costs two or three points."""
    normal = np.random.default_rng(0).normal(size=OF_ARMS.shape)

    def of_arms(arms):
        return np.mean(
            [coverage(lambda rng, shape, ten=ten: rng.choice(ten, shape), ten.mean(), 5, 500) for ten in arms]
        )

    assert 91 <= of_arms(OF_ARMS) <= 94
    assert abs(of_arms(OF_ARMS) - of_arms(normal)) <= 1


def test_t_intervals_of_skewed_figures_cover_less():
    assert 80 <= coverage(lambda rng, shape: rng.lognormal(size=shape), math.exp(0.5), 5) <= 84
    assert 86 <= coverage(lambda rng, shape: rng.exponential(size=shape), 1.0, 5) <= 90


@pytest.mark.parametrize(("share", "seeds"), [(0.8, 5), (0.9, 5), (0.9, 10)])
def test_where_a_trigger_fires_in_most_seeds_alone_a_t_interval_covers_too_little(share, seeds):
    """Two groups far apart: five seeds are of one group with probability 0.8^5 + 0.2^5 = 33 %, and miss."""

    def draw(rng, shape):
        return 100.0 * (rng.random(shape) < share) + rng.normal(size=shape)

    of_one_group = share**seeds + (1 - share) ** seeds
    assert coverage(draw, 100.0 * share, seeds) <= 100 * (1 - of_one_group) + 1


def test_of_an_arm_with_a_trigger_nothing_but_the_seeds_is_stated():
    gain = gain_estimate([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]).by_seed()
    assert gain.as_json() == {"mean": 2.0, "ci95": None, "per_seed": [1.0, 2.0, 3.0], "ci95_joint": None}


@pytest.mark.parametrize(
    ("happened", "interval"),
    [
        ([False] * 5, (0.0, 1 - 0.025 ** (1 / 5))),  # 0 of 5: up to 52 %
        ([True] * 5, (0.025 ** (1 / 5), 1.0)),
        ([False] * 10, (0.0, 1 - 0.025 ** (1 / 10))),  # 0 of 10: up to 31 %
        ([True, False], (1 - math.sqrt(0.975), math.sqrt(0.975))),  # 1 - (1 - p)^2 = 2.5 %, and 1 - p^2
    ],
)
def test_the_interval_of_a_share_of_seeds_is_exact(happened, interval):
    share = share_of_seeds(happened)
    assert share.mean == sum(happened) / len(happened)
    assert share.ci95 == pytest.approx(interval)
    assert share.by_seed() is share


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
