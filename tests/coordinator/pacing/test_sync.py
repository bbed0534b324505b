import pytest

from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncParameters
from tests.fakes import ints


def sync(participants: int = 10, over_commit: float = 1.3, **parameters) -> Sync:
    return Sync(SyncParameters(**parameters), CohortSize(participants, over_commit))


def test_quotas_follow_the_sizes_of_the_lanes():
    assert sync(10).quota(ints(50, 30, 21)).tolist() == [5, 3, 2]


def test_a_small_lane_takes_one_of_the_largest_quota_as_long_as_there_are_enough():
    # by largest remainder alone: [10, 0, 0]
    assert sync(10).quota(ints(188, 6, 6)).tolist() == [8, 1, 1]
    assert sync(10).quota(ints(194, 0, 6)).tolist() == [9, 0, 1]  # nobody is in lane 1
    assert sync(2).quota(ints(90, 60, 50)).tolist() == [1, 1, 0]  # three lanes, two participants


def test_each_lane_over_commits_on_its_own():
    # 6.5 -> 7, 3.9 -> 4, 2.6 -> 3: 14, where the whole would send 13
    assert sync().wanted(ints(5, 3, 2)).tolist() == [7, 4, 3]


def test_a_lane_without_quota_wants_nobody_and_is_full():
    assert sync().wanted(ints(4, 0)).tolist() == [6, 0]
    assert sync().full(ints(4, 0), ints(0, 0)).tolist() == [False, True]


def test_a_lane_is_full_when_its_quota_is_back():
    assert sync().full(ints(5, 3, 2), ints(4, 3, 3)).tolist() == [False, True, True]


def test_pooled_lanes_are_full_together_when_all_participants_are_back():
    pooled = sync(close="pooled")
    assert pooled.full(ints(5, 3, 2), ints(7, 0, 2)).tolist() == [False] * 3
    assert pooled.full(ints(5, 3, 2), ints(7, 1, 2)).tolist() == [True] * 3


def test_there_is_no_deadline_unless_one_is_set():
    assert sync().deadline_s is None
    assert sync(deadline_s=60).deadline_s == 60.0
    with pytest.raises(ValueError, match="greater than 0"):
        sync(deadline_s=0)


def test_no_lanes_at_all_are_no_error():
    assert sync().full(ints(), ints()).tolist() == []
