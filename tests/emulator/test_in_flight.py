from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import in_flight
from emulator.in_flight import NO_ENDS, InFlight, VisitEnds
from emulator.messages import COMPLETED, DROPPED

Row = tuple[float, bool, int, int]


def ends(rows: list[Row]) -> VisitEnds:
    """Ends of visits from rows (time_s, dropped, client, visit), the order of the sort keys."""
    return VisitEnds(
        np.array([row[0] for row in rows], dtype=np.float64),
        np.array([row[2] for row in rows], dtype=np.int64),
        np.array([row[3] for row in rows], dtype=np.int64),
        np.where([row[1] for row in rows], DROPPED, COMPLETED),
    )


def rows(visits: VisitEnds) -> list[Row]:
    columns = (visits.time_s, visits.outcome == DROPPED, visits.client, visits.visit)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_at_one_instant_an_arrival_beats_a_drop_out_and_then_a_lower_client_a_higher_one() -> None:
    in_order = [
        (7.0, False, 4, 9),
        (7.0, False, 5, 1),
        (7.0, True, 0, 3),
        (7.0, True, 0, 8),
        (7.5, False, 0, 0),
    ]
    queue = InFlight()
    queue.push(ends(in_order[::-1]))
    assert rows(queue.first(math.inf)) == in_order


def test_what_was_shown_stays_until_it_is_popped() -> None:
    queue = InFlight()
    queue.push(ends([(2.0, False, 0, 0), (1.0, False, 1, 1), (3.0, False, 2, 2)]))
    assert queue.first(2.0).visit.tolist() == [1, 0]
    assert queue.first(2.0).visit.tolist() == [1, 0]
    assert queue.first(2.0, most=1).visit.tolist() == [1]
    queue.pop(1)
    assert queue.first(2.5).visit.tolist() == [0]
    assert len(queue) == 2


def test_only_what_was_shown_can_be_popped() -> None:
    queue = InFlight()
    queue.push(ends([(2.0, False, 0, 0)]))
    with pytest.raises(IndexError, match="1 visits cannot be popped"):
        queue.pop(1)
    queue.first(math.inf)
    with pytest.raises(IndexError, match="2 visits cannot be popped"):
        queue.pop(2)


def test_an_empty_queue_has_nothing_to_show() -> None:
    queue = InFlight()
    assert len(queue.first(math.inf)) == 0
    queue.push(NO_ENDS)
    assert len(queue) == 0


def test_a_queue_that_ran_empty_sorts_no_more_than_before() -> None:
    queue = InFlight()
    queue.push(ends([(1.0, False, 0, 0)]))
    queue.first(math.inf)
    queue.pop(1)
    later = np.arange(2.0, 50_000.0)
    visits = np.arange(len(later))
    queue.push(VisitEnds(later, visits, visits, np.full(len(later), COMPLETED)))
    queue.first(math.inf)
    queue.push(ends([(40_000.5, False, 1, 1)]))
    # Visits that end later than the sorted ones are not sorted yet.
    assert len(queue.first(math.inf)) < 10_000
    assert len(queue) == len(later) + 1


@pytest.mark.parametrize("time_s", [math.inf, math.nan])
def test_a_visit_that_never_ends_is_refused(time_s: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        InFlight().push(ends([(1.0, False, 0, 0), (time_s, False, 1, 1)]))


@pytest.mark.slow
@given(st.data())
def test_visits_come_as_from_a_heap_whatever_is_pushed_and_popped_in_between(data: st.DataObject) -> None:
    sorted_at_once = in_flight.SORTED_AT_ONCE
    in_flight.SORTED_AT_ONCE = data.draw(st.integers(1, 6))
    try:
        queue, heap, visit, now_s = InFlight(), list[Row](), 0, 0.0
        delays = st.sampled_from([0.0, 0.25, 1.0, 1.0, 2.0, 8.0, 30.0])
        for _ in range(data.draw(st.integers(1, 12))):
            pushed = []
            for delay_s in data.draw(st.lists(delays, max_size=8)):
                row = (now_s + delay_s, data.draw(st.booleans()), data.draw(st.integers(0, 3)), visit)
                visit += 1
                pushed.append(row)
                heapq.heappush(heap, row)
            queue.push(ends(pushed))
            until_s = now_s + data.draw(st.sampled_from([0.5, 1.0, 10.0]))
            shown = rows(queue.first(until_s))
            assert bool(shown) == bool(heap and heap[0][0] <= until_s)
            count = data.draw(st.integers(0, len(shown)))
            assert shown[:count] == [heapq.heappop(heap) for _ in range(count)]
            queue.pop(count)
            now_s = shown[count - 1][0] if count else now_s
            assert len(queue) == len(heap)
            shown = rows(queue.first(math.inf, most=1))
            assert shown == ([heap[0]] if heap else [])
    finally:
        in_flight.SORTED_AT_ONCE = sorted_at_once
