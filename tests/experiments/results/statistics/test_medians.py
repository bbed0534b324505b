"""Ratios for every pair of statuses by hand, order statistics of a few seeds, coverage of intervals."""

import math

import numpy as np
import pytest

from experiments.results.statistics.medians import Bounds, exactly, median_estimate, rank_and_level, ratio

INF = math.inf

HELD = exactly(20.0)
NOT_HELD = Bounds(50.0, INF)  # at a horizon of 50 s
FROM_THE_FIRST = Bounds(0.0, 10.0)


@pytest.mark.parametrize(
    ("reference", "arm", "speedup", "status"),
    [
        (exactly(40.0), HELD, exactly(2.0), "="),
        (NOT_HELD, HELD, Bounds(2.5, INF), ">="),
        (FROM_THE_FIRST, HELD, Bounds(0.0, 0.5), "<="),
        (HELD, NOT_HELD, Bounds(0.0, 0.4), "<="),
        (NOT_HELD, NOT_HELD, Bounds(0.0, INF), "undetermined"),
        (FROM_THE_FIRST, NOT_HELD, Bounds(0.0, 0.2), "<="),
        (HELD, FROM_THE_FIRST, Bounds(2.0, INF), ">="),
        (NOT_HELD, FROM_THE_FIRST, Bounds(5.0, INF), ">="),
        (FROM_THE_FIRST, FROM_THE_FIRST, Bounds(0.0, INF), "undetermined"),
    ],
)
def test_a_seeds_speed_up_lies_between_the_bounds_worked_out_by_hand(reference, arm, speedup, status):
    bounds = ratio(reference, arm)
    assert bounds == speedup
    assert bounds.status == status


def test_two_times_of_zero_may_have_any_ratio():
    # Only a forged log has an evaluation at 0 s.
    assert ratio(exactly(0.0), exactly(0.0)) == Bounds(0.0, INF)
    assert median_estimate([Bounds(0.0, INF)] * 2, geometric=True).median == Bounds(0.0, INF)


def test_ranks_of_thousands_of_seeds_are_found_at_once():
    # k is about n / 2 - 0.98 sqrt(n): 1.96 standard deviations of sqrt(n) / 2 below the middle.
    rank, level = rank_and_level(10_000)
    assert abs(rank - (5_000 - 98)) <= 1
    assert 0.95 <= level < 0.952


def test_the_same_time_in_both_arms_is_a_speed_up_of_exactly_one():
    assert ratio(exactly(33.3), exactly(33.3)) == exactly(1.0)


def test_a_number_between_two_positive_bounds_is_a_range():
    assert Bounds(0.8, 1.3).status == "range"


def test_bounds_in_json_have_null_for_what_has_no_bound():
    assert Bounds(2.0, INF).as_json() == {"low": 2.0, "high": None, "status": ">="}
    assert Bounds(-INF, INF).as_json() == {"low": None, "high": None, "status": "undetermined"}


@pytest.mark.parametrize(
    ("count", "rank", "level"),
    [
        (3, 1, 1 - 2 / 8),
        (4, 1, 1 - 2 / 16),
        (5, 1, 1 - 2 / 32),
        (6, 1, 1 - 2 / 64),
        (8, 1, 1 - 2 / 256),
        (9, 2, 1 - 2 * (1 + 9) / 512),
        (10, 2, 1 - 2 * (1 + 10) / 1024),
        (12, 3, 1 - 2 * (1 + 12 + 66) / 4096),
    ],
)
def test_ranks_and_levels_are_those_of_the_binomial_distribution(count, rank, level):
    assert rank_and_level(count) == (rank, pytest.approx(level, abs=1e-12))


def test_three_known_values():
    estimate = median_estimate([exactly(3.0), exactly(1.0), exactly(2.0)])
    assert estimate.median == exactly(2.0)
    assert estimate.interval == Bounds(1.0, 3.0)
    assert estimate.level == 0.75


def test_four_values_have_the_mean_of_the_middle_two_which_is_geometric_for_ratios():
    values = [exactly(value) for value in (1.0, 2.0, 8.0, 9.0)]
    assert median_estimate(values).median == exactly(5.0)
    assert median_estimate(values, geometric=True).median.low == pytest.approx(4.0)
    assert median_estimate(values, geometric=True).median.status == "="


def test_of_five_seeds_two_that_do_not_hold_leave_the_median_known_and_the_interval_open():
    values = [exactly(10.0), exactly(20.0), exactly(30.0), NOT_HELD, NOT_HELD]
    estimate = median_estimate(values)
    assert estimate.median == exactly(30.0)
    assert estimate.interval == Bounds(10.0, INF)


def test_of_five_seeds_three_that_do_not_hold_leave_a_lower_bound():
    estimate = median_estimate([exactly(10.0), exactly(20.0), NOT_HELD, NOT_HELD, NOT_HELD])
    assert estimate.median == Bounds(50.0, INF)
    assert estimate.median.status == ">="


def test_of_four_seeds_two_that_do_not_hold_leave_a_lower_bound_between_the_middle_two():
    assert median_estimate([exactly(10.0), exactly(20.0), NOT_HELD, NOT_HELD]).median == Bounds(35.0, INF)


def test_of_four_ratios_a_bound_of_zero_or_infinity_among_the_middle_two_stays_one():
    lows_and_highs = [Bounds(0.0, 0.4), Bounds(0.0, 0.9), exactly(2.0), exactly(3.0)]
    assert median_estimate(lows_and_highs, geometric=True).median == Bounds(
        0.0, pytest.approx(math.sqrt(0.9 * 2.0))
    )
    open_above = [exactly(1.0), exactly(2.0), Bounds(3.0, INF), Bounds(4.0, INF)]
    assert median_estimate(open_above, geometric=True).median == Bounds(pytest.approx(math.sqrt(6.0)), INF)


def test_of_six_seeds_bounds_on_either_side_make_a_range():
    # Lows 0.5 0.8 1 | 1.2 2 3, highs 0.5 0.8 1 | 1.5 2 inf, of which the middle two are 1 and 1.2, 1 and 1.5.
    values = [exactly(0.5), exactly(0.8), exactly(1.0), Bounds(1.2, 1.5), exactly(2.0), Bounds(3.0, INF)]
    estimate = median_estimate(values)
    assert estimate.median == Bounds(1.1, 1.25)
    assert estimate.median.status == "range"
    assert estimate.interval == Bounds(0.5, INF)
    assert estimate.level == pytest.approx(0.96875)


def test_bounds_above_and_below_leave_a_median_undetermined():
    values = [Bounds(0.0, 0.4), Bounds(0.0, INF), Bounds(2.0, INF)]
    estimate = median_estimate(values, geometric=True)
    assert estimate.median == Bounds(0.0, INF)
    assert estimate.median.status == "undetermined"


@pytest.mark.parametrize("count", [1, 2])
def test_under_three_seeds_there_is_no_interval(count):
    estimate = median_estimate([exactly(2.0)] * count)
    assert (estimate.interval, estimate.level) == (None, None)
    assert estimate.median == exactly(2.0)


DRAWS = {3: 8_000, 5: 4_000, 10: 2_000}  # by number of seeds: enough for an error well below 1.5 points
POPULATION = 400_000  # draws for the true medians
WORLD_SPREAD, ARM_SPREAD = 0.5, 0.3  # of logarithms: the effect of a seed on both arms, and on one alone


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, pytest.param(5, marks=pytest.mark.sweep), 10])
@pytest.mark.parametrize("speedup", [1.0, 1.6])
@pytest.mark.parametrize("first_s", [0.0, 30.0])
@pytest.mark.parametrize("horizon_s", [INF, 75.0, 40.0])
def test_intervals_miss_the_true_median_no_more_often_than_their_level_allows(
    seeds, speedup, horizon_s, first_s
):
    """Simulates censored times to hold a target, whose true medians are known.

    Times are log-normal around a time of each seed; the median of the reference arm is 55 s. A horizon of 75
    s cuts off a third of its times, one of 40 s most of them, and a third of the faster arm's. A first
    evaluation at 30 s comes after a tenth of its times, and a third of the faster arm's.
    """
    rng = np.random.default_rng([seeds, int(10 * speedup), int(min(horizon_s, 99)), int(first_s)])
    reference_s, arm_s = _times_s(rng, (POPULATION,), speedup)
    saved_s = np.median(np.clip(reference_s, first_s, horizon_s) - np.clip(arm_s, first_s, horizon_s))
    truth = {"speed-up": speedup, "held from": np.median(arm_s), "saved": saved_s}
    missed = dict.fromkeys(truth, 0)
    for theirs_s, ours_s in zip(*_times_s(rng, (DRAWS[seeds], seeds), speedup), strict=True):
        theirs, ours = (_as_known(times_s, first_s, horizon_s) for times_s in (theirs_s, ours_s))
        below_s = np.clip(theirs_s, first_s, horizon_s) - np.clip(ours_s, first_s, horizon_s)
        estimates = {
            "speed-up": median_estimate(list(map(ratio, theirs, ours)), geometric=True),
            "held from": median_estimate(ours),
            "saved": median_estimate([exactly(time_s) for time_s in below_s.tolist()]),
        }
        for figure, estimate in estimates.items():
            assert estimate.interval is not None
            missed[figure] += not estimate.interval.low <= truth[figure] <= estimate.interval.high
    wrong = 1 - rank_and_level(seeds)[1]
    shares = {figure: count / DRAWS[seeds] for figure, count in missed.items()}
    assert all(share <= wrong + 0.015 for share in shares.values()), shares
    if math.isinf(horizon_s) and not first_s:  # without censoring they miss as often as their level allows
        assert all(share >= wrong - 0.015 for share in shares.values()), shares


def _times_s(rng, shape, speedup):
    world = rng.normal(4.0, WORLD_SPREAD, shape)
    reference_s = np.exp(world + rng.normal(0, ARM_SPREAD, shape))
    return reference_s, np.exp(world + rng.normal(0, ARM_SPREAD, shape)) / speedup


def _as_known(times_s, first_s, horizon_s):
    return [
        Bounds(horizon_s, INF)
        if time_s > horizon_s
        else Bounds(0.0, first_s)
        if time_s < first_s
        else exactly(time_s)
        for time_s in times_s.tolist()
    ]
