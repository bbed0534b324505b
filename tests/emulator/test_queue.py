from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.events import DispatchDue, Event, RoundDeadline, RoundOpened
from emulator.queue import EventQueue, VirtualClock


def drained(pushed: list[tuple[float, Event]]) -> list[tuple[float, Event]]:
    queue = EventQueue()
    for time_s, event in pushed:
        queue.push(time_s, event)
    return [queue.pop() for _ in range(len(queue))]


def test_the_earliest_event_comes_first() -> None:
    late, early = (9.0, RoundOpened(1)), (2.0, RoundOpened(0))
    assert drained([late, early]) == [early, late]


def test_at_one_instant_a_deadline_beats_an_opening_and_an_opening_a_dispatch() -> None:
    in_order = [RoundDeadline(0), RoundOpened(1), DispatchDue(1)]
    assert [event for _, event in drained([(7.0, event) for event in reversed(in_order)])] == in_order


def test_events_that_are_equal_in_all_else_keep_their_insertion_order() -> None:
    pushed: list[tuple[float, Event]] = [(1.0, RoundDeadline(number)) for number in (8, 1, 5)]
    assert drained(pushed) == pushed


@pytest.mark.slow
@given(st.data())
def test_the_order_of_insertion_decides_nothing_between_events_of_distinct_kinds(data: st.DataObject) -> None:
    times = st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 2.0])
    schedule: list[tuple[float, Event]] = [
        (data.draw(times), event) for event in (RoundDeadline(0), RoundOpened(1), DispatchDue(1))
    ]
    by_rule = sorted(schedule, key=lambda item: (item[0], item[1].priority))
    assert drained(data.draw(st.permutations(schedule))) == by_rule


def test_the_next_instant_is_known_without_popping_it() -> None:
    queue = EventQueue()
    assert queue.next_s == math.inf
    queue.push(5.0, RoundOpened(0))
    queue.push(3.0, RoundOpened(1))
    assert queue.next_s == 3.0
    assert len(queue) == 2


@pytest.mark.parametrize("time_s", [math.inf, math.nan])
def test_an_event_that_never_comes_is_refused(time_s: float) -> None:
    queue = EventQueue()
    with pytest.raises(ValueError, match=r"RoundOpened\(round=3\) must be finite"):
        queue.push(time_s, RoundOpened(3))
    assert len(queue) == 0


def test_an_empty_queue_has_nothing_to_pop() -> None:
    with pytest.raises(IndexError):
        EventQueue().pop()


def test_the_clock_starts_at_zero_and_may_stand_still() -> None:
    clock = VirtualClock()
    clock.advance_to(0.0)
    assert clock.now_s == 0.0


def test_the_clock_moves_forward_to_the_instant_it_is_told() -> None:
    clock = VirtualClock()
    clock.advance_to(1.5)
    clock.advance_to(1e9)
    assert clock.now_s == 1e9


@pytest.mark.parametrize("time_s", [4.999, -1.0, math.inf, -math.inf, math.nan])
def test_the_clock_refuses_to_go_back_or_to_the_end_of_time(time_s: float) -> None:
    clock = VirtualClock()
    clock.advance_to(5.0)
    with pytest.raises(ValueError, match=r"must be finite and not before now \(5.0\)"):
        clock.advance_to(time_s)
    assert clock.now_s == 5.0
