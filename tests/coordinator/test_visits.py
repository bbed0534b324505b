from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.federation import SentOut
from coordinator.pacing import CohortSize, Pacing
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.fixed import Fixed, FixedSettings
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.visits import VisitCounts, Visits
from emulator.arrays import Bools, Floats, Ints
from emulator.errors import RunError
from emulator.in_flight import NO_ENDS, VisitEnds
from emulator.messages import EndedVisits, Outcome
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import ints

OUT, BACK, ABANDONED, DROPPED = Outcome.OUT, Outcome.COMPLETED, Outcome.ABANDONED, Outcome.DROPPED


class Scripted(Sync):
    """Synchronous rounds, with some rules replaced."""

    def __init__(self, **rules: Callable[..., Any]) -> None:
        super().__init__(SyncSettings(), CohortSize(3))
        for name, rule in rules.items():
            setattr(self, name, rule)


def sync(**settings: Any) -> Sync:
    return Sync(SyncSettings(**settings), CohortSize(3))


def visits_of(lanes: Ints, quota: Ints, pacing: Pacing, first: int = 0) -> Visits:
    """Visits `first`, `first` + 1, ... of the clients of the same ids, sent out at 100 s."""
    visits = Visits(pacing, num_clients=100)
    visits.restore({**visits.state(), "_opened": first})
    visits.plan(sizes=np.full(len(quota), 10), quota=quota)
    visits.open(SentOut(first + np.arange(len(lanes)), lanes, NO_ENDS), 100.0)
    visits.begin_round(100.0)
    return visits


def three(pacing: Pacing, quota: Ints | None = None) -> Visits:
    """Visits 10, 11, 12 in lanes 0, 1, 1, of which one and two are wanted back."""
    return visits_of(ints(0, 1, 1), ints(1, 2, 0) if quota is None else quota, pacing, first=10)


def ends(*rows: tuple[float, int, bool]) -> VisitEnds:
    """Ends of visits, of rows (time_s, visit, dropped)."""
    time_s, visit, dropped = zip(*rows, strict=True)
    outcomes = np.where(dropped, Outcome.DROPPED, Outcome.COMPLETED)
    return VisitEnds(np.array(time_s), ints(*visit), ints(*visit), outcomes)


def columns(visits: Visits) -> Mapping[str, Any]:
    """The columns of the visits that no server step has taken."""
    table: Mapping[str, Any] = visits.state()["_table"]
    return table


def outcomes(visits: Visits) -> list[int]:
    return [int(outcome) for outcome in columns(visits)["outcome"]]


def end(visits: Visits, *rows: tuple[float, int, bool]) -> tuple[int, float | None]:
    """How many ends of visits were processed, and the instant at which something is due, if anything is."""
    count, due = visits.end(ends(*rows))
    return count, None if due is None else due.at_s


def step(visits: Visits, *rows: tuple[float, int, bool]) -> tuple[int, float, EndedVisits]:
    """How many ends were processed up to the server step, its instant, and the visits that it takes."""
    count, due = visits.end(ends(*rows))
    assert due is not None
    return count, due.at_s, visits.take(due.absorbing)


def at_deadline(visits: Visits, now_s: float) -> EndedVisits:
    """The visits that the server step at the deadline takes."""
    due = visits.deadline_passed(now_s)
    assert due is not None
    assert due.at_s == now_s
    return visits.take(due.absorbing)


def test_the_round_steps_when_nothing_is_out_and_hands_its_visits_over_once():
    visits = three(sync())
    assert end(visits, (105.0, 10, True), (110.0, 12, False)) == (2, None)
    assert visits.counts == VisitCounts(opened=13, completed=0, waiting=1, dropped=1, abandoned=0, out=1)
    assert outcomes(visits) == [DROPPED, OUT, BACK]
    count, step_s, ended = step(visits, (111.0, 11, False), (112.0, 99, False))
    assert (count, step_s) == (1, 111.0)
    assert ended.visit.tolist() == [10, 11, 12]
    assert ended.outcome.tolist() == [DROPPED, BACK, BACK]
    assert ended.end_s.tolist() == [105.0, 111.0, 110.0]
    assert ended.staleness.tolist() == [0, 0, 0]
    assert (visits.count, visits.opened) == (0, 13)


def test_visits_that_are_over_count_for_nothing():
    visits = three(sync())
    assert end(visits, (101.0, 9, False), (102.0, 3, True)) == (2, None)
    visits.end(ends((103.0, 11, True)))
    assert end(visits, (104.0, 11, False)) == (1, None)
    assert outcomes(visits) == [OUT, DROPPED, OUT]


def test_a_full_lane_abandons_its_own_visits_and_no_others():
    visits = three(sync(), ints(1, 1, 0))
    count, step_s, ended = step(
        visits, (104.0, 12, False), (106.0, 11, False), (109.0, 10, False), (120.0, 9, False)
    )
    assert ended.outcome.tolist() == [BACK, ABANDONED, BACK]
    assert ended.end_s.tolist() == [109.0, 104.0, 104.0]
    # The visit that arrives at 106 s was abandoned before; ends after 109 s are not processed.
    assert (count, step_s) == (3, 109.0)


def test_a_drop_out_fills_no_lane():
    visits = three(sync(), ints(1, 1, 0))
    visits.end(ends((104.0, 12, True), (106.0, 11, False)))
    assert outcomes(visits) == [OUT, BACK, DROPPED]


def test_a_deadline_abandons_all_visits_that_are_out_but_not_one_that_arrives_with_it():
    visits = three(sync(deadline_s=8.0))
    assert end(visits, (108.0, 11, False)) == (1, None)
    ended = at_deadline(visits, 108.0)
    assert ended.outcome.tolist() == [ABANDONED, BACK, ABANDONED]
    assert ended.end_s.tolist() == [108.0] * 3


@pytest.mark.parametrize("duration_s", [600.0, 0.1, 1e-9])
def test_a_round_of_a_fixed_duration_steps_then_and_not_when_all_are_back(duration_s):
    visits = three(Fixed(FixedSettings(duration_s=duration_s), CohortSize(3)))
    now_s = 100.0 + duration_s
    assert end(visits, (100.0, 10, False), (now_s, 11, False), (now_s, 12, False)) == (3, None)
    assert at_deadline(visits, now_s).outcome.tolist() == [BACK] * 3


def test_a_round_of_a_fixed_duration_abandons_the_visits_still_out():
    visits = three(Fixed(FixedSettings(duration_s=600.0), CohortSize(3)))
    visits.end(ends((110.0, 10, True), (120.0, 11, False)))
    assert at_deadline(visits, 700.0).outcome.tolist() == [DROPPED, BACK, ABANDONED]


class SemiSync(Pacing):
    """Closes with half of its participants back, or after ten seconds with one; abandons the others."""

    deadline_s = 10.0

    def __init__(self, cohort: CohortSize) -> None:
        self.cohort = cohort

    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        enough = np.where(elapsed_s >= self.deadline_s, 1, self.cohort.participants / 2)
        nothing_out = out.sum(axis=-1, keepdims=True) == 0
        return np.broadcast_to((back.sum(axis=-1, keepdims=True) >= enough) | nothing_out, out.shape)

    absorbs = full

    def closes(self, absorbed: int, elapsed_s: float) -> bool:
        return True


def test_a_semi_synchronous_pacing_is_ten_lines():
    def four() -> Visits:
        return visits_of(ints(0, 0, 1, 1), ints(2, 2), SemiSync(CohortSize(4)))

    early = four()
    count, step_s, ended = step(early, (103.0, 0, False), (104.0, 1, False), (105.0, 2, False))
    assert (count, step_s) == (2, 104.0)
    assert ended.outcome.tolist() == [BACK, BACK, ABANDONED, ABANDONED]
    late = four()
    assert end(late, (103.0, 0, True)) == (1, None)
    assert late.deadline_passed(110.0) is None
    count, step_s, ended = step(late, (123.0, 3, False), (124.0, 1, False))
    assert (count, step_s) == (1, 123.0)
    assert ended.outcome.tolist() == [DROPPED, ABANDONED, ABANDONED, BACK]


def test_a_pacing_is_not_evaluated_at_the_end_of_a_visit_that_was_abandoned() -> None:
    # Lane 0 has its quota at 101 s and abandons visit 1. When that visit would have ended, ten seconds have
    # passed, and lane 1 would be full.
    visits = visits_of(ints(0, 0, 1, 1), ints(1, 1), Patience(SyncSettings(), CohortSize(2)))
    count, step_s, ended = step(
        visits, (101.0, 0, False), (111.0, 1, False), (190.0, 2, False), (195.0, 3, False)
    )
    assert (count, step_s) == (3, 190.0)
    assert ended.end_s.tolist() == [101.0, 101.0, 190.0, 190.0]


ALL, NONE = np.ones, np.zeros


class Further(Scripted):
    """The same, of which a round may have several dispatches and server steps."""

    whole_rounds = False


def test_a_step_that_leaves_visits_behind_is_refused_by_name_unless_rounds_may_have_several() -> None:
    def at_once(kind: type[Scripted]) -> Visits:
        return three(kind(absorbs=lambda quota, out, back, elapsed_s: ALL(out.shape, dtype=bool)))

    with pytest.raises(RunError, match=r"pacing Scripted makes a server step while 2 visits stay; .*must d"):
        step(at_once(Scripted), (105.0, 12, False))
    visits = at_once(Further)
    count, step_s, ended = step(visits, (105.0, 12, False), (106.0, 11, True))
    assert (count, step_s, ended.visit.tolist()) == (1, 105.0, [12])
    # Those that stay are of lanes 0 and 1, which have both made a step.
    assert columns(visits)["visit"].tolist() == [10, 11]
    assert columns(visits)["staleness"].tolist() == [1, 1]


def test_a_step_of_one_lane_is_refused_by_name_unless_rounds_may_have_several() -> None:
    def by_lane(kind: type[Scripted]) -> Visits:
        return three(kind(absorbs=lambda quota, out, back, elapsed_s: back >= quota), ints(1, 1))

    with pytest.raises(RunError, match="Scripted makes a server step while 1 visits stay"):
        step(by_lane(Scripted), (105.0, 12, False))
    visits = by_lane(Further)
    _, _, ended = step(visits, (105.0, 12, False))
    assert (ended.visit.tolist(), ended.outcome.tolist()) == ([11, 12], [ABANDONED, BACK])
    _, _, ended = step(visits, (107.0, 10, False))
    # The step of lane 1 has not aged it.
    assert (ended.visit.tolist(), ended.staleness.tolist()) == ([10], [0])


def test_a_pacing_is_asked_for_further_visits_after_each_end_unless_none_may_be_opened() -> None:
    def further() -> Visits:
        return three(Further(opens=lambda quota, sizes, out, back: np.maximum(quota - out - back, 0)))

    all_ends = ((105.0, 10, True), (106.0, 11, False), (107.0, 12, False))
    visits = further()
    count, due = visits.end(ends(*all_ends))
    assert (count, due and due.at_s, due and due.absorbing.any()) == (1, 105.0, False)
    assert visits.wanted().tolist() == [1, 0, 0]
    count, due = further().end(ends(*all_ends), may_open=False)
    assert (count, due and due.at_s, due and due.absorbing.tolist()) == (3, 107.0, [True, True, False])


def test_a_pacing_that_waits_for_visits_when_none_is_out_is_refused_by_name():
    def never(kind: type[Scripted]) -> Visits:
        return three(kind(absorbs=lambda quota, out, back, elapsed_s: NONE(out.shape, dtype=bool)))

    for kind in (Scripted, Further):
        name = f"{kind.__name__} makes no server step, and none of its visits is out"
        with pytest.raises(RunError, match=name):
            never(kind).end(ends((105.0, 10, True), (106.0, 11, False), (107.0, 12, False)))


def test_full_is_not_evaluated_for_a_pacing_that_does_not_cancel():
    class Patient(Sync):
        cancels = False

        def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
            raise AssertionError

    visits = three(Patient(SyncSettings(), CohortSize(3)), ints(1, 1, 0))
    count, step_s, ended = step(visits, (104.0, 12, False), (106.0, 11, False), (109.0, 10, False))
    assert (count, step_s) == (3, 109.0)
    assert ended.outcome.tolist() == [BACK] * 3


class Patience(Sync):
    """After ten seconds a lane is full with one visit less; there is no deadline to evaluate that."""

    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        return back >= quota - (elapsed_s >= 10)


PACINGS = {
    "patience": lambda size: Patience(SyncSettings(), size),
    "lane": lambda size: Sync(SyncSettings(), size),
    "pooled": lambda size: Sync(SyncSettings(close="pooled"), size),
    "deadline": lambda size: Sync(SyncSettings(deadline_s=7.0), size),
    "fixed": lambda size: Fixed(FixedSettings(duration_s=7.0), size),
    "semi-synchronous": SemiSync,
}


@pytest.mark.slow
@given(st.data())
def test_ends_in_bulk_come_to_the_same_as_one_by_one(data: st.DataObject) -> None:
    lanes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=12)))
    quota = np.array(data.draw(st.tuples(*[st.integers(0, 4)] * 3)))
    pacing = data.draw(st.sampled_from(sorted(PACINGS)))
    order = data.draw(st.permutations(range(len(lanes))))
    dropped = data.draw(st.lists(st.booleans(), min_size=len(lanes), max_size=len(lanes)))
    gaps_s = data.draw(st.lists(st.sampled_from([0.0, 1.0, 6.0]), min_size=len(lanes), max_size=len(lanes)))
    all_ends = [
        (100.0 + time_s, visit, dropped[visit])
        for time_s, visit in zip(np.cumsum(gaps_s).tolist(), order, strict=True)
    ]
    bulk, single = (visits_of(lanes, quota, PACINGS[pacing](CohortSize(4))) for _ in range(2))
    expected: tuple[int, float | None] = (len(lanes), None)
    for count, one in enumerate(all_ends, start=1):
        _, step_s = end(single, one)
        if step_s is not None:
            expected = (count, step_s)
            break
    assert end(bulk, *all_ends) == expected
    assert to_bytes(bulk.state()) == to_bytes(single.state())


@pytest.mark.parametrize("others", [0, 31, 32, 33, 500])
def test_ends_are_counted_once_however_many_parts_they_are_evaluated_in(others: int) -> None:
    """Only a few more than the last dispatch sent out are evaluated at first."""
    visits = three(sync())
    before = [(101.0, visit, False) for visit in [3] * others]
    expected = (others + 3, 104.0)
    assert end(visits, *before, (102.0, 10, False), (103.0, 11, True), (104.0, 12, False)) == expected
    assert visits.counts.out == 0


@pytest.mark.slow
@given(st.data())
def test_visits_opened_are_completed_dropped_abandoned_or_out(data: st.DataObject) -> None:
    visits = visits_of(ints(), ints(), sync())
    for round_ in range(3):
        lanes = np.array(data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=8)))
        visits.plan(ints(9, 9), np.array(data.draw(st.tuples(*[st.integers(0, 4)] * 2))))
        first, now_s = visits.opened, 100.0 * round_
        visits.open(SentOut(np.arange(len(lanes)), lanes, NO_ENDS), now_s)
        visits.begin_round(now_s)
        order = data.draw(st.permutations(range(first, visits.opened)))
        due = None
        for elapsed_s, visit in enumerate(order):
            if due is None:
                now_s = 100.0 * round_ + elapsed_s
                _, due = visits.end(ends((now_s, visit, data.draw(st.booleans()))))
            counts = visits.counts
            ended = counts.completed + counts.waiting + counts.dropped + counts.abandoned
            assert counts.opened == ended + counts.out
            assert counts.opened == first + len(lanes)
            assert visits.in_flight == counts.waiting + counts.out == np.count_nonzero(visits.busy)
        assert due is not None
        visits.take(due.absorbing)
        assert (visits.counts.waiting, visits.counts.out, visits.count) == (0, 0, 0)
        assert not visits.busy.any()


def test_quotas_that_change_while_visits_are_back_are_looked_at_again_and_equal_ones_are_not():
    """Else a run that is resumed, which plans its lanes anew, would do what one that goes on does not."""
    visits = visits_of(ints(0, 1), ints(2, 2), Buffered(BufferedSettings(concurrency=4), CohortSize(4)))
    assert end(visits, (101.0, 0, False)) == (1, 101.0)  # a slot is free
    visits.plan(ints(10, 10), ints(2, 2))
    assert not visits.is_planned_anew
    visits.plan(ints(10, 10), ints(1, 3))
    assert visits.is_planned_anew
    assert visits.absorbing(101.0).tolist() == [True, False]
    assert not visits.is_planned_anew


def test_visits_are_stored_and_put_back():
    visits, again = three(sync()), Visits(sync(), num_clients=100)
    visits.end(ends((105.0, 10, True)))
    again.restore(from_bytes(to_bytes(visits.state())))
    assert again.busy.nonzero()[0].tolist() == [11, 12]
    count, step_s, ended = step(again, (110.0, 12, False), (111.0, 11, False))
    assert (count, step_s) == (2, 111.0)
    assert ended.outcome.tolist() == [DROPPED, BACK, BACK]
    assert again.counts.dropped == 1
