import math

import numpy as np
import pytest

from experiments.results.statistics.significance import (
    Difference,
    corrected,
    holm,
    num_tests,
    paired_difference,
    unpaired_difference,
)

DRAWS = 1000


def test_a_paired_difference_is_tested_by_students_t_by_hand():
    # Differences 2, 4, 6: mean 4, error 2 / sqrt(3), t = 2 sqrt(3). With two degrees of freedom,
    # p = 1 - t / sqrt(t^2 + 2) = 1 - sqrt(12 / 14); half the interval is 4.302653 * 2 / sqrt(3).
    difference = paired_difference([0.52, 0.64, 0.76], [0.5, 0.6, 0.7], scale=100)

    half = 4.302653 * 2 / math.sqrt(3)
    assert difference.mean == pytest.approx(4)
    assert difference.ci95 == pytest.approx((4 - half, 4 + half), abs=1e-5)
    assert difference.p == difference.p_holm == pytest.approx(1 - math.sqrt(12 / 14))
    assert difference.per_seed == pytest.approx([2, 4, 6])
    assert difference.pairing == "seed"


def test_an_unpaired_difference_is_tested_by_welchs_t_by_hand():
    # 6, 7, 8 and 2, 3, 4: squared errors 1 / 3, degrees of freedom (2 / 3)^2 / ((1 / 9 + 1 / 9) / 2) = 4,
    # t(0.975, 4) = 2.776445. t = 4 / sqrt(2 / 3), and p = 1 - t / sqrt(t^2 + 4) (1 + 2 / (t^2 + 4)).
    difference = unpaired_difference([6.0, 7.0, 8.0], [2.0, 3.0, 4.0])

    half = 2.776445 * math.sqrt(2 / 3)
    assert difference.mean == 4
    assert difference.ci95 == pytest.approx((4 - half, 4 + half), abs=1e-5)
    assert difference.p == pytest.approx(1 - math.sqrt(24 / 28) * (1 + 2 / 28))
    assert (difference.per_seed, difference.pairing) == ([], "none")


def test_welchs_degrees_of_freedom_fall_to_those_of_the_sample_that_varies():
    # The second sample hardly varies: 2 degrees of freedom, t(0.975, 2) = 4.302653.
    difference = unpaired_difference([1.0, 2.0, 3.0], [0.0, 1e-6, -1e-6])
    half = 4.302653 / math.sqrt(3)
    assert difference.ci95 == pytest.approx((2 - half, 2 + half), abs=1e-5)


def test_an_interval_excludes_zero_exactly_if_p_is_below_five_percent():
    generator = np.random.default_rng(3)
    for _ in range(200):
        values, base = generator.normal(0, 1, (2, 5))
        for difference in (
            paired_difference(values.tolist(), base.tolist()),
            unpaired_difference((values + 1).tolist(), base.tolist()),
        ):
            assert difference.ci95 is not None
            assert difference.p is not None
            low, high = difference.ci95
            assert (low <= 0 <= high) == (difference.p >= 0.05)


@pytest.mark.parametrize("test", [paired_difference, unpaired_difference])
def test_under_three_seeds_there_is_no_interval_and_no_test(test):
    difference = test([0.5, 0.75], [0.25, 0.25])
    assert difference.mean == 0.375
    assert difference.ci95 is None
    assert difference.p is None
    assert difference.p_holm is None


@pytest.mark.parametrize("test", [paired_difference, unpaired_difference])
def test_a_seed_without_a_value_leaves_no_difference(test):
    difference = test([0.5, None, 0.5], [0.25, 0.25, 0.5])
    assert difference.mean is None
    assert difference.p is None


@pytest.mark.parametrize("test", [paired_difference, unpaired_difference])
def test_without_spread_a_difference_is_certain(test):
    assert test([0.5] * 3, [0.25] * 3).p == 0.0
    assert test([0.5] * 3, [0.5] * 3).p == 1.0


def test_rounding_is_no_difference():
    assert paired_difference([0.1 + 0.2] * 3, [0.3] * 3, scale=100).p == 1.0
    assert unpaired_difference([0.1 + 0.2] * 3, [0.3] * 3, scale=100).p == 1.0


def test_identical_results_need_no_test():
    difference = paired_difference([0.5] * 3, [0.5] * 3, pairing="identical")
    assert (difference.mean, difference.p) == (0, None)


def test_holm_multiplies_the_smallest_by_all_the_next_by_one_less():
    assert holm([0.01, 0.04, 0.02]) == pytest.approx([0.03, 0.04, 0.04])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def a_difference(p: float | None, *per_seed: float) -> Difference:
    return Difference(0.1, (0.0, 0.2), list(per_seed), p, p, "seed")


def test_a_family_is_corrected_without_what_has_no_test():
    family = [None, a_difference(0.01, 1.0), a_difference(None, 2.0), a_difference(0.04, 3.0)]

    assert [item and item.p_holm for item in corrected(family)] == [None, 0.02, None, 0.04]
    assert [item and item.p for item in corrected(family)] == [None, 0.01, None, 0.04]


def test_the_same_results_count_as_one_test():
    family = [a_difference(0.01, 1.0), a_difference(0.01, 1.0), a_difference(0.04, 3.0)]

    assert num_tests(family) == 2
    assert [item and item.p_holm for item in corrected(family)] == [0.02, 0.02, 0.04]


def share(hits: int) -> float:
    return hits / DRAWS


def allowed(level: float = 0.05) -> float:
    """The nominal share, and three standard errors of the simulation."""
    return level + 3 * math.sqrt(level * (1 - level) / DRAWS)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_equal_arms_differ_at_most_in_the_nominal_share_of_experiments(seeds):
    """Six arms that share a world of each seed and equal the reference: one test each, and all at once."""
    generator = np.random.default_rng(seeds)
    single = several = unpaired = 0
    for _ in range(DRAWS):
        world = generator.normal(0.7, 0.05, seeds)
        arms = world + generator.normal(0, 0.01, (7, seeds)) * generator.gamma(2, 1, (7, 1))
        family = corrected([paired_difference(arm.tolist(), arms[0].tolist()) for arm in arms[1:]])
        assert family[0] is not None
        single += family[0].p is not None and family[0].p < 0.05
        several += any(item is not None and item.p_holm is not None and item.p_holm < 0.05 for item in family)
        other = generator.normal(0.7, 0.05, seeds)
        p = unpaired_difference(arms[1].tolist(), other.tolist()).p
        unpaired += p is not None and p < 0.05
    assert share(single) <= allowed()
    assert share(several) <= allowed()
    assert share(unpaired) <= allowed()


def test_without_correction_some_of_six_equal_arms_differ_far_too_often():
    generator = np.random.default_rng(0)
    found = 0
    for _ in range(DRAWS):
        arms = generator.normal(0, 1, (7, 5))
        differences = [paired_difference(arm.tolist(), arms[0].tolist()) for arm in arms[1:]]
        found += any(item.p is not None and item.p < 0.05 for item in differences)
    assert share(found) > 0.1
