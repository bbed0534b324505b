from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.federation import SentOut
from coordinator.pacing import CohortSize, Pacing
from coordinator.pacing.fixed import Fixed, FixedSettings
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.visits import Visits
from emulator.arrays import Bools, Floats, Ints
from emulator.errors import RunError
from emulator.in_flight import NO_ENDS, VisitEnds
from emulator.messages import Outcome
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
    visits = Visits(pacing)
    visits.restore({**visits.state(), "_first": first})
    visits.plan(sizes=np.full(len(quota), 10), quota=quota)
    visits.open(SentOut(first + np.arange(len(lanes)), lanes, NO_ENDS), 100.0)
    return visits


def three(pacing: Pacing, quota: Ints | None = None) -> Visits:
    """Visits 10, 11, 12 in lanes 0, 1, 1, of which one and two are wanted back."""
    return visits_of(ints(0, 1, 1), ints(1, 2, 0) if quota is None else quota, pacing, first=10)


def ends(*rows: tuple[float, int, bool]) -> VisitEnds:
    """Ends of visits, of rows (time_s, visit, dropped)."""
    time_s, visit, dropped = zip(*rows, strict=True)
    return VisitEnds(np.array(time_s), ints(*visit), ints(*visit), np.array(dropped))


def outcomes(visits: Visits) -> list[int]:
    return [int(outcome) for outcome in visits.state()["_outcome"]]


def test_the_round_steps_when_nothing_is_out_and_hands_its_visits_over_once():
    visits = three(sync())
    assert visits.end(ends((105.0, 10, True), (110.0, 12, False))) == (2, None)
    assert [counts.tolist() for counts in visits.out_and_back()] == [[0, 1, 0], [0, 1, 0]]
    assert visits.end(ends((111.0, 11, False), (112.0, 99, False))) == (1, 111.0)
    ended = visits.close(111.0)
    assert ended.visit.tolist() == [10, 11, 12]
    assert ended.outcome.tolist() == [DROPPED, BACK, BACK]
    assert ended.end_s.tolist() == [105.0, 111.0, 110.0]
    assert (len(visits), visits.opened) == (0, 13)


def test_visits_that_are_over_count_for_nothing():
    visits = three(sync())
    assert visits.end(ends((101.0, 9, False), (102.0, 3, True))) == (2, None)
    visits.end(ends((103.0, 11, True)))
    assert visits.end(ends((104.0, 11, False))) == (1, None)
    assert outcomes(visits) == [OUT, DROPPED, OUT]


def test_a_full_lane_abandons_its_own_visits_and_no_others():
    visits = three(sync(), ints(1, 1, 0))
    count, step_s = visits.end(
        ends((104.0, 12, False), (106.0, 11, False), (109.0, 10, False), (120.0, 9, False))
    )
    ended = visits.close(109.0)
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
    assert visits.end(ends((108.0, 11, False))) == (1, None)
    assert visits.deadline_passed(108.0)
    ended = visits.close(108.0)
    assert ended.outcome.tolist() == [ABANDONED, BACK, ABANDONED]
    assert ended.end_s.tolist() == [108.0] * 3


@pytest.mark.parametrize("duration_s", [600.0, 0.1, 1e-9])
def test_a_round_of_a_fixed_duration_steps_then_and_not_when_all_are_back(duration_s):
    visits = three(Fixed(FixedSettings(duration_s=duration_s), CohortSize(3)))
    now_s = 100.0 + duration_s
    assert visits.end(ends((100.0, 10, False), (now_s, 11, False), (now_s, 12, False))) == (3, None)
    assert visits.deadline_passed(now_s)
    assert visits.close(now_s).outcome.tolist() == [BACK] * 3


def test_a_round_of_a_fixed_duration_abandons_the_visits_still_out():
    visits = three(Fixed(FixedSettings(duration_s=600.0), CohortSize(3)))
    visits.end(ends((110.0, 10, True), (120.0, 11, False)))
    assert visits.deadline_passed(700.0)
    assert visits.close(700.0).outcome.tolist() == [DROPPED, BACK, ABANDONED]


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
    assert early.end(ends((103.0, 0, False), (104.0, 1, False), (105.0, 2, False))) == (2, 104.0)
    assert early.close(104.0).outcome.tolist() == [BACK, BACK, ABANDONED, ABANDONED]
    late = four()
    assert late.end(ends((103.0, 0, True))) == (1, None)
    assert not late.deadline_passed(110.0)
    assert late.end(ends((123.0, 3, False), (124.0, 1, False))) == (1, 123.0)
    assert late.close(123.0).outcome.tolist() == [DROPPED, ABANDONED, ABANDONED, BACK]


def test_a_pacing_is_not_evaluated_at_the_end_of_a_visit_that_was_abandoned() -> None:
    # Lane 0 has its quota at 101 s and abandons visit 1. When that visit would have ended, ten seconds have
    # passed, and lane 1 would be full.
    visits = visits_of(ints(0, 0, 1, 1), ints(1, 1), Patience(SyncSettings(), CohortSize(2)))
    all_ends = ends((101.0, 0, False), (111.0, 1, False), (190.0, 2, False), (195.0, 3, False))
    assert visits.end(all_ends) == (3, 190.0)
    assert visits.close(190.0).end_s.tolist() == [101.0, 101.0, 190.0, 190.0]


def test_a_pacing_that_would_replace_a_drop_out_is_refused_though_the_round_ends_with_the_same_ends() -> None:
    again = three(Scripted(opens=lambda quota, sizes, out, back: np.maximum(quota - out - back, 0)))
    with pytest.raises(RunError, match="Scripted opens 1 more visits in the same round"):
        again.end(ends((105.0, 10, True), (106.0, 11, False), (107.0, 12, False)))


ALL, NONE = np.ones, np.zeros


def test_a_pacing_that_wants_more_than_one_dispatch_and_one_step_is_refused_by_name():
    at_once = three(Scripted(absorbs=lambda quota, out, back, elapsed_s: ALL(out.shape, dtype=bool)))
    assert at_once.end(ends((105.0, 12, False))) == (1, 105.0)
    with pytest.raises(RunError, match="pacing Scripted makes a server step while 2 visits are out"):
        at_once.close(105.0)
    by_lane = three(Scripted(absorbs=lambda quota, out, back, elapsed_s: back >= quota), ints(1, 1))
    with pytest.raises(RunError, match="Scripted makes a server step for lane 1, but not for all lanes"):
        by_lane.end(ends((105.0, 12, False)))
    again = three(Scripted(opens=lambda quota, sizes, out, back: quota - out))
    with pytest.raises(RunError, match="Scripted opens 1 more visits in the same round"):
        again.end(ends((105.0, 10, False), (106.0, 11, False)))
    open_ = three(Scripted(closes=lambda absorbed, elapsed_s: absorbed >= 3))
    assert open_.end(ends((105.0, 10, True), (106.0, 11, False), (107.0, 12, False))) == (3, 107.0)
    with pytest.raises(RunError, match="Scripted leaves the round open after its server step"):
        open_.close(107.0)


def test_a_pacing_that_waits_for_visits_when_none_is_out_is_refused_by_name():
    never = three(Scripted(absorbs=lambda quota, out, back, elapsed_s: NONE(out.shape, dtype=bool)))
    with pytest.raises(RunError, match="Scripted makes no server step, and none of its visits is out"):
        never.end(ends((105.0, 10, True), (106.0, 11, False), (107.0, 12, False)))


def test_full_is_not_evaluated_for_a_pacing_that_does_not_cancel():
    class Patient(Sync):
        cancels = False

        def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
            raise AssertionError

    visits = three(Patient(SyncSettings(), CohortSize(3)), ints(1, 1, 0))
    assert visits.end(ends((104.0, 12, False), (106.0, 11, False), (109.0, 10, False))) == (3, 109.0)
    assert visits.close(109.0).outcome.tolist() == [BACK] * 3


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
    steps = [(count, single.end(ends(end))[1]) for count, end in enumerate(all_ends, start=1)]
    expected = next(((count, step_s) for count, step_s in steps if step_s is not None), (len(lanes), None))
    assert bulk.end(ends(*all_ends)) == expected
    if expected[1] is None:
        assert to_bytes(bulk.state()) == to_bytes(single.state())


@given(st.data())
def test_visits_opened_are_completed_dropped_abandoned_or_out(data: st.DataObject) -> None:
    visits = visits_of(ints(), ints(), sync())
    for round_ in range(3):
        lanes = np.array(data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=8)))
        visits.plan(ints(9, 9), np.array(data.draw(st.tuples(*[st.integers(0, 4)] * 2))))
        first, now_s = visits.opened, 100.0 * round_
        visits.open(SentOut(np.arange(len(lanes)), lanes, NO_ENDS), now_s)
        order = data.draw(st.permutations(range(first, visits.opened)))
        step_s = None
        for elapsed_s, visit in enumerate(order):
            if step_s is None:
                now_s = 100.0 * round_ + elapsed_s
                _, step_s = visits.end(ends((now_s, visit, data.draw(st.booleans()))))
            counts = visits.counts
            assert counts.opened == counts.completed + counts.dropped + counts.abandoned + counts.out
            assert counts.opened == first + len(lanes)
        assert step_s is not None
        visits.close(step_s)
        assert visits.counts.out == 0


def test_visits_are_stored_and_put_back():
    visits, again = three(sync()), Visits(sync())
    visits.end(ends((105.0, 10, True)))
    again.restore(from_bytes(to_bytes(visits.state())))
    assert again.end(ends((110.0, 12, False), (111.0, 11, False))) == (2, 111.0)
    assert again.close(111.0).outcome.tolist() == [DROPPED, BACK, BACK]
    assert again.counts.dropped == 1


@pytest.mark.parametrize("flags", [True, [[True]], np.array([[1]]), np.array([True]), np.ones((1, 2), bool)])
@pytest.mark.parametrize("rule", ["full", "absorbs"])
def test_flags_of_another_shape_or_type_are_refused(rule, flags):
    visits = three(Scripted(**{rule: lambda quota, out, back, elapsed_s: flags}))
    with pytest.raises(
        RunError, match=rf"pacing Scripted: {rule} must return bools of shape \(1, 3\) or \(1, 1\), for 1 i"
    ):
        visits.end(ends((105.0, 12, False)))
