"""Visits in flight while rounds close: what becomes of them as models, data and the run change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.candidates import Candidates
from coordinator.clusterers.single import Single
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.fixed import Fixed, FixedSettings
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.selectors.random import Random
from coordinator.view import View
from emulator.arrays import Ints
from emulator.messages import ABANDONED, COMPLETED, SolverFacts, StateSpec
from emulator.plugins import NoSettings
from tests.fakes import (
    INF,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    FakeStream,
    Played,
    Population,
    a_fleet,
    fresh,
    ints,
)

DOWN_S = UP_S = 0.25


def clients_of(*seconds: float, script: Mapping[int, Assignment], **settings: Any) -> Population:
    """Clients whose visits take these seconds, of which a quarter down and one up, at a buffered pace."""
    pacing = {"buffer": 1, "concurrency": len(seconds), **settings.pop("pacing", {})}
    targets = settings.pop("targets", [1.0] * len(seconds))
    return Population(
        settings.pop("executor", None) or FakeExecutor(targets, pull=1.0),
        fleet=a_fleet(len(seconds), [lasts_s - 0.5 for lasts_s in seconds], 16.0, 16.0),
        pacing=lambda cohort: Buffered(BufferedSettings(**pacing), cohort),
        clusterer=FakeClusterer(script),
        log_visits=True,
        **settings,
    )


def replaced(mixing: list[list[float]], successor: list[int], members: list[int]) -> Assignment:
    """A re-clustering into models that are mixed from the old ones."""
    return Assignment(
        mixing=np.array(mixing),
        extra=np.zeros((0, 0), dtype=np.float32),
        successor=ints(*successor),
        members=ints(*members)[:, None],
        reclustered=True,
    )


def visits_of(played: Played, client: int) -> list[dict[str, float]]:
    """The visits of a client, in the order in which they were handed over."""
    names = ("lane", "dispatched_s", "end_s", "outcome", "staleness", "download_bytes", "upload_bytes")
    return [
        {name: getattr(rows, name)[row].item() for name in names}
        for rows in played.visits
        for row in np.flatnonzero(rows.client == client)
    ]


# -- models that are replaced -------------------------------------------------------------------------------

SWAPPED = replaced([[0, 1], [1, 0]], successor=[1, 0], members=[1, 0, 0])
"""The same two models in the other order: the lane of clients 1 and 2 is lane 0 from now on."""

MERGED = replaced([[0.5, 0.5]], successor=[0, 0], members=[0, 0, 0])
FIRST_ALONE = replaced([[1, 0]], successor=[0, -1], members=[0, 0, 0])


def three(second: Assignment, **settings: Any) -> Population:
    """Client 0 is in lane 0; clients 1, which is slow, and 2 in lane 1; `second` is in force from 1 s on.

    At 1 s each lane has made a step, and with the second of them the first round is over.
    """
    script = {0: fresh([0, 1, 1]), 1: second}
    return clients_of(*(1, 3, 1), script=script, participants=2, targets=[1.0, 5.0, 0.0], **settings)


def test_a_visit_follows_its_model_to_another_row_and_its_staleness_goes_on() -> None:
    played = three(SWAPPED, rounds=3).play()
    (slow,) = visits_of(played, 1)
    # Lane 1 made a step at 1 s, and as lane 0 another one at 2 s. At 3 s the update comes before that of
    # client 2.
    assert (slow["lane"], slow["end_s"], slow["staleness"]) == (0, 3.0, 2)
    assert slow["outcome"] == COMPLETED
    assert [record.closed_s for record in played.records] == [1.0, 2.0, 3.0]
    # The model started at 0, where client 2 keeps it, and goes all the way to the target of client 1.
    assert played.models == [[5.0], [1.0]]


def test_a_visit_follows_a_model_that_was_merged_with_another_and_sees_the_steps_of_both() -> None:
    played = three(MERGED, rounds=3).play()
    (slow, *_) = visits_of(played, 1)
    # One step of its own lane, and after 1 s those of clients 0, 2 and 0.
    assert (slow["lane"], slow["end_s"], slow["staleness"]) == (0, 3.0, 4)


def test_what_a_visit_learnt_is_added_to_the_model_that_continues_its_own() -> None:
    started = three(MERGED, rounds=3)
    played = started.play()
    # Merged at 1 s: the mean of 1 and 0. Then all go from where they started to their targets: at 2 s client
    # 0 from 0.5 to 1, client 2 from 0.5 to 0; at 3 s client 0 from 0.5 to 1, and client 1 from 0 to 5.
    assert [record.closed_s for record in played.records] == [1.0, 2.0, 3.0]
    assert played.models == [[0.5 + (0.5 - 0.5) + 0.5 + 5.0]]
    assert [start.tolist() for start in started.executor.starts[-2:]] == [[[0.5]], [[0.0]]]


def test_a_visit_without_a_model_that_continues_its_own_is_abandoned_at_that_instant() -> None:
    played = three(FIRST_ALONE, rounds=2).play()
    lost, again = visits_of(played, 1)
    assert (lost["outcome"], lost["end_s"], lost["lane"]) == (ABANDONED, 1.0, -1)
    # Its download was complete, its upload had not begun. And the client is selected again at once.
    assert (lost["download_bytes"], lost["upload_bytes"]) == (4.0, 0.0)
    assert again["dispatched_s"] == 1.0
    assert [record.completed for record in played.records] == [[0, 2], [0, 2]]
    # It is handed over by the next step.
    assert played.records[1].participants[:2] == [0, 1]
    assert played.coordinator.visits.abandoned == 1 + 1  # and what is out at the end


@pytest.mark.parametrize(
    ("bytes_per_s", "down", "up"), [(2.0, 2.0, 0.0), (0.5, 0.5, 0.0), (160.0, 4.0, 4 / 5)]
)
def test_an_abandoned_visit_is_charged_up_to_that_instant(bytes_per_s: float, down: float, up: float) -> None:
    # The last one is down in 0.025 s, computes for 0.925 s, and is up for 0.05 s of 0.25 s.
    population = three(FIRST_ALONE, rounds=2)
    population.fleet = a_fleet(3, [0.5, 0.925, 0.5], [16.0, bytes_per_s, 16.0], [16.0, 16.0, 16.0])
    played = population.play()
    lost, *_ = visits_of(played, 1)
    assert lost["outcome"] == ABANDONED
    assert (lost["download_bytes"], lost["upload_bytes"]) == pytest.approx((down, up))


def test_an_update_that_waits_for_a_step_of_a_model_without_successor_is_abandoned_and_charged_in_full() -> (
    None
):
    # Each lane steps with two updates. Lane 0 does at 2 s; client 1 is back since 1 s, client 2 is not.
    script = {0: fresh([0, 1, 1, 0]), 1: replaced([[1, 0]], [0, -1], [0, 0, 0, 0])}
    played = clients_of(*(2, 1, 5, 2), script=script, pacing={"buffer": 4}, participants=2, rounds=2).play()
    waited, *_ = visits_of(played, 1)
    assert (waited["outcome"], waited["end_s"]) == (ABANDONED, 1.0)
    assert (waited["download_bytes"], waited["upload_bytes"]) == (4.0, 4.0)
    out, *_ = visits_of(played, 2)
    assert (out["outcome"], out["end_s"]) == (ABANDONED, 2.0)
    assert played.records[0].in_flight == 2
    # All four are out together then, of which the buffer takes four.
    assert played.records[1].closed_s == 7.0
    assert played.records[1].completed == [0, 1, 2, 3]


def test_lanes_may_be_more_or_fewer_from_one_re_clustering_to_the_next() -> None:
    # Each round is a second: lanes of steps that are over do not count any more.
    grown = replaced([[1, 0], [1, 0], [0, 1], [0, 1]], [0, 3], [0, 1, 2, 3])
    shrunk = replaced([[0.25] * 4], [0, 0, 0, 0], [0, 0, 0, 0])
    again = replaced([[1], [1]], [1], [0, 0, 1, 1])
    script = {0: fresh([0, 0, 1, 1]), 1: grown, 2: shrunk, 3: again, 4: shrunk_from(2)}
    population = clients_of(*(1, 1, 1, 7.5), script=script, participants=3, rounds=8)
    played = population.play()
    assert [record.closed_s for record in played.records] == [float(second) for second in range(1, 9)]
    slow, *_ = visits_of(played, 3)
    # Steps before its own: 1 in lane 1, then none in lane 3, 3 + 2 (of the second lane alone) in the others.
    assert slow["outcome"] == COMPLETED
    by_second = [1, 0, 3, 1, 3, 3, 3]
    assert slow["staleness"] == sum(by_second)


def shrunk_from(num_models: int) -> Assignment:
    return replaced([[1 / num_models] * num_models], [0] * num_models, [0, 0, 0, 0])


class Asking(Random):
    """Asks client 2 for a score before it selects, so that visits begin 11/12 s after their selection."""

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        view.score(ints(2), ints(0), "held")
        return super().select(candidates, wanted, view)


@pytest.mark.parametrize(("second", "num_models"), [(FIRST_ALONE, 1), (SWAPPED, 2), (MERGED, 1)])
def test_models_may_be_replaced_by_a_step_between_selection_and_dispatch(
    second: Assignment, num_models: int
) -> None:
    class Later(FakeClusterer):
        """Replaces the models after the fifth server step of the run."""

        steps = 0

        def on_updates(self, view: View) -> Assignment | None:
            self.steps += 1
            return second if self.steps == 5 else None

    # Clients 0 and 2 are sent out at 11/12 s, selected at 1 11/12 s, sent out at 2 10/12 s, and selected at
    # 3 10/12 s. Then client 1 comes back, whose update makes the fifth step.
    population = three(MERGED, rounds=4, selector=Asking(NoSettings()))
    population.clusterer = Later({0: fresh([0, 1, 1])})
    played = population.play()
    assert played.visits[4].client.tolist() == [1]
    assert played.visits[4].end_s.tolist() == pytest.approx([3 + 11 / 12])
    assert len(played.models) == num_models
    # They are in the lanes of the models that they were sent.
    third = played.visits[5:7]
    assert [rows.dispatched_s.tolist() for rows in third] == [pytest.approx([4.75])] * 2
    assert sorted((rows.client.tolist(), rows.lane.tolist()) for rows in third) == [
        ([client], [int(second.members[client, 0])]) for client in (0, 2)
    ]


SPLIT = replaced([[1, 0], [0, 1], [0, 1]], successor=[0, 1], members=[0, 1, 2])


@pytest.mark.parametrize("pacing", [None, lambda cohort: Sync(SyncSettings(), cohort)])
def test_there_may_be_more_models_from_the_selection_of_participants_on(pacing: Any) -> None:
    class Splitting(FakeClusterer):
        """Gives client 2 a model of its own as the participants of the second round are selected."""

        def on_participants(self, view: View) -> Assignment | None:
            return SPLIT if view.round == 1 and len(view.models) == 2 else None

    population = three(MERGED, rounds=5)
    population.clusterer = Splitting({0: fresh([0, 1, 1])})
    population.pacing = pacing or population.pacing
    played = population.play()
    assert len(played.models) == 3
    assert all(record.completed for record in played.records)


def test_a_round_opens_as_soon_as_the_last_has_closed_whatever_lengthens_the_visits_that_begin_then() -> None:
    class AsksParticipants(FakeClusterer):
        def on_participants(self, view: View) -> Assignment | None:
            view.score(view.participants, ints(0), "held")
            return None

    # Rounds close as participants are sent out, since steps were made while client 2 was asked.
    population = clients_of(*(1, 3, 1), script={0: fresh([0, 0, 0])}, rounds=8, selector=Asking(NoSettings()))
    population.clusterer = AsksParticipants({0: fresh([0, 0, 0])})
    played = population.play()
    records, sent_s = played.records, {rows.dispatched_s[0] for rows in played.visits}
    assert any(record.closed_s in sent_s for record in records)
    opened_s = [record.opened_s for record in records[1:]]
    assert opened_s == [record.closed_s for record in records[:-1]]


# -- data that change -------------------------------------------------------------------------------------


class Remembering(FakeExecutor):
    """An executor whose solver counts the tasks of each pair."""

    def __init__(self, targets: list[float]) -> None:
        super().__init__(targets)
        self.solver = SolverFacts({"count": StateSpec("scalar")})

    def counts_of(self, client: int) -> list[float]:
        """The count that each task of a client received."""
        return [
            count
            for wave in self.waves
            for count in wave.state["count"].ravel()[wave.client == client].tolist()
        ]


def solving(script: Mapping[int, Assignment], steps: int = 1, touched: Any = None) -> Remembering:
    """Client 0 is back after each second, client 1 after three; rounds are of a second, for nine seconds."""
    executor = Remembering([1.0, 1.0])
    population = clients_of(*(1, 3), script=script, executor=executor, participants=1)
    population.stream = FakeStream(np.ones((steps, 2, 1)), touched=touched)
    population.seconds_per_round, population.rounds = 1.0, 9
    population.play()
    return executor


def test_solver_state_is_committed_as_an_update_is_absorbed_however_stale() -> None:
    executor = solving({0: fresh([0, 0])})
    assert executor.counts_of(0) == list(range(9))
    assert executor.counts_of(1) == [0, 1, 2]


def test_solver_state_of_a_client_whose_data_changed_during_its_visit_is_not_committed() -> None:
    touched = np.zeros((5, 2))
    touched[4, 1] = 1  # at 4 s, during the second visit of client 1
    executor = solving({0: fresh([0, 0])}, steps=5, touched=touched)
    assert executor.counts_of(0) == list(range(9))
    # What the first visit left was deleted, and what the second one brings is not kept.
    assert executor.counts_of(1) == [0, 1, 0]


def test_solver_state_of_a_client_whose_data_changed_between_visits_starts_anew() -> None:
    touched = np.zeros((4, 2))
    touched[3, 1] = 1  # as its first visit is back, and before the second begins
    assert solving({0: fresh([0, 0])}, steps=4, touched=touched).counts_of(1) == [0, 0, 1]


def test_solver_state_is_not_committed_if_the_model_has_another_content_and_id_since() -> None:
    # At 4 s, in the fifth round that is opened, both models are replaced by their means: new ids.
    mixed = replaced([[0.9, 0.1], [0.1, 0.9]], [0, 1], [0, 1])
    opening = 4
    executor = solving({0: fresh([0, 1]), opening: mixed})
    # Client 0 was not out then, and begins again with the new model. The second visit of client 1 trained
    # the old one.
    assert executor.counts_of(0) == [0, 1, 2, 3, 0, 1, 2, 3, 4]
    assert executor.counts_of(1) == [0, 1, 0]


def test_solver_state_is_committed_if_the_model_is_in_another_row_with_the_same_content() -> None:
    swapped = replaced([[0, 1], [1, 0]], [1, 0], [1, 0])
    executor = solving({0: fresh([0, 1]), 4: swapped})
    assert executor.counts_of(0) == list(range(9))
    assert executor.counts_of(1) == [0, 1, 2]


def test_a_client_that_leaves_while_it_is_out_is_absorbed_and_not_selected_again() -> None:
    holding = np.ones((2, 2))
    holding[1, 1] = 0
    population = clients_of(*(1, 3), script={0: fresh([0, 0])}, participants=1)
    population.stream = FakeStream(np.ones((2, 2, 1)), holding=holding)
    population.rounds = 5
    played = population.play()
    # There are no more slots than clients that are left, and until 3 s it has the one.
    assert [record.completed for record in played.records] == [[0], [1], [0], [0], [0]]
    assert [record.closed_s for record in played.records] == [1.0, 3.0, 4.0, 5.0, 6.0]
    assert [record.in_flight for record in played.records] == [1, 0, 0, 0, 0]


# -- rounds of so many seconds ------------------------------------------------------------------------------


class Watching(Single):
    """Notes when rounds are opened, and with which data step."""

    def __init__(self) -> None:
        super().__init__(NoSettings())
        self.seen: list[tuple[int, int]] = []

    def on_data(self, view: View) -> Assignment | None:
        self.seen.append((view.round, view.step))
        return super().on_data(view)


def by_seconds(*seconds: float, seconds_per_round: float, rounds: int, **settings: Any) -> Population:
    """The data change with each nominal round."""
    population = clients_of(*seconds, script={}, **settings)
    population.clusterer = Watching()
    population.stream = FakeStream(
        np.ones((rounds, len(seconds), 1)), touched=np.ones((rounds, len(seconds)))
    )
    population.seconds_per_round, population.rounds = seconds_per_round, rounds
    return population


def test_the_run_ends_after_its_nominal_rounds_and_what_is_out_is_abandoned_then() -> None:
    played = by_seconds(*(1, 3), seconds_per_round=2.5, rounds=3, participants=1).play()
    last = played.records[-1]
    assert (last.closed_s, last.steps) == (7.5, 0)
    # Client 0 went out at 7 s, client 1 at 6 s.
    assert (last.participants, last.completed, last.abandoned, last.in_flight) == ([0, 1], [], 2, 2)
    assert [record.closed_s for record in played.records[:-1]] == [
        1.0,
        2.0,
        3.0,
        3.0,
        4.0,
        5.0,
        6.0,
        6.0,
        7.0,
    ]
    first, second = (visits_of(played, client)[-1] for client in (0, 1))
    assert (first["end_s"], first["download_bytes"], first["upload_bytes"]) == (7.5, 4.0, 0.0)
    assert (second["end_s"], second["download_bytes"], second["upload_bytes"]) == (7.5, 4.0, 0.0)
    total = sum(rows.download_bytes.sum() for rows in played.visits)
    assert last.download_bytes == total == 4 * (7 + 2 + 2)
    assert last.upload_bytes == 4 * (7 + 2)
    counts = played.coordinator.visits
    assert (counts.opened, counts.completed, counts.abandoned, counts.out) == (11, 9, 2, 0)
    assert last.accuracy is not None


def test_a_data_step_takes_effect_at_the_first_opening_at_or_after_its_instant() -> None:
    population = by_seconds(2, seconds_per_round=1.5, rounds=6)
    played = population.play()
    # Rounds are opened at 0, 2, 4, 6 and 8 s; steps are due at 1.5, 3, 4.5, 6 and 7.5 s.
    assert population.clusterer.seen == [(0, 0), (1, 1), (2, 2), (3, 4), (4, 5)]
    assert [record.step for record in played.records] == [0, 1, 2, 4, 5]
    assert [record.closed_s for record in played.records] == [2.0, 4.0, 6.0, 8.0, 9.0]
    # Tasks are of the data step of their dispatch.
    assert [wave.step.tolist() for wave in played.executor.waves] == [[0], [1], [2], [4]]


def test_the_last_data_step_holds_until_the_end_of_the_last_nominal_round() -> None:
    population = by_seconds(1, seconds_per_round=2.0, rounds=2)
    assert [record.step for record in population.play().records] == [0, 0, 1, 1]
    assert population.clusterer.seen == [(0, 0), (1, 0), (2, 1), (3, 1)]


def test_a_round_that_would_close_as_the_run_ends_is_the_last_one() -> None:
    played = by_seconds(2, seconds_per_round=2.0, rounds=3).play()
    assert [(record.closed_s, record.completed) for record in played.records] == [
        *((2.0, [0]), (4.0, [0]), (6.0, [0]))
    ]
    assert [record.in_flight for record in played.records] == [0, 0, 0]
    assert played.coordinator.visits.abandoned == 0


def test_synchronous_rounds_end_with_the_run_too() -> None:
    population = by_seconds(*(2, 2), seconds_per_round=2.5, rounds=2)
    # What is back at the end, and not absorbed, is abandoned as well.
    for pacing, closed_s, absorbed in (
        (SyncSettings(), [2.0, 4.0, 5.0], False),
        (lambda cohort: Fixed(FixedSettings(duration_s=3.0), cohort), [3.0, 5.0], False),
        (lambda cohort: Fixed(FixedSettings(duration_s=2.5), cohort), [2.5, 5.0], True),
    ):
        played = replace(population, pacing=pacing, clusterer=Watching(), participants=None).play()
        assert [record.closed_s for record in played.records] == closed_s
        *_, last = played.records
        assert last.participants == [0, 1]
        assert (last.steps, last.in_flight) == (None, None)
        assert (last.completed, last.abandoned) == (([0, 1], 0) if absorbed else ([], 2))


def test_a_run_that_ends_while_clients_respond_has_a_last_record_all_the_same() -> None:
    class Slow(Watching):
        def on_data(self, view: View) -> Assignment | None:
            if view.round:  # which takes 1/4 s down, a third of a sample, and two numbers up
                view.score(ints(0), ints(0), "held")
            return super().on_data(view)

    population = by_seconds(2, seconds_per_round=2.125, rounds=1)
    population.clusterer = Slow()
    first, last = population.play().records
    assert (first.closed_s, last.opened_s, last.dispatched_s, last.closed_s) == (2.0, 2.0, 2.125, 2.125)
    assert (last.participants, last.steps, last.in_flight) == ([], 0, 0)
    assert last.accuracy is not None


def test_a_run_that_ends_before_its_round_can_open_says_that_it_opened_no_later() -> None:
    class Slow(Watching):
        def on_updates(self, view: View) -> None:
            view.score(ints(0), ints(0), "held")

    population = by_seconds(2, seconds_per_round=2.125, rounds=1)
    population.clusterer = Slow()
    first, last = population.play().records
    assert (first.closed_s, last.opened_s, last.dispatched_s, last.closed_s) == (2.0, 2.125, 2.125, 2.125)


def test_nobody_is_online_until_the_run_ends() -> None:
    never = FakeAvailability({0: []})
    played = by_seconds(2, seconds_per_round=4.0, rounds=3, availability=never, max_wait_days=0.0).play()
    assert [(record.closed_s, record.participants) for record in played.records] == [(12.0, [])]
    later = FakeAvailability({0: [(5.0, INF)]})
    played = by_seconds(2, seconds_per_round=4.0, rounds=2, availability=later).play()
    assert [(record.closed_s, record.completed) for record in played.records] == [(7.0, [0]), (8.0, [])]


# -- evaluations by seconds ----------------------------------------------------------------------------------


def test_clients_are_evaluated_at_the_first_close_at_or_after_each_multiple_and_at_the_end() -> None:
    played = by_seconds(
        *(1, 3), seconds_per_round=2.5, rounds=3, participants=1, evaluate_every_s=1.75
    ).play()
    measured = [(record.closed_s, record.accuracy is not None) for record in played.records]
    # Multiples at 1.75, 3.5, 5.25 and 7 s.
    assert measured == [
        *((1.0, False), (2.0, True), (3.0, False), (3.0, False), (4.0, True), (5.0, False)),
        *((6.0, True), (6.0, False), (7.0, True), (7.5, True)),
    ]


def test_several_multiples_that_have_passed_are_one_evaluation() -> None:
    played = clients_of(2, script={0: fresh([0])}, rounds=4, evaluate_every_s=0.5).play()
    assert [record.accuracy is not None for record in played.records] == [True] * 4
    assert len(played.executor.evaluated) == 4


def test_rounds_of_sync_are_evaluated_by_seconds_too() -> None:
    population = Population(FakeExecutor([1.0]), rounds=5, evaluate_every_s=20.0)  # of 9 s each
    measured = [record.accuracy is not None for record in population.play().records]
    assert measured == [False, False, True, False, True]
