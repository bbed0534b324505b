import math
from dataclasses import replace

import numpy as np
import pytest

import emulator.ports as ports
from coordinator.coordinator import Coordinator
from coordinator.pacing.sync import Sync, SyncSettings
from emulator.arrays import Ints
from emulator.emulation import Emulation
from emulator.errors import RunError
from emulator.events import CohortDue, DispatchDue, Event, RoundDeadline, RoundOpened
from emulator.in_flight import VisitEnds
from emulator.messages import COMPLETED, DROPPED, InferencePlan
from emulator.ports import Executor, Reaction, SampleStream
from tests.fakes import (
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    FakeStream,
    MemoryLog,
    Population,
    a_fleet,
    fresh,
    ints,
)

INF = math.inf
VISIT_S = 9.0  # a visit with one parameter and one sample on the default fleet


def test_the_fakes_and_the_coordinator_satisfy_the_ports():
    population = Population(FakeExecutor([1.0]))
    port: ports.Coordinator = population.coordinator()
    executor: Executor = population.executor
    stream: SampleStream = FakeStream([[[1.0]]])
    assert (port.finished, executor.num_parameters, stream.num_clients) == (False, 1, 1)


# -- availability ---------------------------------------------------------------------------------------


def two_that_come(min_online: int, **settings) -> Population:
    """Client 0 is online from 7.25 s on, client 1 from 30.5 s on."""
    return Population(
        FakeExecutor([1.0, 1.0]),
        availability=FakeAvailability({0: [(7.25, INF)], 1: [(30.5, INF)]}),
        min_online=min_online,
        **settings,
    )


@pytest.mark.parametrize(("min_online", "instant", "participants"), [(1, 7.25, [0]), (2, 30.5, [0, 1])])
def test_a_round_waits_to_the_very_instant_at_which_enough_are_online(min_online, instant, participants):
    record = two_that_come(min_online).play().records[0]
    assert (record.opened_s, record.dispatched_s) == (0.0, instant)
    assert record.participants == participants


def test_enough_must_be_online_at_once_not_one_after_the_other():
    # 0: [0, 10) [50, 90);  1: [20, 30) [60, 90)
    sessions = {0: [(0.0, 10.0), (50.0, 90.0)], 1: [(20.0, 30.0), (60.0, 90.0)]}
    record = (
        Population(FakeExecutor([1.0, 1.0]), availability=FakeAvailability(sessions), min_online=2)
        .play()
        .records[0]
    )
    assert (record.dispatched_s, record.completed) == (60.0, [0, 1])


def test_a_fleet_that_is_never_online_again_ends_the_run_with_the_reason():
    population = Population(
        FakeExecutor([1.0, 1.0]),
        availability=FakeAvailability({0: [(0.0, 20.0)], 1: [(0.0, 20.0)]}),
        rounds=9,
    )
    log = MemoryLog()
    with pytest.raises(RunError, match=r"round 3: 0 of 2 clients are online at 20 s.*never"):
        population.play(log)
    # Two rounds of 9 s were logged, and one in which both clients dropped out at 20 s.
    assert [record.closed_s for record in log.records] == [9.0, 18.0, 20.0]


def test_a_wait_is_given_up_when_it_would_last_longer_than_the_days_that_are_allowed():
    day = 86_400.0
    for returns_s, waits in ((2 * day, True), (math.nextafter(2 * day, INF), False)):
        population = Population(
            FakeExecutor([1.0]), availability=FakeAvailability({0: [(returns_s, INF)]}), max_wait_days=2
        )
        if waits:
            assert population.play().records[0].dispatched_s == returns_s
        else:
            with pytest.raises(RunError, match="not within 2 virtual days"):
                population.play()


def test_short_waits_of_one_round_add_up():
    # Never both at once, with a change every half day: the wait ends at the first change after two days.
    half = 43_200.0
    sessions = {
        client: [(half * turn, half * (turn + 1)) for turn in range(client, 20, 2)] for client in range(2)
    }
    population = Population(
        FakeExecutor([1.0, 1.0]), availability=FakeAvailability(sessions), min_online=2, max_wait_days=2
    )
    with pytest.raises(RunError, match=r"1 of 2 clients are online at 172800 s"):
        population.play()


def test_fewer_online_than_wanted_are_all_sent_out():
    record = (
        Population(
            FakeExecutor([1.0] * 5),
            availability=FakeAvailability({0: [], 3: []}),
            participants=4,
            over_commit=1.25,
        )
        .play()
        .records[0]
    )
    assert record.completed == [1, 2, 4]


def test_a_lane_without_clients_online_does_not_hold_up_the_others():
    played = Population(
        FakeExecutor([1, 1, -1, -1], pull=1.0),
        availability=FakeAvailability({2: [], 3: []}),
        clusterer=FakeClusterer({0: fresh([0, 0, 1, 1])}),
    ).play()
    assert played.records[0].completed == [0, 1]
    assert played.models == [[1.0], [0.0]]


def test_a_lane_without_quota_is_neither_waited_for_nor_selected_from():
    # The quota of one participant goes to the larger lane, no client of which is online before 40 s.
    record = (
        Population(
            FakeExecutor([1.0] * 5),
            availability=FakeAvailability({client: [(40.0, INF)] for client in (0, 1, 2)}),
            clusterer=FakeClusterer({0: fresh([0, 0, 0, 1, 1])}),
            participants=1,
        )
        .play()
        .records[0]
    )
    assert record.dispatched_s == 40.0
    assert set(record.completed) < {0, 1, 2}


def test_min_online_requires_no_more_clients_than_are_in_the_lanes_with_a_quota():
    record = (
        Population(
            FakeExecutor([1.0] * 5),
            clusterer=FakeClusterer({0: fresh([0, 0, 0, 1, 1])}),
            participants=1,
            min_online=5,
        )
        .play()
        .records[0]
    )
    assert record.dispatched_s == 0.0
    assert len(record.completed) == 1


def test_clients_in_no_lane_are_not_selected_and_have_no_label():
    nowhere = replace(fresh([0, 0, 0]), members=np.array([[0], [-1], [0]]))

    class ServesAll(FakeClusterer):
        def serve(self, view):
            return InferencePlan.alike(np.zeros((view.num_clients, 1), dtype=np.int64))

    record = (
        Population(FakeExecutor([1.0] * 3), clusterer=ServesAll({0: nowhere}), participants=3)
        .play()
        .records[0]
    )
    assert record.completed == [0, 2]
    assert record.members.tolist() == [0, -1, 0]


def test_a_run_without_clients_in_any_lane_ends_with_the_reason():
    nowhere = replace(fresh([0]), members=np.array([[-1]]))
    with pytest.raises(RunError, match="nobody can be selected: of 1 clients 0 are in a lane"):
        Population(FakeExecutor([1.0]), clusterer=FakeClusterer({0: nowhere})).play()


# -- lanes ----------------------------------------------------------------------------------------------


def test_each_lane_keeps_its_own_quota_and_the_round_ends_with_the_slowest_lane():
    # Lane 0: clients 0 to 2 take 9, 10, 11 s; lane 1: clients 3 to 5 take 9, 29, 108 s. Quota 2 each, 3 sent.
    played = Population(
        FakeExecutor([1.0] * 6),
        fleet=a_fleet(6, seconds_per_sample=[1, 2, 3, 1, 21, 100]),
        clusterer=FakeClusterer({0: fresh([0, 0, 0, 1, 1, 1])}),
        participants=4,
        over_commit=1.5,
    ).play()
    record = played.records[0]
    assert record.completed == [0, 1, 3, 4]
    assert record.closed_s == 29.0
    assert record.abandoned == 2
    # Client 2 was abandoned at 10 s, not at 29 s: after 4 s down and 3 s of compute, 3 s of 4 s up.
    assert record.upload_bytes == 4 * 4 + 3


def test_pooled_lanes_close_together_on_the_participants_in_all():
    record = (
        Population(
            FakeExecutor([1.0] * 6),
            fleet=a_fleet(6, seconds_per_sample=[1, 2, 3, 1, 21, 100]),
            clusterer=FakeClusterer({0: fresh([0, 0, 0, 1, 1, 1])}),
            participants=4,
            over_commit=1.5,
            pacing=SyncSettings(close="pooled"),
        )
        .play()
        .records[0]
    )
    assert record.completed == [0, 1, 2, 3]
    assert record.closed_s == 11.0


# -- events ---------------------------------------------------------------------------------------------


def refused(coordinator: Coordinator, *events: Event) -> list[str]:
    """The errors for events that do not fit, without the round and the instant."""
    complaints = []
    for event in events:
        with pytest.raises(RunError, match=r"^round 0 at 0 s: ") as error:
            coordinator.handle(event, 0.0)
        complaints.append(str(error.value).removeprefix("round 0 at 0 s: "))
    return complaints


def test_an_event_that_does_not_fit_the_phase_of_the_round_is_an_error():
    coordinator = Population(FakeExecutor([1.0] * 2), rounds=3).coordinator()
    coordinator.start()
    none = "0 visits opened, of which 0 completed, 0 dropped, 0 abandoned and 0 out"
    assert refused(coordinator, RoundOpened(1), DispatchDue(0), CohortDue(0), RoundDeadline(0)) == [
        f"RoundOpened(round=1) does not fit, the round waits for RoundOpened; {none}",
        f"DispatchDue(round=0) does not fit, the round waits for RoundOpened; {none}",
        f"CohortDue(round=0) does not fit, the round waits for RoundOpened; {none}",
        f"RoundDeadline(round=0) does not fit, the round waits for RoundOpened; {none}",
    ]
    coordinator.handle(RoundOpened(0), 0.0)
    assert refused(coordinator, RoundOpened(0), CohortDue(0), DispatchDue(1))
    assert coordinator.handle(DispatchDue(0), 0.0) == Reaction([(0.0, CohortDue(0))])
    assert refused(coordinator, RoundOpened(0), DispatchDue(0), CohortDue(1))
    assert len(coordinator.handle(CohortDue(0), 0.0).visits) == 2
    out = "2 visits opened, of which 0 completed, 0 dropped, 0 abandoned and 2 out"
    assert refused(coordinator, CohortDue(0), RoundDeadline(1)) == [
        f"CohortDue(round=0) does not fit, the round waits for the ends of its visits; {out}",
        f"RoundDeadline(round=1) does not fit, the round waits for the ends of its visits; {out}",
    ]


def one_end(time_s: float, client: int, visit: int, dropped: bool = False) -> VisitEnds:
    return VisitEnds(np.array([time_s]), ints(client), ints(visit), ints(DROPPED if dropped else COMPLETED))


def test_the_end_of_a_visit_that_was_never_opened_is_an_error():
    coordinator = Population(FakeExecutor([1.0] * 2), rounds=3).coordinator()
    coordinator.start()
    with pytest.raises(RunError, match="round 0 at 7 s: the end of visit 0 does not fit"):
        coordinator.visits_ended(one_end(7.0, 0, 0))


def test_ends_of_visits_that_are_over_and_deadlines_of_rounds_that_are_count_for_nothing():
    coordinator = Population(FakeExecutor([1.0] * 2), rounds=3).coordinator()
    coordinator.start()
    coordinator.handle(RoundOpened(0), 0.0)
    coordinator.handle(DispatchDue(0), 0.0)
    sent = coordinator.handle(CohortDue(0), 0.0)
    assert not sent.events
    assert sent.visits.time_s.tolist() == [VISIT_S, VISIT_S]
    assert sent.visits.client.tolist() == sent.visits.visit.tolist() == [0, 1]
    assert sent.visits.outcome.tolist() == [COMPLETED, COMPLETED]
    assert coordinator.visits_ended(one_end(VISIT_S, 0, 0))[1].record is None
    assert (
        coordinator.visits_ended(one_end(VISIT_S, 0, 0, dropped=True))[1].record is None
    )  # it has returned already
    _, closed = coordinator.visits_ended(one_end(VISIT_S, 1, 1))
    assert closed.record is not None
    assert closed.record.completed == [0, 1]
    assert coordinator.handle(RoundDeadline(0), VISIT_S) == Reaction()
    assert coordinator.visits_ended(one_end(VISIT_S, 1, 1)) == (1, Reaction())
    coordinator.handle(RoundOpened(1), VISIT_S)
    coordinator.handle(DispatchDue(1), VISIT_S)
    coordinator.handle(CohortDue(1), VISIT_S)
    assert coordinator.handle(RoundDeadline(0), VISIT_S) == Reaction()
    for end in (one_end(VISIT_S, 0, 0), one_end(VISIT_S, 1, 1, dropped=True)):
        assert coordinator.visits_ended(end) == (1, Reaction())


def test_an_event_it_does_not_know_is_an_error():
    class Surprise(Event):
        priority = 9

    with pytest.raises(RunError, match=r"round 0 at 0 s: .*Surprise.* does not fit"):
        Population(FakeExecutor([1.0])).coordinator().handle(Surprise(), 0.0)


def test_the_run_ends_with_its_last_round_and_schedules_nothing_after_it():
    population = Population(FakeExecutor([1.0]), rounds=2)
    coordinator = population.coordinator()
    emulation = Emulation(coordinator, MemoryLog())
    emulation.run()
    assert coordinator.finished
    assert len(emulation.queue) == 0
    assert emulation.clock.now_s == 2 * VISIT_S


def test_a_pacing_that_opens_no_visit_is_refused_by_name():
    class Idle(Sync):
        def opens(self, quota: Ints, sizes: Ints, out: Ints, back: Ints) -> Ints:
            return np.zeros_like(out)

    with pytest.raises(RunError, match="round 0: the pacing Idle opens no visit"):
        Population(FakeExecutor([1.0]), pacing=lambda cohort: Idle(SyncSettings(), cohort)).play()


# -- pacings whose rounds are not one dispatch and one server step ---------------------------------------


class Replacing(Sync):
    """Sends out another visit for each that dropped out."""

    def opens(self, quota: Ints, sizes: Ints, out: Ints, back: Ints) -> Ints:
        return np.maximum(quota - out - back, 0)


class TwoSteps(Sync):
    """Closes a round when four visits were absorbed."""

    def closes(self, absorbed: int, elapsed_s: float) -> bool:
        return absorbed >= 4


def two_clients(kind: type[Sync], *, whole_rounds: bool) -> Population:
    """Client 1 drops out at 5 s, and is back at 6 s."""

    class Declared(kind):
        pass

    Declared.whole_rounds, Declared.__name__ = whole_rounds, kind.__name__
    return Population(
        FakeExecutor([1.0, 1.0]),
        availability=FakeAvailability({1: [(-INF, 5.0), (6.0, INF)]}),
        pacing=lambda cohort: Declared(SyncSettings(), cohort),
    )


def test_a_pacing_that_would_replace_a_drop_out_is_refused_by_name_unless_it_says_so():
    with pytest.raises(
        RunError, match=r"^the pacing Replacing opens 1 more visits in the same round; .*decl"
    ):
        two_clients(Replacing, whole_rounds=True).play()
    record = two_clients(Replacing, whole_rounds=False).play().records[0]
    assert (record.participants, record.completed, record.dropped) == ([0, 1, 1], [0, 1], [1])
    # Client 0 is back at 9 s, client 1 was sent out again as soon as it came.
    assert (record.dispatched_s, record.closed_s, record.steps) == (0.0, 6.0 + VISIT_S, 1)


def test_a_pacing_that_leaves_a_round_open_after_its_step_is_refused_by_name_unless_it_says_so():
    with pytest.raises(RunError, match=r"^the pacing TwoSteps leaves the round open after its server step; "):
        two_clients(TwoSteps, whole_rounds=True).play()
    record = two_clients(TwoSteps, whole_rounds=False).play().records[0]
    # Steps at 9 s, of client 0, and at 18 and 27 s, of both.
    assert record.participants == [0, 1, 0, 1, 0, 1]
    assert (record.completed, record.dropped) == ([0, 0, 1, 0, 1], [1])
    assert (record.closed_s, record.steps, record.staleness) == (3 * VISIT_S, 3, 0.0)


def test_a_drop_out_at_the_instant_at_which_the_round_closes_is_not_replaced():
    # Slots are filled once all visits that end at an instant have ended, and then the round is over.
    population = two_clients(Replacing, whole_rounds=True)
    population.availability = FakeAvailability({1: [(-INF, 4.5)]})
    for compute_s, is_last in ((2.5, True), (2.75, False)):
        population.fleet = a_fleet(2, [compute_s, 1.0], [4.0, 1.0], [4.0, 1.0])  # and 1 s down, 1 s up
        if is_last:
            assert population.play().records[0].closed_s == 4.5
        else:
            with pytest.raises(RunError, match="opens 1 more visits"):
                population.play()
