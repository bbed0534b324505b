"""What parts learn besides their calls: that models changed, how visits ended, how long they will take."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.detectors.changed import Changed
from coordinator.memories.held import Held, HeldSettings
from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.representations.label import Label
from coordinator.schedules.adaptive_lr import AdaptiveLearningRate, AdaptiveLearningRateSettings
from coordinator.selectors.random import Random
from coordinator.view import Part, View
from emulator.messages import EndedVisits, Outcome, TaskMetric, Updates
from emulator.plugins import NoSettings
from tests.fakes import (
    INF,
    NOTHING,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    FakeStream,
    Population,
    a_fleet,
    fresh,
    ints,
)


class Listening(Part):
    """Mixed into a part, it keeps the mixing matrices that the part is told of."""

    @property
    def told(self) -> list[list[list[float]]]:
        return self.__dict__.setdefault("_told", [])

    def models_changed(self, assignment: Assignment) -> None:
        self.told.append(assignment.mixing.tolist())


def test_every_part_learns_of_an_assignment_that_changes_models_and_of_no_other() -> None:
    def listening(kind: type, *settings: object) -> Part:
        return type(kind.__name__, (Listening, kind), {})(*settings)

    mean = Assignment.reclustered_from(ints(0, 1), ints(0, 0), 2, 1)
    swapped = Assignment.moved(ints(1, 0), 2)
    script = {0: fresh([0, 1]), 1: swapped, 2: mean}
    parts = {
        "clusterer": listening(FakeClusterer, script),
        "selector": listening(Random, NOTHING),
        "memory": listening(Held, HeldSettings()),
        "aggregator": listening(FedAvg, FedAvgSettings()),
        "representation": listening(Label, NOTHING),
    }
    detector, schedule = (
        listening(Changed, NOTHING),
        listening(AdaptiveLearningRate, AdaptiveLearningRateSettings()),
    )
    pacing = listening(Sync, SyncSettings(), CohortSize(2))
    Population(
        FakeExecutor([0.0, 1.0]),
        detectors={"changed": detector},
        schedules=(schedule,),
        pacing=lambda cohort: pacing,
        rounds=3,
        **parts,
    ).play()
    for part in (*parts.values(), detector, schedule, pacing):
        assert part.told == [[[1.0], [1.0]], [[0.5, 0.5]]], part.name


@dataclass
class Hearing(Random):
    """Random selection that keeps the feedback on its visits."""

    heard: list[tuple[EndedVisits, Updates | None]] = field(default_factory=list)

    Settings = NoSettings
    settings = NOTHING

    def feedback(self, visits: EndedVisits, updates: Updates | None) -> None:
        self.heard.append((visits, updates))


def test_feedback_has_every_visit_with_its_lane_its_times_and_how_it_ended() -> None:
    # Two lanes: clients 0 to 2, of which the slow client 2 is abandoned once two are back, and client 3, who
    # goes offline before its upload is done. A visit takes 4 s down, 1 s of training, and 4 s up.
    hearing = Hearing()
    Population(
        FakeExecutor([0.0, 1.0, 2.0, 3.0]),
        clusterer=FakeClusterer({0: fresh([0, 0, 0, 1])}),
        selector=hearing,
        participants=3,
        over_commit=1.3,
        fleet=a_fleet(4, seconds_per_sample=[1.0, 2.0, 9.0, 1.0]),
        availability=FakeAvailability({3: [(0.0, 7.0)]}),
    ).play()
    ((visits, updates),) = hearing.heard
    assert updates is not None
    assert updates.client.tolist() == [0, 1]
    assert visits.client.tolist() == [0, 1, 2, 3]
    assert visits.lane.tolist() == [0, 0, 0, 1]
    assert visits.start_s.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert visits.end_s.tolist() == [9.0, 10.0, 10.0, 7.0]
    assert visits.outcome.tolist() == [
        Outcome.COMPLETED,
        Outcome.COMPLETED,
        Outcome.ABANDONED,
        Outcome.DROPPED,
    ]


def test_feedback_comes_also_when_no_update_arrived() -> None:
    hearing = Hearing()
    away = FakeAvailability({0: [(0.0, 5.0), (20.0, INF)]})
    Population(FakeExecutor([0.0]), selector=hearing, availability=away, rounds=2).play()
    assert [updates is None for _, updates in hearing.heard] == [True, False]


def test_the_expected_seconds_of_a_visit_are_those_that_it_takes_without_faults() -> None:
    hearing, expected = Hearing(), []

    class Expecting(FakeClusterer):
        def on_participants(self, view: View) -> None:
            expected.append(view.expected_s(view.participants).tolist())

    Population(
        FakeExecutor([0.0, 1.0]),
        clusterer=Expecting(),
        selector=hearing,
        local_steps=3,
        batch_size=2,
        fleet=a_fleet(2, seconds_per_sample=[1.0, 5.0], latency_s=[0.0, 0.5]),
    ).play()
    ((visits, _),) = hearing.heard
    assert expected == [(visits.end_s - visits.start_s).tolist()] == [[4 + 6 + 4, 4.5 + 30 + 4.5]]


def test_a_client_of_two_models_is_expected_to_move_and_train_both() -> None:
    expected = []

    class Both(Clusterer):
        Settings = NoSettings

        def on_data(self, view: View) -> Assignment:
            return Assignment.fresh(np.array([[0, 1]]), 2, view.initial(0))

        def on_participants(self, view: View) -> None:
            expected.append(view.expected_s(ints(0)).tolist())

    played = Population(FakeExecutor([0.0]), clusterer=Both(NOTHING)).play()
    assert expected == [[8 + 2 + 8]] == [[played.records[0].closed_s]]


def test_held_samples_are_all_that_a_client_holds_and_arrived_ones_those_of_the_step() -> None:
    scored = []

    class Scoring(FakeClusterer):
        def on_participants(self, view: View) -> None:
            held, arrived = (view.score(ints(0), ints(0), samples) for samples in ("held", "arrived"))
            scored.append((held.scores.counts.tolist(), arrived.scores.counts.tolist()))

    class Older(FakeStream):
        """Of what a client holds, the last sample has arrived at this step."""

        def arrived(self, ids, first_step, last_step):
            held = self.held(ids, "train")
            return type(held).one_each(held.last - 1, held.last)

    stream = Older(np.ones((1, 1, 1)), train=[4])
    Population(FakeExecutor([0.0]), clusterer=Scoring(), stream=stream).play()
    assert scored == [([4], [1])]


def test_the_metrics_that_parts_need_are_measured_and_no_others() -> None:
    class Needy(FedAvg):
        @property
        def needs(self) -> frozenset[TaskMetric]:
            return frozenset({"loss_before"})

    needy = Population(FakeExecutor([0.0]), aggregator=Needy(FedAvgSettings())).play()
    assert needy.executor.waves[0].measure == {"loss_before"}
    assert Population(FakeExecutor([0.0])).play().executor.waves[0].measure == frozenset()
