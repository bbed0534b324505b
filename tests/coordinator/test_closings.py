"""Ends of visits by columns equal the reference, which evaluates the rules for all lanes at all ends."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator.federation import SentOut
from coordinator.pacing import CohortSize, Pacing
from coordinator.pacing.fixed import Fixed, FixedSettings
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.visits import Due, Visits
from emulator.arrays import Bools, Floats, Ints
from emulator.in_flight import NO_ENDS, VisitEnds
from emulator.messages import COMPLETED, DROPPED
from experiments.contracts.pacings import check_pacing


class Patient(Sync):
    """Waits for visits of full lanes too."""

    cancels = False


PACINGS: list[Pacing] = [
    *(
        kind(SyncSettings(close=close, deadline_s=deadline_s), CohortSize(4))
        for kind in (Sync, Patient)
        for close in ("lane", "pooled")
        for deadline_s in (None, 4.5)
    ),
    Fixed(FixedSettings(duration_s=4.0), CohortSize(4)),
]


@given(
    pacing=st.sampled_from(PACINGS),
    quota=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    visits=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6), st.booleans()), min_size=1, max_size=12),
    most=st.integers(1, 12),
)
@example(pacing=PACINGS[0], quota=[0, 1], visits=[(0, 2, False), (1, 1, False), (1, 3, False)], most=12)
@example(pacing=PACINGS[0], quota=[1, 1], visits=[(0, 1, False), (0, 9, False), (1, 1, True)], most=1)
def test_every_round_ends_as_in_the_reference(
    pacing: Pacing, quota: list[int], visits: list[tuple[int, int, bool]], most: int
) -> None:
    assert "lanes" not in (pacing.sees("full"), pacing.sees("absorbs"))
    lanes = np.array([lane % len(quota) for lane, _, _ in visits])
    ids = np.arange(len(lanes))
    time_s = 100.0 + np.array([lasts for _, lasts, _ in visits])
    outcomes = np.where([dropped for _, _, dropped in visits], DROPPED, COMPLETED)
    ends = VisitEnds(time_s, ids, ids, outcomes).in_order()
    assert played(pacing, lanes, np.array(quota), ends, most, is_reference=False) == played(
        pacing, lanes, np.array(quota), ends, most, is_reference=True
    )


def played(
    pacing: Pacing, lanes: Ints, quota: Ints, ends: VisitEnds, most: int, *, is_reference: bool
) -> list[Any]:
    """What each batch of at most `most` ends returned, and the state after it; the deadline is the last."""
    visits, happened, row = Visits(pacing, len(lanes), is_reference=is_reference), [], 0
    due: Due | None = None
    visits.plan(np.full(len(quota), 10), quota)
    visits.open(SentOut(np.arange(len(lanes)), lanes, NO_ENDS), 100.0)
    deadline_s = visits.begin_round(100.0)

    def happens(count: int) -> None:
        table = visits.state()["_table"]
        due_s, absorbing = (None, None) if due is None else (due.at_s, due.absorbing.tolist())
        happened.append((count, due_s, absorbing, table["outcome"].tolist(), repr(table["end_s"].tolist())))

    stop = len(ends) if deadline_s is None else int(ends.time_s.searchsorted(deadline_s, side="right"))
    while due is None and row < stop:
        count, due = visits.end(ends.part(row, min(row + most, stop)))
        row += count
        happens(count)
    if due is None and deadline_s is not None:
        due = visits.deadline_passed(deadline_s)
        happens(0)
    return happened


class Hasty(Sync):
    """Overrides a rule, and declares nothing of it."""

    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        return back.cumsum(axis=-1) >= quota


class Wrong(Hasty):
    """Declares of its rule what is not so."""

    @property
    def full_sees(self) -> Any:
        return "lane"


def test_a_class_that_overrides_a_rule_declares_nothing_of_it() -> None:
    hasty = Hasty(SyncSettings(), CohortSize(3))
    assert (hasty.sees("full"), hasty.sees("absorbs")) == ("lanes", "sums")
    sync = Sync(SyncSettings(), CohortSize(3))
    assert (sync.sees("full"), sync.sees("absorbs")) == ("lane", "sums")
    sync.absorbs = hasty.absorbs  # type: ignore[method-assign]
    assert sync.sees("absorbs") == "lanes"


def test_a_declaration_that_is_not_so_breaks_the_contract() -> None:
    with pytest.raises(AssertionError, match="what it declares of them"):
        check_pacing(lambda cohort: Wrong(SyncSettings(), cohort))


def test_ten_thousand_lanes_take_no_array_of_ends_and_lanes() -> None:
    """Which would have 1.3e8 cells, a gigabyte of counts."""
    lanes = np.arange(13_000) % 10_000
    ids = np.arange(len(lanes))
    visits = Visits(Sync(SyncSettings(), CohortSize(10_000)), num_clients=len(ids))
    quota = np.ones(10_000, dtype=np.int64)
    visits.plan(quota * 10, quota)
    visits.open(SentOut(ids, lanes, NO_ENDS), 0.0)
    visits.begin_round(0.0)
    tracemalloc.start()
    count, due = visits.end(VisitEnds(ids + 1.0, ids, ids, np.full_like(ids, COMPLETED)))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 10e6
    assert due is not None
    assert (count, due.at_s) == (10_000, 10_000.0)
    assert (visits.take(due.absorbing).outcome[10_000:] == 2).all()
