from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.events import ClientDropped, DispatchDue, Event, RoundDeadline, RoundOpened, VisitDue
from emulator.queue import EventQueue


def drained(pushed: list[tuple[float, Event]]) -> list[tuple[float, Event]]:
    queue = EventQueue()
    for time_s, event in pushed:
        queue.push(time_s, event)
    return [queue.pop() for _ in range(len(queue))]


def test_the_earliest_event_comes_first() -> None:
    late, early = (9.0, RoundOpened(1)), (2.0, RoundOpened(0))
    assert drained([late, early]) == [early, late]


def test_at_one_instant_an_arrival_beats_a_drop_out_a_deadline_an_opening_and_a_dispatch() -> None:
    in_order = [
        VisitDue(client=9, visit=4),
        ClientDropped(client=1, visit=0),
        RoundDeadline(0),
        RoundOpened(1),
        DispatchDue(1),
    ]
    assert [event for _, event in drained([(7.0, event) for event in reversed(in_order)])] == in_order


def test_at_one_instant_equal_events_go_by_client_and_not_by_visit() -> None:
    pushed = [(3.0, VisitDue(client=client, visit=visit)) for client, visit in [(5, 0), (0, 1), (2, 2)]]
    assert [event.client for _, event in drained(pushed) if isinstance(event, VisitDue)] == [0, 2, 5]


def test_events_that_are_equal_in_all_else_keep_their_insertion_order() -> None:
    pushed: list[tuple[float, Event]] = [(1.0, VisitDue(client=3, visit=visit)) for visit in (8, 1, 5)]
    assert drained(pushed) == pushed


@st.composite
def schedules(draw: st.DrawFn) -> tuple[list[tuple[float, Event]], list[tuple[float, Event]]]:
    """A schedule in which no client has two events of a kind, and a permutation of it."""
    times = st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 2.0])
    kinds = st.sampled_from([VisitDue, ClientDropped])
    rows = draw(
        st.lists(st.tuples(times, kinds, st.integers(0, 20)), unique_by=lambda row: row[1:], max_size=12)
    )
    schedule: list[tuple[float, Event]] = [
        (time_s, kind(client=client, visit=100 - client)) for time_s, kind, client in rows
    ]
    schedule += [(draw(times), RoundDeadline(0)), (draw(times), RoundOpened(1))]
    return schedule, draw(st.permutations(schedule))


@settings(deadline=None)
@given(schedules())
def test_the_order_of_insertion_decides_nothing_between_distinct_clients(
    schedules: tuple[list[tuple[float, Event]], list[tuple[float, Event]]],
) -> None:
    schedule, permuted = schedules
    by_rule = sorted(schedule, key=lambda item: (item[0], item[1].priority, item[1].tie))
    assert drained(permuted) == by_rule


@pytest.mark.parametrize("time_s", [math.inf, math.nan])
def test_an_event_that_never_comes_is_refused(time_s: float) -> None:
    queue = EventQueue()
    with pytest.raises(ValueError, match=r"RoundOpened\(round=3\) must be finite"):
        queue.push(time_s, RoundOpened(3))
    assert len(queue) == 0


def test_an_empty_queue_has_nothing_to_pop() -> None:
    with pytest.raises(IndexError):
        EventQueue().pop()
