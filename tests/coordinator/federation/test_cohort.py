from __future__ import annotations

from dataclasses import replace

import numpy as np

from coordinator.federation.cohort import Cohort
from emulator.latency import Phases
from emulator.messages import EndedVisits, Outcome, SampleRanges, TrainTasks, Work
from emulator.storage.state_tree import as_tree, from_bytes, from_tree, to_bytes
from tests.fakes import INF, ints


def a_cohort() -> Cohort:
    """Visits 10, 11, 12 of clients 3, 5, 8, sent out at 100 s; client 5 trains two models.

    Each takes 2 s down, 4 s of compute and 4 s up, for 8 bytes each way.
    """
    seconds = np.ones(3)
    return Cohort(
        first_visit=10,
        clients=ints(3, 5, 8),
        start_s=100.0,
        requests_s=np.zeros(3),
        crash_s=np.array([INF, 101.0, INF]),
        payload=Work.of(3, download_bytes=4, upload_bytes=4),
        work=Work.of(3, download_bytes=8, upload_bytes=8),
        phases=Phases(2 * seconds, 4 * seconds, 4 * seconds),
        tasks=TrainTasks(
            client=ints(3, 5, 5, 8),
            model=ints(0, 1, 2, 1),
            visit=ints(10, 11, 11, 12),
            samples=SampleRanges.one_each(ints(0, 10, 10, 20), ints(5, 15, 15, 25)),
            settings={"learning_rate": np.array([1.0, 2.0, 3.0, 4.0])},
            dispatch=ints(6, 6, 6, 6),
            step=ints(0, 0, 0, 0),
        ),
        models=np.arange(7, dtype=np.float32)[:, None],
        start=ints(6, 1, 2, 0),
    )


def ended(*rows: tuple[float, Outcome]) -> EndedVisits:
    """(end_s, outcome) of visits 10, 11 and 12."""
    end_s, outcome = zip(*rows, strict=True)
    lanes, start_s = ints(0, 0, 0), np.full(3, 100.0)
    return EndedVisits(
        ints(10, 11, 12), ints(3, 5, 8), lanes, start_s, np.array(end_s), ints(*outcome), lanes
    )


THREE_ENDS = ended((110.0, Outcome.COMPLETED), (101.0, Outcome.DROPPED), (109.0, Outcome.ABANDONED))


def test_a_visit_ends_when_it_is_due_or_its_client_is_offline_or_crashes_before_that():
    ends = a_cohort().ends(np.array([INF, INF, 104.0]))
    assert ends.visit.tolist() == [10, 11, 12]
    assert ends.time_s.tolist() == [110.0, 101.0, 104.0]
    assert ends.dropped.tolist() == [False, True, True]


def test_the_bytes_of_a_visit_follow_the_time_it_had():
    # all; half of the download; all of the download and three quarters of the upload
    down, up, payload = a_cohort().moved_bytes(THREE_ENDS)
    assert down.tolist() == [8, 4, 8]
    assert up.tolist() == [8, 0, 6]
    assert payload.tolist() == [4 + 4, 2 + 0, 4 + 3]


def test_on_links_without_loss_the_payload_is_what_moves():
    cohort = a_cohort()
    *_, payload = replace(cohort, payload=cohort.work).moved_bytes(THREE_ENDS)
    assert payload.tolist() == [2 * (4 + 4), 2 * (2 + 0), 2 * (4 + 3)]


def test_a_client_that_dropped_out_at_the_instant_of_its_crash_has_crashed():
    assert a_cohort().crashed(THREE_ENDS).tolist() == [5]
    earlier = ended((110.0, Outcome.COMPLETED), (100.5, Outcome.DROPPED), (109.0, Outcome.ABANDONED))
    assert a_cohort().crashed(earlier).tolist() == []


def test_the_tasks_of_completed_visits_are_trained_and_no_others():
    cohort = a_cohort()
    tasks, start = cohort.completed_tasks(
        ended((101.0, Outcome.DROPPED), (110.0, Outcome.COMPLETED), (110.0, Outcome.ABANDONED))
    )
    assert tasks.client.tolist() == [5, 5]
    assert tasks.model.tolist() == [1, 2]
    assert tasks.settings["learning_rate"].tolist() == [2.0, 3.0]
    assert tasks.samples.rows(1).tolist() == [10, 11, 12, 13, 14]
    assert tasks.dispatch.tolist() == [6] * len(tasks)
    assert cohort.models[start].tolist() == [[1], [2]]


def test_a_cohort_is_stored_and_put_back():
    tree = as_tree(a_cohort())
    again = from_tree(Cohort, from_bytes(to_bytes(tree)))
    assert to_bytes(as_tree(again)) == to_bytes(tree)
    assert again.tasks.samples.rows(1).tolist() == [10, 11, 12, 13, 14]
