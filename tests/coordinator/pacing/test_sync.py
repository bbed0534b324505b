from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.view import RunFacts
from emulator.arrays import Ints
from emulator.counts import largest_remainder
from emulator.errors import ConfigurationError
from emulator.messages import ABANDONED, COMPLETED, DROPPED
from experiments.contracts import check_pacing
from tests.fakes import INF, FakeAvailability, FakeExecutor, Played, Population, a_fleet, ints


def sync(participants: int = 10, /, over_commit: float = 1.3, **settings) -> Sync:
    return Sync(SyncSettings(**settings), CohortSize(participants, over_commit))


def full(pacing: Sync, quota: Ints, back: Ints, elapsed_s: float = 0.0) -> list[bool]:
    flags = pacing.full(quota, np.ones_like(back), back, np.array([elapsed_s]))
    return np.broadcast_to(flags, back.shape).tolist()


def test_quotas_follow_the_sizes_of_the_lanes():
    assert sync(10).quota(ints(50, 30, 21)).tolist() == [5, 3, 2]


def test_a_small_lane_takes_one_of_the_largest_quota_as_long_as_there_are_enough():
    # by largest remainder alone: [10, 0, 0]
    assert sync(10).quota(ints(188, 6, 6)).tolist() == [8, 1, 1]
    assert sync(10).quota(ints(194, 0, 6)).tolist() == [9, 0, 1]  # lane 1 is empty
    assert sync(2).quota(ints(90, 60, 50)).tolist() == [1, 1, 0]  # three lanes, two participants


@pytest.mark.parametrize(
    ("participants", "sizes", "quota"),
    [
        (10, [50, 30, 20], [4, 3, 3]),  # 10 / 3: the one left over goes to the largest lane
        (11, [20, 50, 30], [3, 4, 4]),  # and two left over to the two largest
        (11, [9, 9, 9], [4, 4, 3]),  # of equals, to the lowest
        (9, [80, 15, 5], [3, 3, 3]),  # in proportion: 7.2, 1.35, 0.45
        (10, [188, 2, 6], [4, 2, 3]),  # lane 1 gives all it has, and its third visit is not made elsewhere
        (10, [194, 0, 6], [5, 0, 5]),  # a lane without clients is none
        (2, [50, 60, 90], [0, 1, 1]),  # fewer participants than lanes
        (4, [0, 0], [0, 0]),
        (4, [], []),
    ],
)
def test_equal_shares_are_the_participants_over_the_lanes_with_clients(participants, sizes, quota):
    assert sync(participants, share="equal").quota(ints(*sizes)).tolist() == quota


def test_a_round_of_equal_shares_ends_with_fewer_participants_if_a_lane_is_too_small():
    equal, sizes = sync(10, over_commit=2, share="equal"), ints(188, 2, 6)
    quota = equal.quota(sizes)
    assert equal.opens(quota, sizes, 0 * sizes, 0 * sizes).tolist() == [8, 4, 6]
    assert full(equal, quota, ints(4, 2, 3)) == [True, True, True]
    assert equal.absorbs(quota, 0 * sizes, ints(4, 2, 3), np.array([9.0])).tolist() == [True]


@pytest.mark.slow
def test_pacings_of_equal_shares_keep_the_contract():
    check_pacing(lambda cohort: Sync(SyncSettings(share="equal"), cohort))


def test_each_lane_over_commits_on_its_own():
    # 6.5 -> 7, 3.9 -> 4, 2.6 -> 3: 14 in all, where 1.3 x 10 would be 13
    no_visits = ints(0, 0, 0)
    assert sync().opens(ints(5, 3, 2), ints(50, 30, 20), no_visits, no_visits).tolist() == [7, 4, 3]


def test_a_cohort_goes_out_once():
    quota, sizes = ints(5, 3), ints(50, 30)
    assert sync().opens(quota, sizes, ints(0, 1), ints(0, 0)).tolist() == [0, 0]
    assert sync().opens(quota, sizes, ints(0, 0), ints(2, 0)).tolist() == [0, 0]


def test_a_lane_without_quota_wants_no_visits_and_is_full():
    assert sync().opens(ints(4, 0), ints(9, 0), ints(0, 0), ints(0, 0)).tolist() == [6, 0]
    assert full(sync(), ints(4, 0), ints(0, 0)) == [False, True]


def test_a_lane_is_full_when_its_quota_is_back():
    assert full(sync(), ints(5, 3, 2), ints(4, 3, 3)) == [False, True, True]


def test_pooled_lanes_are_full_together_when_all_participants_are_back():
    pooled = sync(close="pooled")
    assert full(pooled, ints(5, 3, 2), ints(7, 0, 2)) == [False] * 3
    assert full(pooled, ints(5, 3, 2), ints(7, 1, 2)) == [True] * 3


def test_there_is_no_deadline_unless_one_is_set():
    assert sync().deadline_s is None
    assert sync(deadline_s=60).deadline_s == 60.0
    with pytest.raises(ValueError, match="greater than 0"):
        sync(deadline_s=0)


def test_at_the_deadline_every_lane_is_full():
    late = sync(deadline_s=60)
    assert full(late, ints(5, 3), ints(0, 0), elapsed_s=59.9) == [False, False]
    assert full(late, ints(5, 3), ints(0, 0), elapsed_s=60.0) == [True, True]


def test_the_one_server_step_comes_when_nothing_is_out_and_closes_the_round():
    quota, back = ints(5, 3), ints(5, 0)
    assert sync().absorbs(quota, ints(0, 1), back, np.array([9.0])).tolist() == [False]
    assert sync().absorbs(quota, ints(0, 0), back, np.array([9.0])).tolist() == [True]
    assert sync(10).closes(absorbed=0, elapsed_s=9.0)


def test_a_round_may_absorb_other_participants_of_the_same_visits():
    fewer, sizes, none = sync(10, participants=7), ints(50), ints(0)
    quota = fewer.quota(sizes)
    assert quota.tolist() == [7]
    assert fewer.opens(quota, sizes, none, none).tolist() == [13]
    assert sync(10).opens(ints(10), sizes, none, none).tolist() == [13]
    assert full(fewer, quota, ints(6)) == [False]
    assert full(fewer, quota, ints(7)) == [True]
    assert sync(10, participants=12).opens(ints(12), sizes, ints(0), ints(0)).tolist() == [13]


def test_lanes_share_the_other_participants_and_send_out_in_proportion():
    fewer, sizes = sync(10, participants=7), ints(50, 30, 20)
    quota = fewer.quota(sizes)
    assert quota.tolist() == sync(7).quota(sizes).tolist() == [4, 2, 1]
    # 13 / 7 of 4, 2 and 1 are 7.4, 3.7 and 1.9.
    assert fewer.opens(quota, sizes, 0 * sizes, 0 * sizes).tolist() == [8, 4, 2]


@pytest.mark.parametrize(("rounding", "opened"), [("up", [13, 8, 6, 2]), ("down", [13, 7, 5, 1])])
def test_what_is_sent_out_of_a_lane_is_counted_in_exact_fractions(rounding, opened):
    cohort = Sync(SyncSettings(participants=7), CohortSize(10, 1.3, rounding)).cohort
    assert cohort == CohortSize(7, Fraction(13, 7), rounding)
    assert [cohort.over_committed(quota) for quota in (7, 4, 3, 1)] == opened


def test_participants_of_the_round_itself_change_nothing():
    assert sync(9, 1.25, participants=9).cohort == CohortSize(9, 1.25)
    assert sync(9, 1.25).cohort == CohortSize(9, 1.25)


def of_its_own(**settings) -> Sync:
    return Sync(SyncSettings(**settings), CohortSize(4, 1.0))


def test_with_a_factor_of_its_own_it_sends_out_so_many_times_what_it_absorbs():
    assert of_its_own(over_commit=1.5).cohort == CohortSize(4, 1.5)
    more, none = of_its_own(participants=10, over_commit=1.3), ints(0)
    assert more.opens(ints(10), ints(50), none, none).tolist() == [13]


def test_more_participants_than_clients_are_refused():
    run = RunFacts(num_clients=10, rounds=5, participants=10)
    of_its_own(participants=10, over_commit=1.0).check_run(run)
    with pytest.raises(ConfigurationError, match=r"^pacing\.participants = 11: more than the 10 clients of"):
        of_its_own(participants=11, over_commit=1.0).check_run(run)


def test_more_participants_than_are_sent_out_are_refused():
    assert sync(10, participants=13).cohort.over_committed(13) == 13
    problem = (
        r"^pacing\.participants = 14: must be at most 13, the visits that round\.participants = 10 and "
        r"round\.over_commit send out, unless pacing\.over_commit is given$"
    )
    with pytest.raises(ConfigurationError, match=problem):
        sync(10, participants=14)
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        SyncSettings(participants=0)


def test_pacings_of_other_participants_keep_the_contract():
    check_pacing(lambda cohort: Sync(SyncSettings(participants=7, close="pooled"), cohort))


def test_no_lanes_at_all_are_no_error():
    assert full(sync(), ints(), ints()) == []


@given(sizes=st.lists(st.integers(0, 60), min_size=1, max_size=12), participants=st.integers(1, 30))
def test_lanes_without_a_quota_take_from_the_largest_one_after_another(sizes: list[int], participants: int):
    expected = largest_remainder(participants, ints(*sizes))
    for lane in np.flatnonzero((expected == 0) & (ints(*sizes) > 0)):
        if expected.max() > 1:
            expected[expected.argmax()] -= 1
            expected[lane] = 1
    assert sync(participants).quota(ints(*sizes)).tolist() == expected.tolist()


# -- time-outs --------------------------------------------------------------------------------------------


def two_of(seconds: tuple[float, float], gone_s: float = INF, **settings: float) -> Played:
    """A round of two clients whose visits take so long, of whom the second goes offline for good."""
    return Population(
        FakeExecutor([1.0, 1.0]),
        fleet=a_fleet(2, [lasts_s - 0.5 for lasts_s in seconds], 16.0, 16.0),
        availability=FakeAvailability({1: [(-INF, gone_s)]}),
        pacing=SyncSettings(**settings),
        log_visits=True,
    ).play()


@pytest.mark.parametrize(
    ("settings", "closed_s", "outcome"),
    [
        ({}, 1.0, DROPPED),  # known at once: the round waits for client 0 alone
        ({"timeout_s": 2.0}, 2.0, DROPPED),
        ({"timeout_s": 2.0, "deadline_s": 1.5}, 1.5, ABANDONED),  # nobody knows that it is gone
        ({"timeout_s": 1.5, "deadline_s": 2.0}, 1.5, DROPPED),
        ({"timeout_s": 2.0, "deadline_s": 2.0}, 2.0, DROPPED),  # a visit ends before an event
    ],
)
def test_a_round_waits_for_a_client_that_is_gone_until_the_time_out(settings, closed_s, outcome):
    played = two_of((1.0, 3.0), gone_s=0.125, **settings)
    (record,) = played.records
    assert (record.closed_s, record.completed) == (closed_s, [0])
    (visits,) = played.visits
    assert visits.outcome.tolist() == [COMPLETED, outcome]
    assert visits.end_s.tolist() == [1.0, 0.125 if outcome == DROPPED else closed_s]
    # Half of its download had arrived when it was gone.
    assert (visits.download_bytes.tolist(), visits.upload_bytes.tolist()) == ([4, 2], [4, 0])


def test_a_round_abandons_a_visit_at_its_time_out():
    played = two_of((1.0, 3.0), timeout_s=2.875)
    assert played.records[0].closed_s == 2.875
    (visits,) = played.visits
    assert visits.outcome.tolist() == [COMPLETED, ABANDONED]
    assert visits.upload_bytes.tolist() == [4, 2]  # half of it is on its way
    assert two_of((1.0, 3.0), timeout_s=3.0).records[0].completed == [0, 1]


def test_of_a_lane_that_closes_before_the_time_out_others_are_abandoned():
    three = Population(
        FakeExecutor([1.0] * 3),
        fleet=a_fleet(3, [0.5, 1.5, 2.5], 16.0, 16.0),
        availability=FakeAvailability({2: [(-INF, 0.125)]}),
        pacing=SyncSettings(timeout_s=2.5),
        participants=2,
        over_commit=1.5,
        log_visits=True,
    ).play()
    assert three.visits[0].outcome.tolist() == [COMPLETED, COMPLETED, ABANDONED]
    assert three.visits[0].end_s.tolist() == [1.0, 2.0, 2.0]
    assert three.visits[0].download_bytes.tolist() == [4, 4, 2]
