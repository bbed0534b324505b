from __future__ import annotations

from dataclasses import replace

import numpy as np

from coordinator.federation.cohort import Cohort
from emulator.latency import Phases
from emulator.messages import (
    ABANDONED,
    COMPLETED,
    DROPPED,
    EndedVisits,
    Outcome,
    SampleRanges,
    TrainTasks,
    Work,
)
from emulator.storage.state_tree import as_tree, from_bytes, from_tree, to_bytes
from tests.fakes import INF, ints


def a_cohort() -> Cohort:
    """Visits 10, 11, 12 of clients 3, 5, 8, of dispatch 6, at 100 s; client 5 trains two models.

    Each takes 2 s down, 4 s of compute and 4 s up, for 8 bytes each way.
    """
    seconds = np.ones(3)
    return Cohort(
        visit=ints(10, 11, 12),
        clients=ints(3, 5, 8),
        dispatch=ints(6, 6, 6),
        start_s=100.0 * seconds,
        requests_s=np.zeros(3),
        crash_s=np.array([INF, 101.0, INF]),
        gone_s=np.array([INF, 101.0, INF]),
        sent_before=None,
        base=None,
        ways=None,
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
        version=ints(3, 3, 3, 3),
        label=ints(0, 7, 8, 7),
        row=ints(0, 1, 2, 1),
        bound=np.ones(4, dtype=bool),
        stayed=np.ones(4, dtype=bool),
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
    ends = replace(a_cohort(), gone_s=np.array([INF, 101.0, 104.0])).ends()
    assert ends.visit.tolist() == [10, 11, 12]
    assert ends.time_s.tolist() == [110.0, 101.0, 104.0]
    assert ends.outcome.tolist() == [COMPLETED, DROPPED, DROPPED]


def test_with_a_time_out_late_visits_are_abandoned_and_drop_outs_are_noticed_at_that_instant():
    # Due at 110, gone at 101, gone at 104: all are out until 102, or 105, or the first is back at 110.
    cohort = replace(a_cohort(), gone_s=np.array([INF, 101.0, 104.0]))
    for timeout_s, outcomes in (
        (2.0, [ABANDONED, DROPPED, ABANDONED]),
        (5.0, [ABANDONED, DROPPED, DROPPED]),
        (10.0, [COMPLETED, DROPPED, DROPPED]),
    ):
        ends = cohort.ends(timeout_s)
        assert ends.time_s.tolist() == [100.0 + timeout_s] * 3
        assert ends.outcome.tolist() == outcomes


def test_of_a_visit_whose_drop_out_is_noticed_later_bytes_are_counted_until_its_client_was_gone():
    # Gone in the middle of the download, and of the upload; the third one's lane closes first.
    cohort = replace(a_cohort(), crash_s=np.full(3, INF), gone_s=np.array([101.0, 108.0, 109.0]))
    late = ended((112.0, Outcome.DROPPED), (112.0, Outcome.ABANDONED), (107.0, Outcome.ABANDONED))
    down, up, _ = cohort.moved_bytes(late)
    assert (down.tolist(), up.tolist()) == ([4, 8, 8], [0, 4, 2])
    assert cohort.crashed(late).tolist() == []


def test_the_bytes_of_a_visit_follow_the_time_it_had():
    # all; half of the download; all of the download and three quarters of the upload
    down, up, payload = a_cohort().moved_bytes(THREE_ENDS)
    assert down.tolist() == [8, 4, 8]
    assert up.tolist() == [8, 0, 6]
    assert payload.tolist() == [4 + 4, 2 + 0, 4 + 3]


def test_models_that_were_pushed_cost_nothing_and_the_base_that_comes_beside_them_does():
    pushed = replace(a_cohort(), sent_before=np.ones(3), base=np.array([2.0, 2.0, 0.0]))
    down, _, payload = pushed.moved_bytes(THREE_ENDS)
    assert down.tolist() == [2, 1, 0]
    assert payload.tolist() == [2 + 4, 1 + 0, 0 + 3]


def test_what_choosing_ways_takes_is_no_model_and_comes_beside_those_that_were_pushed():
    """Visit 11 has had half of its download, and nothing of its upload; visit 12 three quarters of that."""
    ways = Work.of(3, download_bytes=4, upload_bytes=2)
    chosen = replace(a_cohort(), ways=ways)
    assert [moved.tolist() for moved in chosen.moved_ways(THREE_ENDS)] == [[4, 2, 4], [2, 0, 1.5]]
    down, up, _ = replace(chosen, sent_before=np.ones(3)).moved_bytes(THREE_ENDS)
    assert (down.tolist(), up.tolist()) == ([4, 2, 4], [8, 0, 6])


def test_on_links_without_loss_the_payload_is_what_moves():
    cohort = a_cohort()
    *_, payload = replace(cohort, payload=None).moved_bytes(THREE_ENDS)
    assert payload.tolist() == [2 * (4 + 4), 2 * (2 + 0), 2 * (4 + 3)]


def test_a_client_that_dropped_out_at_the_instant_of_its_crash_has_crashed():
    assert a_cohort().crashed(THREE_ENDS).tolist() == [5]
    earlier = replace(a_cohort(), gone_s=np.array([INF, 100.5, INF]))
    assert earlier.crashed(THREE_ENDS).tolist() == []


def test_the_tasks_of_completed_visits_are_trained_and_no_others():
    cohort = a_cohort()
    rows, visits = cohort.absorbable(
        ended((101.0, Outcome.DROPPED), (110.0, Outcome.COMPLETED), (110.0, Outcome.ABANDONED))
    )
    tasks = cohort.tasks.take(rows)
    assert visits.tolist() == [1, 1]
    assert tasks.client.tolist() == [5, 5]
    assert tasks.model.tolist() == [1, 2]
    assert tasks.settings["learning_rate"].tolist() == [2.0, 3.0]
    assert tasks.samples.rows(1).tolist() == [10, 11, 12, 13, 14]
    assert tasks.dispatch.tolist() == [6] * len(tasks)
    assert cohort.models[cohort.start[rows]].tolist() == [[1], [2]]


def test_a_task_whose_model_has_no_successor_is_not_absorbed_though_its_visit_is() -> None:
    cohort = replace(a_cohort(), row=ints(0, 4, -1, -1))
    all_ = ended(*[(110.0, Outcome.COMPLETED)] * 3)
    assert cohort.tasks.model[cohort.absorbable(all_)[0]].tolist() == [0, 1]


def test_tasks_find_their_visits_also_where_these_are_not_in_order_of_their_ids() -> None:
    # By client: the visits of clients 3 and 8 began later than that of client 5.
    cohort = a_cohort()
    visit = ints(20, 11, 21)
    mixed = replace(
        cohort, visit=visit, tasks=replace(cohort.tasks, visit=ints(20, 11, 11, 21)), row=ints(0, 1, 2, 1)
    )
    assert cohort.visit_of_task.tolist() == mixed.visit_of_task.tolist() == [0, 1, 1, 2]
    lost = replace(THREE_ENDS, visit=visit, outcome=ints(DROPPED, COMPLETED, COMPLETED))
    assert [rows.tolist() for rows in mixed.absorbable(lost)] == [[1, 2, 3], [1, 1, 2]]


def test_the_log_says_dispatch_and_staleness_only_where_they_do_not_follow_from_the_round() -> None:
    cohort, late = a_cohort(), replace(THREE_ENDS, staleness=ints(0, 4, 2))
    columns = cohort.moved_bytes(late)
    whole, several = (cohort.logged(9, late, *columns, whole_rounds=whole) for whole in (True, False))
    assert (whole.dispatch, whole.staleness) == (None, None)
    assert several.dispatch is not None
    assert several.staleness is not None
    assert (several.dispatch.tolist(), several.staleness.tolist()) == ([6, 6, 6], [0, 4, 2])
    for rows in (whole, several):
        assert rows.round == 9
        assert rows.num_models.tolist() == [1, 2, 1]
        assert rows.models.tolist() == [0, 7, 8, 7]
        assert rows.crashed.tolist() == [False, True, False]


def test_a_cohort_is_stored_and_put_back():
    tree = as_tree(a_cohort())
    again = from_tree(Cohort, from_bytes(to_bytes(tree)))
    assert to_bytes(as_tree(again)) == to_bytes(tree)
    assert again.tasks.samples.rows(1).tolist() == [10, 11, 12, 13, 14]
