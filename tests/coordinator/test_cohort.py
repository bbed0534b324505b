import numpy as np

from coordinator.cohort import Cohort
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
        work=Work.of(3, download_bytes=8, upload_bytes=8),
        phases=Phases(2 * seconds, 4 * seconds, 4 * seconds),
        tasks=tasks,
        starts=np.arange(4, dtype=np.float32)[:, None],
    )


def test_a_visit_is_out_until_it_ends_and_others_are_not_of_this_cohort():
    cohort = a_cohort()
    assert [cohort.is_out(visit) for visit in (9, 10, 11, 12, 13)] == [False, True, True, True, False]
    cohort.end(11, Outcome.ABSORBED, 110.0)
    assert [cohort.is_out(visit) for visit in (10, 11, 12)] == [True, False, True]
    assert cohort.any_out


def test_visits_that_are_back_are_counted_by_lane():
    cohort = a_cohort()
    cohort.end(11, Outcome.ABSORBED, 110.0)
    cohort.end(12, Outcome.DROPPED, 103.0)
    assert cohort.back().tolist() == [0, 1, 0]


def test_abandoning_a_lane_ends_what_is_out_in_it_and_nothing_else():
    cohort = a_cohort()
    cohort.end(11, Outcome.ABSORBED, 105.0)
    cohort.abandon(np.array([False, True, True]), 108.0)
    assert cohort.outcome.tolist() == [Outcome.OUT, Outcome.ABSORBED, Outcome.ABANDONED]
    assert cohort.end_s.tolist()[1:] == [105.0, 108.0]
    cohort.abandon(np.array([True, True, True]), 109.0)
    assert not cohort.any_out
    assert cohort.end_s.tolist() == [109.0, 105.0, 108.0]
    assert cohort.ids(Outcome.ABANDONED).tolist() == [3, 8]


def test_the_bytes_of_a_visit_follow_the_time_it_had():
    cohort = a_cohort()
    cohort.end(10, Outcome.ABSORBED, 110.0)
    cohort.end(11, Outcome.DROPPED, 101.0)  # half of the download
    cohort.end(12, Outcome.ABANDONED, 109.0)  # three quarters of the upload
    down, up = cohort.moved_bytes()
    assert down.tolist() == [8, 4, 8]
    assert up.tolist() == [8, 0, 6]


def test_the_tasks_that_are_kept_are_those_of_visits_that_came_back():
    cohort = a_cohort()
    cohort.end(10, Outcome.DROPPED, 101.0)
    cohort.end(11, Outcome.ABSORBED, 110.0)
    cohort.end(12, Outcome.ABANDONED, 110.0)
    tasks, starts = cohort.kept_tasks()
    assert tasks.client.tolist() == [5, 5]
    assert tasks.model.tolist() == [1, 2]
    assert tasks.settings["learning_rate"].tolist() == [2.0, 3.0]
    assert tasks.samples.rows(1).tolist() == [10, 11, 12, 13, 14]
    assert tasks.round == 6
    assert starts.tolist() == [[1], [2]]
