"""Buffered asynchronous training: the rules by hand, and stories of a few clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coordinator.clusterers import Clusterer
from coordinator.federation.faults import Faults
from coordinator.pacing import CohortSize
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.population import FaultSettings
from coordinator.view import RunFacts
from emulator.errors import ConfigurationError, RunError
from emulator.messages import ABANDONED, COMPLETED, DROPPED, Work
from emulator.seeding import RandomStreams
from experiments.contracts import check_pacing
from tests.fakes import (
    INF,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    FakeStream,
    Played,
    Population,
    a_fleet,
    fresh,
    ints,
)

DAY_S = 86_400.0


def buffered(participants: int = 10, /, over_commit: float = 1.3, **settings: Any) -> Buffered:
    return Buffered(BufferedSettings(**settings), CohortSize(participants, over_commit))


# -- the rules --------------------------------------------------------------------------------------------


def test_by_default_a_round_is_one_step_of_its_participants_and_as_many_are_out_as_in_a_round_of_sync():
    pacing = buffered(10, 1.3)
    assert (pacing.buffer, pacing.concurrency) == (10, 13)
    other = buffered(10, 1.3, buffer=1, concurrency=34)
    assert (other.buffer, other.concurrency) == (1, 34)
    down = Buffered(BufferedSettings(), CohortSize(100, 1.15, rounding="down"))
    assert down.concurrency == 114


def test_a_pacing_of_whole_rounds_has_neither_buffer_nor_slots():
    sync = Sync(SyncSettings(), CohortSize(10))
    assert (sync.buffer, sync.concurrency, sync.whole_rounds) == (None, None, True)
    assert (buffered().whole_rounds, buffered().cancels) == (False, False)


def test_slots_are_shared_over_lanes_in_proportion_and_a_lane_has_no_more_than_clients():
    assert buffered().quota(ints(50, 30, 20)).tolist() == [6, 4, 3]  # of 6.5, 3.9 and 2.6
    assert buffered().quota(ints(188, 0, 6)).tolist() == [12, 0, 1]  # of 12.6 and 0.4: at least one
    assert buffered().quota(ints(3, 2)).tolist() == [3, 2]  # of 7.8 and 5.2
    assert buffered().quota(ints(40, 1, 1)).tolist() == [11, 1, 1]
    assert buffered().quota(ints()).tolist() == []


def opens(pacing: Buffered, slots: list[int], out: list[int], back: list[int]) -> list[int]:
    numbers = pacing.opens(ints(*slots), ints(*slots) * 9, np.array([out]), np.array([back]))
    assert numbers.shape == (1, len(slots))
    return numbers[0].tolist()


def test_free_slots_are_filled_however_many_updates_wait_in_the_buffer():
    assert opens(buffered(), [6, 4, 3], [0, 0, 0], [0, 0, 0]) == [6, 4, 3]
    assert opens(buffered(), [6, 4, 3], [6, 3, 3], [0, 1, 2]) == [0, 1, 0]
    # More are out than there are slots, as after a re-clustering.
    assert opens(buffered(), [6, 4, 3], [9, 1, 3], [0, 0, 0]) == [0, 3, 0]


def test_slots_are_filled_once_enough_are_free_over_all_lanes():
    three = buffered(refill=3)
    assert opens(three, [6, 4, 3], [5, 4, 2], [1, 0, 1]) == [0, 0, 0]
    assert opens(three, [6, 4, 3], [4, 4, 2], [1, 0, 1]) == [2, 0, 1]
    # What is out beyond the slots of its lane takes none from others.
    assert opens(three, [6, 4, 3], [9, 1, 3], [0, 0, 0]) == [0, 3, 0]
    # With fewer slots in all, as lanes have no more than clients, all of them must be free.
    assert opens(three, [1, 1], [0, 1], [0, 0]) == [0, 0]
    assert opens(three, [1, 1], [0, 0], [0, 0]) == [1, 1]


def test_each_instant_is_evaluated_alone():
    pacing, slots = buffered(refill=2), ints(2, 1)
    out, back = np.array([[2, 1], [1, 1], [1, 0]]), np.array([[0, 0], [1, 0], [1, 1]])
    assert pacing.opens(slots, slots, out, back).tolist() == [[0, 0], [0, 0], [1, 1]]
    elapsed_s = np.zeros((3, 1))
    # Of 13 slots and a buffer of 10, a lane with two slots steps with two updates, one with one with one.
    assert pacing.absorbs(slots, out, back, elapsed_s).tolist() == [[False, False]] * 2 + [[False, True]]


def absorbs(pacing: Buffered, slots: list[int], back: list[int]) -> list[bool]:
    flags = pacing.absorbs(ints(*slots), np.zeros((1, len(slots))), np.array([back]), np.zeros((1, 1)))
    return flags[0].tolist()


def test_a_lane_steps_with_its_share_of_the_buffer_rounded_up():
    slots = [6, 4, 3]  # 60 / 13 = 4.6, 40 / 13 = 3.1, 30 / 13 = 2.3
    assert absorbs(buffered(), slots, [4, 4, 2]) == [False, True, False]
    assert absorbs(buffered(), slots, [5, 3, 3]) == [True, False, True]
    assert absorbs(buffered(), [13], [9]) == [False]
    assert absorbs(buffered(), [13], [10]) == [True]


def test_a_buffer_of_one_is_asynchronous_in_every_lane():
    asynchronous = buffered(buffer=1)
    assert absorbs(asynchronous, [6, 4, 3], [0, 1, 2]) == [False, True, True]


def test_a_lane_that_has_lost_its_slots_absorbs_what_is_back():
    assert absorbs(buffered(), [13, 0], [0, 1]) == [False, True]
    assert absorbs(buffered(), [13, 0], [0, 0]) == [False, False]


def test_no_visit_is_abandoned_and_a_round_closes_when_its_participants_were_absorbed():
    assert buffered().full(ints(1), ints(1)[None], ints(9)[None], np.array([[1e9]])).tolist() == [[False]]
    assert buffered().deadline_s is None
    assert [buffered(10).closes(absorbed, 1.0) for absorbed in (9, 10, 11)] == [False, True, True]


@pytest.mark.parametrize("settings", [{"buffer": 1}, {"buffer": 3, "concurrency": 20, "refill": 5}])
def test_it_keeps_the_contract_of_pacings(settings):
    check_pacing(lambda cohort: Buffered(BufferedSettings(**settings), cohort))


# -- bad input --------------------------------------------------------------------------------------------


def test_more_slots_to_refill_than_there_are_are_refused():
    assert buffered(refill=13).concurrency == 13
    with pytest.raises(ConfigurationError) as refused:
        buffered(refill=14)
    assert str(refused.value) == ("pacing.refill = 14: must be at most the slots, pacing.concurrency = 13")


@pytest.mark.parametrize("key", ["buffer", "concurrency"])
def test_a_buffer_or_slots_above_the_number_of_clients_are_refused(key):
    run = RunFacts(num_clients=16, rounds=5, participants=10)
    buffered(**{key: 16}).check_run(run)
    with pytest.raises(ConfigurationError) as refused:
        buffered(**{key: 17}).check_run(run)
    assert str(refused.value) == f"pacing.{key} = 17: more than the 16 clients of the trace"


@pytest.mark.parametrize("key", ["buffer", "concurrency", "refill"])
def test_none_of_anything_is_refused(key):
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        BufferedSettings(**{key: 0})


# -- stories ----------------------------------------------------------------------------------------------


def clients_of(*seconds: float, participants: int = 1, **settings: Any) -> Population:
    """Clients whose visits take these seconds, at the pace of a buffered pacing; a quarter down, one up."""
    settings = {"fleet": fleet_of(*seconds), **settings}
    pacing = {key: settings.pop(key) for key in BufferedSettings.model_fields if key in settings}
    return Population(
        FakeExecutor(settings.pop("targets", [1.0] * len(seconds))),
        pacing=lambda cohort: Buffered(BufferedSettings(**pacing), cohort),
        participants=participants,
        log_visits=True,
        **settings,
    )


def fleet_of(*seconds: float):
    return a_fleet(len(seconds), [lasts_s - 0.5 for lasts_s in seconds], 16.0, 16.0)


def closings(played: Played) -> list[tuple[float, float | None]]:
    """When each round closed, and the mean staleness of what it absorbed."""
    return [(record.closed_s, record.staleness) for record in played.records]


def sent_out(played: Played) -> list[tuple[int, int, float, float]]:
    """(dispatch, client, dispatched_s, end_s) of each visit that was handed over, by visit."""
    visits = [
        (
            *(
                column.tolist()
                for column in (rows.visit, rows.dispatch, rows.client, rows.dispatched_s, rows.end_s)
            ),
        )
        for rows in played.visits
    ]
    by_visit = sorted(visit for columns in visits for visit in zip(*columns, strict=True))
    return [visit[1:] for visit in by_visit]


def test_with_a_buffer_of_one_each_update_makes_a_step_and_a_slow_one_is_stale():
    played = clients_of(1, 3, buffer=1, concurrency=2, rounds=5).play()
    assert closings(played) == [(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (3.0, 3.0), (4.0, 0.0)]
    assert [record.completed for record in played.records] == [[0], [0], [0], [1], [0]]
    assert [record.largest_staleness for record in played.records] == [0, 0, 0, 3, 0]
    assert [record.steps for record in played.records] == [1] * 5
    # The fourth round opens at 3 s, when client 1 is back as well, and closes as soon as both were sent out.
    assert [record.in_flight for record in played.records] == [1, 1, 1, 2, 1]


def test_with_a_buffer_of_two_the_fast_one_waits_for_the_slow_one():
    played = clients_of(1, 3, buffer=2, concurrency=2, participants=2, rounds=2).play()
    assert closings(played) == [(3.0, 0.0), (6.0, 0.0)]
    # A client whose update waits in the buffer is not selected, though there is a free slot.
    assert sent_out(played) == [(0, 0, 0.0, 1.0), (0, 1, 0.0, 3.0), (1, 0, 3.0, 4.0), (1, 1, 3.0, 6.0)]


def test_rounds_of_several_steps_say_how_many_and_how_stale_on_average():
    played = clients_of(1, 3, buffer=1, concurrency=2, participants=5, rounds=1).play()
    (record,) = played.records
    assert (record.closed_s, record.steps, record.in_flight) == (4.0, 5, 1)
    assert (record.staleness, record.largest_staleness) == (3 / 5, 3)
    # The last one is abandoned as the run ends, after a quarter of a second of its download and 0.75 s more.
    assert record.participants == [0, 0, 0, 1, 0, 1]
    assert record.completed == [0, 0, 0, 1, 0]
    assert record.abandoned == 1
    assert record.download_bytes == 6 * 4
    assert record.upload_bytes == 5 * 4


def test_updates_of_the_slow_are_computed_from_the_model_of_their_dispatch():
    # Targets 1 and 0, all the way: what is added is 1, 0, 0 by client 0, and 0 - 0 by client 1, which started
    # from the first model, though the server's is at 1 by then.
    played = clients_of(1, 3, buffer=1, concurrency=2, rounds=4, targets=[1.0, 0.0])
    played.executor.pull = 1.0
    result = played.play()
    assert [start.tolist() for start in result.executor.starts] == [[[0.0]], [[1.0]], [[1.0]], [[0.0]]]
    assert result.models == [[1.0]]


def test_slots_are_filled_by_twos_if_so_configured():
    # Three clients, two slots: client 2, say, is selected only when both slots are free.
    played = clients_of(1, 3, buffer=1, concurrency=2, refill=2, participants=6, rounds=1).play()
    assert sent_out(played) == [
        *((0, 0, 0.0, 1.0), (0, 1, 0.0, 3.0)),
        *((1, 0, 3.0, 4.0), (1, 1, 3.0, 6.0)),
        *((2, 0, 6.0, 7.0), (2, 1, 6.0, 9.0)),
    ]
    # The step of client 0 comes first.
    assert (played.records[0].staleness, played.records[0].largest_staleness) == (3 / 6, 1)


@pytest.mark.parametrize("participants", [1, 2, 3, 1000])
def test_a_staleness_does_not_depend_on_where_rounds_close(participants):
    # At 2, 4, 6 and 8 s all three are back, and slots are filled after that: client 1 has seen the steps of
    # client 0 at 1 s and 2 s, client 2 that of client 1 as well.
    population = clients_of(1, 2, 2, buffer=1, concurrency=3, participants=participants)
    population.rounds, population.seconds_per_round = 1, 8.0
    played = population.play()
    steps = [(rows.client.tolist(), rows.staleness.tolist()) for rows in played.visits]
    assert steps == [([0], [0]), ([0], [0]), ([1], [2]), ([2], [3])] * 4
    assert {dispatched_s for *_, dispatched_s, _ in sent_out(played)} == set(range(8))
    # What was absorbed beyond a round's participants at the instant of its end counts for the next one.
    closed_s = {1: [1, *(2, 2), 3, *(4, 4), 5, *(6, 6), 7, 8], 2: [2, 2, 4, 4, 6, 6, 8], 3: [2, 4, 5, 6, 8]}
    assert [record.closed_s for record in played.records] == closed_s.get(participants, [8])


def test_a_client_that_dropped_out_is_sent_out_again_at_once_when_it_is_back():
    away = FakeAvailability({0: [(-INF, 2.5), (2.5, 4.0), (5.0, INF)]})
    played = clients_of(2, availability=away, rounds=3).play()
    # Online again at the very instant at which it drops out, and from 5 s on.
    assert sent_out(played) == [
        *((0, 0, 0.0, 2.0), (1, 0, 2.0, 2.5), (2, 0, 2.5, 4.0)),
        *((3, 0, 5.0, 7.0), (4, 0, 7.0, 9.0)),
    ]
    assert [record.closed_s for record in played.records] == [2.0, 7.0, 9.0]
    assert [record.dropped for record in played.records] == [[], [0, 0], []]
    # No other step has been made: what dropped out is not stale.
    assert [record.staleness for record in played.records] == [0.0, 0.0, 0.0]


def test_a_client_that_crashed_is_sent_out_again_at_once_with_other_random_streams():
    crash = 0.75
    played = clients_of(2, faults=FaultSettings(crash=crash), rounds=3).play()
    visits = sent_out(played)
    outcomes = [outcome for rows in played.visits for outcome in rows.outcome.tolist()]
    assert outcomes.count(DROPPED) > 2
    assert outcomes.count(COMPLETED) == 3
    faults = Faults(FaultSettings(crash=crash), 1, RandomStreams(0))
    next_s = 0.0
    for number, (dispatch, _, dispatched_s, end_s) in enumerate(visits):
        assert (dispatch, dispatched_s) == (number, next_s)
        crash_s = faults.visits(dispatch, ints(0), Work.of(1)).crash_s(dispatched_s, np.array([2.0]))
        next_s = min(float(crash_s[0]), dispatched_s + 2.0)
        assert end_s == next_s


def test_a_free_slot_waits_for_the_next_client_that_comes_online():
    coming = FakeAvailability({1: [(1.5, INF)], 2: [(1.25, 1.5)]})
    played = clients_of(3, 3, 3, availability=coming, buffer=1, concurrency=2, rounds=3).play()
    # Client 2 comes first, and goes as client 1 comes.
    assert sent_out(played)[:4] == [(0, 0, 0.0, 3.0), (1, 2, 1.25, 1.5), (2, 1, 1.5, 4.5), (3, 0, 3.0, 6.0)]


def test_a_slot_that_nobody_is_there_for_waits_for_the_next_end():
    never = FakeAvailability({1: []})
    played = clients_of(1, 1, availability=never, buffer=1, concurrency=2, rounds=4, max_wait_days=0.0).play()
    assert [record.closed_s for record in played.records] == [1.0, 2.0, 3.0, 4.0]
    assert [record.in_flight for record in played.records] == [0] * 4


def test_a_wait_while_nothing_is_out_is_given_up_when_it_would_last_longer_than_is_allowed():
    for days, waits in ((2.0, True), (1.9, False)):
        away = FakeAvailability({0: [(-INF, 1.0), (1.0 + 2 * DAY_S, INF)]})
        population = clients_of(2, availability=away, max_wait_days=days)
        if waits:
            assert population.play().records[0].closed_s == 3.0 + 2 * DAY_S
        else:
            with pytest.raises(RunError, match=r"round 0: 0 of 1 clients are online at 1 s.*not within 1\.9"):
                population.play()


def test_a_buffer_that_nobody_comes_to_fill_in_time_is_absorbed_as_it_is():
    """Client 1 goes offline for good: the round has the updates that there are, as one of sync would."""
    gone = FakeAvailability({1: [(-INF, 0.5)]})
    played = clients_of(1, 1, availability=gone, buffer=2, concurrency=2, rounds=3).play()
    assert [record.closed_s for record in played.records] == [1.0, 2.0, 3.0]
    assert [record.completed for record in played.records] == [[0], [0], [0]]


def test_a_run_in_which_every_visit_drops_out_is_given_up():
    with pytest.raises(
        RunError, match=r"round 0: no visit was absorbed.* 101 dropped, 0 abandoned and 0 out"
    ):
        clients_of(2, faults=FaultSettings(crash=1.0), concurrency=1).play()


def test_a_run_that_ends_before_that_only_waits_for_its_end():
    away = FakeAvailability({0: [(-INF, 1.0)]})
    population = clients_of(2, availability=away, max_wait_days=0.0)
    population.rounds, population.seconds_per_round = 3, 10.0
    (record,) = population.play().records
    assert (record.closed_s, record.dropped, record.steps) == (30.0, [0], 0)


# -- time-outs, and updates that are too stale -------------------------------------------------------------


def outcomes_of(played: Played) -> list[tuple[int, float, int, float, float]]:
    """(client, end_s, outcome, download_bytes, upload_bytes) of each visit that was handed over, by visit."""
    visits = [
        (visit, client, end_s, outcome, down, up)
        for rows in played.visits
        for visit, client, end_s, outcome, down, up in zip(
            *(rows.visit.tolist(), rows.client.tolist(), rows.end_s.tolist(), rows.outcome.tolist()),
            *(rows.download_bytes.tolist(), rows.upload_bytes.tolist()),
            strict=True,
        )
    ]
    return [visit[1:] for visit in sorted(visits)]


def test_with_a_time_out_the_slot_of_a_client_that_is_gone_is_filled_only_then():
    away = {"availability": FakeAvailability({1: [(-INF, 0.125), (1.0, INF)]})}
    at_once = clients_of(2, 2, buffer=1, concurrency=2, rounds=3, **away).play()
    noticed = clients_of(2, 2, buffer=1, concurrency=2, rounds=3, timeout_s=3.0, **away).play()
    # Gone in the middle of its download, client 1 is sent out again as it comes back, or at the time-out.
    assert outcomes_of(at_once)[:3] == [
        (0, 2.0, COMPLETED, 4, 4),
        (1, 0.125, DROPPED, 2, 0),
        (1, 3.0, COMPLETED, 4, 4),
    ]
    assert outcomes_of(noticed)[:4] == [
        (0, 2.0, COMPLETED, 4, 4),
        (1, 0.125, DROPPED, 2, 0),
        (0, 4.0, COMPLETED, 4, 4),
        (1, 5.0, COMPLETED, 4, 4),
    ]
    assert [record.closed_s for record in noticed.records] == [2.0, 4.0, 5.0]
    assert [record.dropped for record in noticed.records] == [[], [1], []]


def test_with_a_time_out_a_visit_that_takes_longer_is_abandoned_and_moves_bytes_until_then():
    # In 3.5 s client 1 has downloaded and computed, and sent half of its update.
    played = clients_of(1, 3.625, buffer=1, concurrency=2, rounds=4, timeout_s=3.5).play()
    assert outcomes_of(played)[1] == (1, 3.5, ABANDONED, 4, 2)
    assert played.records[3].abandoned == 2  # and one as the run ends
    just_in_time = clients_of(1, 3.5, buffer=1, concurrency=2, rounds=4, timeout_s=3.5).play()
    assert outcomes_of(just_in_time)[1] == (1, 3.5, COMPLETED, 4, 4)


def test_a_run_in_which_every_visit_times_out_is_given_up_and_says_so():
    message = r"101 abandoned and 0 out.*or the pacing abandons them"
    with pytest.raises(RunError, match=message):
        clients_of(2, concurrency=1, timeout_s=1.5).play()


def test_a_run_in_which_one_update_waits_for_others_that_never_come_is_given_up():
    """Only client 0 is fast enough, and its update waits in a buffer of two."""
    population = clients_of(1, 9, 9, buffer=2, concurrency=2, timeout_s=5.0)
    with pytest.raises(RunError, match=r"0 completed, 1 waiting to be absorbed, 0 dropped, 201 abandoned"):
        population.play()


def test_an_update_that_is_too_stale_is_abandoned_and_charged():
    """Client 1 comes back at 3 s, right after the third step of client 0."""
    for most, outcome in ((3, COMPLETED), (2, ABANDONED)):
        played = clients_of(1, 3, buffer=1, concurrency=2, rounds=5, max_staleness=most).play()
        assert outcomes_of(played)[1] == (1, 3.0, outcome, 4, 4)
        absorbed = [0, 0, 0, 1, 0] if outcome == COMPLETED else [0, 0, 0, 0, 0]
        assert [record.completed for record in played.records] == [[client] for client in absorbed]
        assert [start.tolist() for start in played.executor.starts[:4]] == [
            *([[0.0]], [[0.5]], [[0.75]]),
            [[0.0 if outcome == COMPLETED else 0.875]],
        ]


# -- lanes ------------------------------------------------------------------------------------------------


def in_lanes(*members: int) -> Clusterer:
    return FakeClusterer({0: fresh(members)})


def test_each_lane_makes_its_own_steps_which_age_its_own_visits_alone():
    # Two lanes of a fast and a slow client, with two slots each; lane 1 takes twice as long.
    played = clients_of(
        *(1, 3, 2, 6), clusterer=in_lanes(0, 0, 1, 1), buffer=1, concurrency=4, participants=10, rounds=1
    ).play()
    steps = [(rows.client.tolist(), rows.staleness.tolist()) for rows in played.visits]
    by_lane = {lane: [step for step in steps[:-1] if step[0][0] // 2 == lane] for lane in (0, 1)}
    assert by_lane[0][:5] == [([0], [0]), ([0], [0]), ([0], [0]), ([1], [3]), ([0], [0])]
    assert by_lane[1] == [([2], [0]), ([2], [0])]
    assert {lane: len(of_lane) for lane, of_lane in by_lane.items()} == {0: 8, 1: 2}


def test_a_lane_all_of_whose_clients_wait_for_a_step_makes_it_with_a_part_filled_buffer():
    # Lane 0 has clients 0 and 1, and one slot of two: alone it would step with three updates. So has lane 1,
    # which has four clients.
    played = clients_of(
        *(1, 2, 8, 8, 8, 8), clusterer=in_lanes(0, 0, 1, 1, 1, 1), buffer=6, concurrency=2, rounds=1
    ).play()
    (record,) = played.records
    # One after the other, in either order: both are back at 3 s.
    assert record.closed_s == 3.0
    assert sorted(record.completed) == [0, 1]
    assert (record.steps, record.in_flight) == (1, 1)


def test_a_lane_of_waiting_clients_also_steps_if_a_round_has_closed_at_that_instant():
    # Lane 0 is client 0, lane 1 are clients 1 and 2, and each lane has a slot, and steps with two updates.
    # At 2 s the updates of client 0 and of a second client of lane 1 are back: lane 1 makes a step, which
    # closes the round. Lane 0 has nobody else to wait for.
    # And clients 1 and 2 have gone by then, for a while or for ever.
    for back_s in (50.0, INF):
        gone = [(-INF, 2.0), *([(back_s, INF)] if back_s < INF else [])]
        population = clients_of(
            *(2, 1, 1),
            clusterer=in_lanes(0, 1, 1),
            availability=FakeAvailability({1: gone, 2: gone}),
            buffer=3,
            concurrency=2,
            participants=2,
            rounds=2,
        )
        played = population.play()
        assert [(rows.client.tolist()) for rows in played.visits][:3] == [[1, 2], [0], [0]]
        assert played.records[1].closed_s == 4.0


# -- beside sync ------------------------------------------------------------------------------------------


def six_alike(pacing: Any, *members: int) -> Played:
    """Clients of equal speed whose data change in every round, each in its lane."""
    rng = np.random.default_rng(3)
    return Population(
        FakeExecutor(rng.uniform(size=6), num_parameters=3, pull=0.3),
        stream=FakeStream(np.ones((5, 6, 1)), train=[3, 1, 4, 1, 5, 9], touched=np.ones((5, 6))),
        fleet=a_fleet(6, 1.0),
        clusterer=FakeClusterer({0: fresh(members, num_parameters=3)}),
        pacing=pacing,
        rounds=5,
    ).play()


def full_buffer(cohort: CohortSize) -> Buffered:
    return Buffered(BufferedSettings(), cohort)


def test_with_equal_speeds_and_a_buffer_of_all_clients_rounds_are_those_of_sync():
    sync, several = (six_alike(pacing, 0, 0, 0, 0, 0, 0) for pacing in (SyncSettings(), full_buffer))
    assert several.models == sync.models
    for one, other in zip(several.records, sync.records, strict=True):
        assert replace(one, steps=None, staleness=None, largest_staleness=None, in_flight=None) == other
        assert (one.steps, one.staleness, one.largest_staleness, one.in_flight) == (1, 0.0, 0, 0)


def test_with_lanes_too_though_each_of_them_makes_a_step_of_its_own():
    sync, several = (six_alike(pacing, 0, 1, 1, 0, 2, 1) for pacing in (SyncSettings(), full_buffer))
    assert several.models == sync.models
    assert [record.closed_s for record in several.records] == [record.closed_s for record in sync.records]
    assert [record.accuracy for record in several.records] == [record.accuracy for record in sync.records]
    assert [(record.steps, record.largest_staleness) for record in several.records] == [(3, 0)] * 5


def test_a_pacing_of_whole_rounds_has_no_staleness_in_the_log():
    played = Population(FakeExecutor([1.0]), log_visits=True).play()
    assert [(rows.dispatch, rows.staleness) for rows in played.visits] == [(None, None)]
