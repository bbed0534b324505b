from itertools import combinations

import numpy as np

from coordinator.clusterers.kcenter import farthest_first
from coordinator.distances import DISTANCES


def test_the_order_of_six_reports_by_hand():
    # The lowest client is at (1, 0); L1 distances from it are 0, 0.4, 2, 1, 2, 0.8. Of the two at 2 the lower
    # client, 2, is next. Distances to the nearest of both: 0, 0.4, 0, 1, 0, 0.8: client 3. Client 5 is at 0.2
    # from that: 0, 0.4, 0, 0, 0, 0.2: client 1.
    share = np.array([1.0, 0.8, 0.0, 0.5, 0.0, 0.6])
    reports = np.stack([share, 1 - share], axis=1)
    assert farthest_first(reports, 5, "l1").tolist() == [0, 2, 3, 1, 5]


def test_ties_go_to_the_lowest_client():
    square = np.array([[0.0, 0], [1, 1], [1, 0], [0, 1]])
    assert farthest_first(square, 4, "euclidean").tolist() == [0, 1, 2, 3]


def test_the_distance_decides():
    # From (0, 0): (3, 3) is farther in L1, (0, 5) in Euclidean space.
    reports = np.array([[0.0, 0], [3, 3], [0, 5]])
    assert farthest_first(reports, 2, "l1").tolist() == [0, 1]
    assert farthest_first(reports, 2, "euclidean").tolist() == [0, 2]


def test_no_report_is_more_than_twice_as_far_from_a_centre_as_it_must_be():
    rng = np.random.default_rng(0)
    for _ in range(20):
        reports = rng.dirichlet(np.ones(4), size=12)
        apart = DISTANCES["l1"](reports, reports)
        best = min(apart[list(chosen)].min(axis=0).max() for chosen in combinations(range(12), 3))
        assert apart[farthest_first(reports, 3, "l1")].min(axis=0).max() <= 2 * best
