from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coordinator.federation.cohort import Cohort
from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncParameters
from emulator.arrays import Bools, Ints
from emulator.in_flight import VisitEnds
from emulator.latency import Phases
from emulator.messages import Outcome, SampleRanges, TrainTasks, Work
from tests.fakes import ints


def a_cohort() -> Cohort:
    """Visits 10, 11, 12 of clients 3, 5, 8 in lanes 0, 1, 1, sent at 100 s; client 5 trains two models.

    Each takes 2 s down, 4 s of compute and 4 s up, for 8 bytes each way.
    """
    seconds = np.ones(3)
    tasks = TrainTasks(
        client=ints(3, 5, 5, 8),
        model=ints(0, 1, 2, 1),
        version=ints(0, 0, 0, 0),
        visit=ints(10, 11, 11, 12),
        samples=SampleRanges.one_each(ints(0, 10, 10, 20), ints(5, 15, 15, 25)),
        settings={"learning_rate": np.array([1.0, 2.0, 3.0, 4.0])},
        round=6,
    )
    return Cohort(
        first_visit=10,
        clients=ints(3, 5, 8),
        lanes=ints(0, 1, 1),
        quota=ints(1, 2, 0),
        start_s=100.0,
        asked_s=np.zeros(3),
        crash_s=np.full(3, np.inf),
        payload=Work.of(3, download_bytes=8, upload_bytes=8),
        work=Work.of(3, download_bytes=8, upload_bytes=8),
        phases=Phases(2 * seconds, 4 * seconds, 4 * seconds),
        tasks=tasks,
        models=np.arange(7, dtype=np.float32)[:, None],
        start=ints(6, 1, 2, 0),
    )


def cohort_of(lanes: Ints, quota: Ints) -> Cohort:
    """Visits 0, 1, ... of the clients of the same ids, with nothing to train."""
    nobody = ints()
    return Cohort(
        first_visit=0,
        clients=np.arange(len(lanes)),
        lanes=lanes,
        quota=quota,
        start_s=100.0,
        asked_s=np.zeros(len(lanes)),
        crash_s=np.full(len(lanes), np.inf),
        payload=Work.of(len(lanes)),
        work=Work.of(len(lanes)),
        phases=Phases(*(np.ones(len(lanes)) for _ in range(3))),
        tasks=TrainTasks(nobody, nobody, nobody, nobody, SampleRanges.one_each(nobody, nobody), {}, round=0),
        models=np.zeros((0, 1), dtype=np.float32),
        start=nobody,
    )


def ends(*rows: tuple[float, int, int, bool]) -> VisitEnds:
    """(time_s, client, visit, dropped) each."""
    time_s, client, visit, dropped = zip(*rows, strict=True)
    return VisitEnds(np.array(time_s), ints(*client), ints(*visit), np.array(dropped))


def never(quota: Ints, back: Ints) -> Bools:
    return np.zeros(back.shape, dtype=bool)


def enough(quota: Ints, back: Ints) -> Bools:
    return back >= quota


def test_all_that_ends_counts_until_nothing_is_out():
    cohort = a_cohort()
    assert cohort.end(ends((105.0, 3, 10, True), (110.0, 8, 12, False)), never) == (2, None)
    assert Outcome.OUT in cohort.outcome
    assert cohort.back().tolist() == [0, 1, 0]
    assert cohort.end(ends((111.0, 5, 11, False)), never) == (1, 111.0)
    assert cohort.outcome.tolist() == [Outcome.DROPPED, Outcome.ABSORBED, Outcome.ABSORBED]
    assert cohort.end_s.tolist() == [105.0, 111.0, 110.0]


def test_visits_of_other_cohorts_and_visits_that_are_over_count_for_nothing():
    cohort = a_cohort()
    assert cohort.end(ends((101.0, 3, 9, False), (102.0, 3, 13, True)), never) == (2, None)
    cohort.end(ends((103.0, 5, 11, True)), never)
    assert cohort.end(ends((104.0, 5, 11, False)), never) == (1, None)
    assert cohort.outcome.tolist() == [Outcome.OUT, Outcome.DROPPED, Outcome.OUT]


def test_a_lane_that_is_full_abandons_what_is_out_in_it_and_the_others_go_on():
    cohort = a_cohort()
    cohort.quota = ints(1, 1, 0)
    count, closed_s = cohort.end(
        ends((104.0, 8, 12, False), (106.0, 5, 11, False), (109.0, 3, 10, False), (120.0, 0, 99, False)),
        enough,
    )
    assert cohort.outcome.tolist() == [Outcome.ABSORBED, Outcome.ABANDONED, Outcome.ABSORBED]
    assert cohort.end_s.tolist() == [109.0, 104.0, 104.0]
    # The arrival at 106 s was of a visit abandoned by then, what follows 109 s is left for later.
    assert (count, closed_s) == (3, 109.0)


def test_a_drop_out_fills_no_lane():
    cohort = a_cohort()
    cohort.quota = ints(1, 1, 0)
    cohort.end(ends((104.0, 8, 12, True), (106.0, 5, 11, False)), enough)
    assert cohort.outcome.tolist() == [Outcome.OUT, Outcome.ABSORBED, Outcome.DROPPED]


@given(st.data())
def test_ends_in_bulk_come_to_the_same_as_one_by_one(data: st.DataObject) -> None:
    lanes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=12)))
    quota = np.array(data.draw(st.tuples(*[st.integers(0, 4)] * 3)))
    pooled = data.draw(st.booleans())
    full = Sync(SyncParameters(close="pooled" if pooled else "lane"), CohortSize(1)).full
    order = data.draw(st.permutations(range(len(lanes))))
    dropped = data.draw(st.lists(st.booleans(), min_size=len(lanes), max_size=len(lanes)))
    all_ends = [(100.0 + 2 * place, visit, visit, dropped[visit]) for place, visit in enumerate(order)]
    bulk, single = cohort_of(lanes, quota), cohort_of(lanes, quota)
    closes = (single.end(ends(end), full)[1] for end in all_ends)
    looked_at, closed_s = next(
        (place, closed_s) for place, closed_s in enumerate(closes, start=1) if closed_s is not None
    )
    assert bulk.end(ends(*all_ends), full) == (looked_at, closed_s)
    assert bulk.outcome.tolist() == single.outcome.tolist()
    assert bulk.end_s.tolist() == single.end_s.tolist()


def test_abandoning_a_lane_ends_what_is_out_in_it_and_nothing_else():
    cohort = a_cohort()
    cohort.end(ends((105.0, 5, 11, False)), never)
    cohort.abandon(np.array([False, True, True]), 108.0)
    assert cohort.outcome.tolist() == [Outcome.OUT, Outcome.ABSORBED, Outcome.ABANDONED]
    assert cohort.end_s.tolist()[1:] == [105.0, 108.0]
    cohort.abandon(np.array([True, True, True]), 109.0)
    assert Outcome.OUT not in cohort.outcome
    assert cohort.end_s.tolist() == [109.0, 105.0, 108.0]
    assert cohort.ids(Outcome.ABANDONED).tolist() == [3, 8]


def test_the_bytes_of_a_visit_follow_the_time_it_had():
    cohort = a_cohort()
    # Half of the download, and all.
    cohort.end(ends((101.0, 5, 11, True), (110.0, 3, 10, False)), never)
    cohort.abandon(np.array([True, True, True]), 109.0)  # three quarters of the upload
    down, up = cohort.moved_bytes()
    assert down.tolist() == [8, 4, 8]
    assert up.tolist() == [8, 0, 6]


def test_the_tasks_that_are_kept_are_those_of_visits_that_came_back():
    cohort = a_cohort()
    cohort.end(ends((101.0, 3, 10, True), (110.0, 5, 11, False)), never)
    cohort.abandon(np.array([True, True, True]), 110.0)
    tasks, start = cohort.kept_tasks()
    assert tasks.client.tolist() == [5, 5]
    assert tasks.model.tolist() == [1, 2]
    assert tasks.settings["learning_rate"].tolist() == [2.0, 3.0]
    assert tasks.samples.rows(1).tolist() == [10, 11, 12, 13, 14]
    assert tasks.round == 6
    assert cohort.models[start].tolist() == [[1], [2]]
