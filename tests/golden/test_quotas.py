"""Quotas in whole numbers, worked out by hand."""

import math

import numpy as np
import pytest

from coordinator.pacing import CohortSize
from emulator.counts import largest_remainder


@pytest.mark.parametrize(
    ("total", "sizes", "shares"),
    [
        (10, [50, 30, 21], [5, 3, 2]),  # 4.95, 2.97, 2.08: both left over go to the largest remainders
        (10, [70, 20, 10], [7, 2, 1]),  # exact
        (5, [10, 10], [3, 2]),  # 2.5 each: the tie goes to the lower row
        (2, [1, 1, 1], [1, 1, 0]),  # 2/3 each
        (3, [97, 2, 1], [3, 0, 0]),  # 2.91, 0.06, 0.03
        (4, [5, 0, 5], [2, 0, 2]),  # an empty lane gets nothing
        (7, [4, 3], [4, 3]),  # everybody
        (20, [0, 0], [0, 0]),  # no clients at all
        # 16.528.., 16.528.., 16.943..: one left over, to the last
        (50, [100, 100, 102], [17, 16, 17]),
    ],
)
def test_participants_are_shared_by_largest_remainder(total, sizes, shares):
    assert largest_remainder(total, np.array(sizes)).tolist() == shares


def test_fifty_times_one_point_one_is_fifty_five():
    assert math.ceil(50 * 1.1) == 56  # what floating point makes of it
    assert CohortSize(50, 1.1).over_committed(50) == 55


@pytest.mark.parametrize(
    ("over_commit", "quota", "up"), [(1.3, 10, 13), (1.3, 7, 10), (1.0, 7, 7), (1.15, 100, 115), (1.01, 3, 4)]
)
def test_over_commitment_rounds_up(over_commit, quota, up):
    # 13, 9.1, 7, 115, 3.03
    assert CohortSize(quota, over_commit).over_committed(quota) == up


@pytest.mark.parametrize(
    ("over_commit", "quota", "cut"),
    [
        (1.3, 10, 13),
        (1.3, 7, 9),  # 9.1
        (1.1, 50, 55),  # 55.00000000000001
        (1.15, 100, 114),  # 114.99999999999999 in floating point
    ],
)
def test_fedscale_cuts_the_floating_point_product(over_commit, quota, cut):
    assert CohortSize(quota, over_commit, rounding="down").over_committed(quota) == cut


def test_no_lane_is_over_committed_below_its_quota():
    for quota in range(200):
        for over_commit in (1.0, 1.05, 1.1, 1.3, 1.7):
            for rounding in ("up", "down"):
                assert CohortSize(quota, over_commit, rounding).over_committed(quota) >= quota
