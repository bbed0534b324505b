"""The three moments at which a method acts: data arrived, participants were selected, updates came back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.assignment import Assignment
from coordinator.candidates import Candidates
from coordinator.clusterers import Clusterer
from coordinator.clusterers.single import Single
from coordinator.memories.held import Held, HeldSettings
from coordinator.schedules import Schedule
from coordinator.selectors.random import Random
from coordinator.view import View
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.errors import RunError
from emulator.messages import InferencePlan, SampleRanges, SolverFacts, StateSpec, Updates
from emulator.plugins import NoSettings
from tests.fakes import FakeAvailability, FakeExecutor, FakeStream, Population, ints, one_hot

Moment = Callable[[View], Assignment | None]

VISIT_S = (
    9.0  # a visit with one parameter and one sample on the default fleet: 4 s down, 1 s of training, 4 s up
)


def two_models(view: View) -> Assignment:
    """All clients belong to the first of two models, at 0 and at 1; there is one lane."""
    models = np.array([[0.0], [1.0]], dtype=np.float32)
    members = np.zeros(view.num_clients, dtype=np.int64)
    return Assignment.fresh(members, 2, models, lanes=members)


def request_scores(view: View, clients: Sequence[int], models: Sequence[int]) -> None:
    view.score(ints(*clients), ints(*models), "arrived")


@dataclass
class Scripted(Clusterer):
    """A clusterer that runs the given functions from round 1 on, and records its calls."""

    data: Moment = lambda view: None
    participants: Moment = lambda view: None
    updates: Moment = lambda view: None
    seen: list[tuple[str, int, list[int]]] = field(default_factory=list)

    Settings = NoSettings

    def on_data(self, view: View) -> Assignment | None:
        self.seen.append(("data", view.round, view.changed.tolist()))
        return two_models(view) if view.assignment is None else self.data(view)

    def on_participants(self, view: View) -> Assignment | None:
        self.seen.append(("participants", view.round, view.participants.tolist()))
        return self.participants(view) if view.round else None

    def on_updates(self, view: View) -> Assignment | None:
        assert view.updates is not None
        self.seen.append(("updates", view.round, view.updates.client.tolist()))
        return self.updates(view) if view.round else None


def turning(num_clients: int, steps: int = 2) -> FakeStream:
    """A stream in which every client's label alternates every round."""
    return FakeStream([one_hot(*[step % 2] * num_clients, of=2) for step in range(steps)])


def test_a_clusterer_is_called_at_three_moments_of_a_round_with_the_news_of_each() -> None:
    clusterer = Scripted()
    Population(FakeExecutor([1.0, 1.0]), stream=turning(2), clusterer=clusterer, rounds=2).play()
    assert clusterer.seen == [
        (moment, number, [0, 1]) for number in (0, 1) for moment in ("data", "participants", "updates")
    ]


def test_a_client_whose_data_changed_while_it_was_offline_is_named_when_it_is_back() -> None:
    clusterer = Scripted()
    away = FakeAvailability({1: [(-np.inf, VISIT_S), (2 * VISIT_S, np.inf)]})
    Population(
        FakeExecutor([1.0, 1.0]),
        stream=turning(2),
        clusterer=clusterer,
        availability=away,
        participants=1,
        rounds=3,
    ).play()
    changed = [clients for moment, _, clients in clusterer.seen if moment == "data"]
    assert changed == [[0, 1], [0], [1]]


def test_availability_is_not_looked_up_for_a_clusterer_that_does_not_watch_data() -> None:
    class Counting(FakeAvailability):
        checked = 0

        def online(self, ids: Ints, time_s: float) -> Bools:
            self.checked += len(ids)
            return super().online(ids, time_s)

    def clients_checked(clusterer: Clusterer) -> int:
        availability = Counting({1: [(-np.inf, -1.0)]})
        Population(
            FakeExecutor([1.0, 1.0]),
            stream=turning(2),
            clusterer=clusterer,
            availability=availability,
            participants=1,
            rounds=2,
        ).play()
        return availability.checked

    dispatch = 2 * 2  # two clients in each of two rounds
    assert clients_checked(Single(NoSettings())) == dispatch
    assert clients_checked(Scripted()) > dispatch


def test_requests_about_new_data_make_the_round_wait_for_the_slowest_response() -> None:
    # 4 bytes down, 1/3 s for a forward sample, a sum and a count up
    population = Population(
        FakeExecutor([1.0, 1.0]),
        clusterer=Scripted(data=lambda view: request_scores(view, [0], [1])),
        rounds=2,
    )
    records = population.play().records
    assert records[1].opened_s == VISIT_S
    assert math.isclose(records[1].dispatched_s, VISIT_S + 4 + 1 / 3 + 8)
    assert records[1].control_bytes == 4 + 8


def test_requests_to_participants_lengthen_their_own_visits_alone() -> None:
    population = Population(
        FakeExecutor([1.0, 1.0]),
        clusterer=Scripted(participants=lambda view: request_scores(view, [0], [1])),
        rounds=2,
    )
    record = population.play().records[1]
    assert record.dispatched_s == VISIT_S
    assert record.closed_s == VISIT_S + (4 + 1 / 3 + 8) + VISIT_S
    assert record.completed == [0, 1]


def test_requests_about_updates_delay_the_next_round() -> None:
    population = Population(
        FakeExecutor([1.0]), clusterer=Scripted(updates=lambda view: request_scores(view, [0], [1])), rounds=3
    )
    records = population.play().records
    assert records[1].closed_s == 2 * VISIT_S
    assert records[2].opened_s == 2 * VISIT_S + 4 + 1 / 3 + 8


def test_a_model_that_was_scored_is_not_downloaded_again_to_be_trained() -> None:
    population = Population(
        FakeExecutor([1.0, 1.0]),
        clusterer=Scripted(data=lambda view: request_scores(view, [0], [0, 1])),
        rounds=2,
    )
    records = population.play().records
    assert records[0].models_sent == 4  # two down, two up
    # client 0 scores two models and trains one of them; client 1 downloads and trains it
    assert records[1].models_sent - records[0].models_sent == 2 + 1 + 2
    assert records[1].download_bytes - records[0].download_bytes == 4


def test_participants_can_be_moved_before_their_tasks_are_frozen() -> None:
    def move_the_second(view: View) -> Assignment:
        return Assignment.moved(ints(0, 1), 2, lanes=ints(0, 0))

    played = Population(
        FakeExecutor([1.0, 1.0]), clusterer=Scripted(participants=move_the_second), rounds=2
    ).play()
    assert played.executor.waves[1].model.tolist() == [0, 1]
    assert played.records[1].moved == 1


def test_an_assignment_from_updates_holds_from_the_evaluation_on() -> None:
    def drop_the_first(view: View) -> Assignment:
        return Assignment(
            mixing=np.array([[0.0, 1.0]]),
            extra=np.zeros((0, 1), dtype=np.float32),
            successor=ints(-1, 0),
            members=np.zeros((2, 1), dtype=np.int64),
        )

    played = Population(
        FakeExecutor([1.0, 0.0], pull=0.0), clusterer=Scripted(updates=drop_the_first), rounds=2
    ).play()
    assert [record.accuracy for record in played.records] == [0.5, 0.5]
    assert played.models == [[1.0]]


def test_several_models_can_serve_a_client() -> None:
    class Weighted(Scripted):
        def serve(self, view: View) -> InferencePlan:
            return InferencePlan(np.array([[0, 1]] * 2), np.array([[0.25, 0.75], [0.5, 0.5]]))

    played = Population(
        FakeExecutor([1.0, 1.0]),
        clusterer=Weighted(),
        stream=FakeStream(np.ones((1, 2, 1)), concepts=[[0, 0], [0, 0]]),
    ).play()
    assert played.records[0].serving.tolist() == [1, 0]


class Halving(Schedule):
    """Halves the learning rate of client 1 in each round."""

    Settings = NoSettings
    sets: ClassVar[frozenset[str]] = frozenset({"learning_rate"})

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def observe(self, view: View) -> None:
        self.rounds.append(view.round)

    def task_settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        return {"learning_rate": base["learning_rate"] * np.where(client == 1, 0.5**view.round, 1.0)}


def test_a_schedule_sets_the_numbers_of_each_task_and_watches_each_round() -> None:
    halving = Halving()
    played = Population(FakeExecutor([1.0, 1.0]), schedules=(halving,), rounds=2).play()
    rates = [wave.settings["learning_rate"].tolist() for wave in played.executor.waves]
    assert rates == [[0.1, 0.1], [0.1, 0.05]]
    assert played.executor.waves[1].settings["local_steps"].tolist() == [1, 1]
    assert halving.rounds == [0, 1]


# -- solver state -------------------------------------------------------------------------------------------


class Remembering(FakeExecutor):
    """An executor whose solver counts the tasks of each pair."""

    def __init__(self, targets: list[float]) -> None:
        super().__init__(targets)
        self.solver = SolverFacts({"count": StateSpec("scalar")})

    def counts(self) -> list[list[float]]:
        """For each wave, the count that each task received."""
        return [wave.state["count"].ravel().tolist() for wave in self.waves]


def test_solver_state_is_read_at_dispatch_and_committed_on_return() -> None:
    executor = Remembering([1.0, 1.0])
    Population(executor, rounds=3).play()
    assert executor.counts() == [[0, 0], [1, 1], [2, 2]]


def test_new_data_resets_the_solver_of_that_client() -> None:
    executor = Remembering([1.0, 1.0])
    stream = FakeStream([one_hot(0, 0, of=2), one_hot(0, 1, of=2), one_hot(0, 1, of=2)])
    Population(executor, stream=stream, rounds=3).play()
    assert executor.counts() == [[0, 0], [1, 0], [2, 1]]


def test_a_dropped_visit_leaves_no_trace_in_the_solver() -> None:
    executor = Remembering([1.0, 1.0])
    away = FakeAvailability({1: [(-np.inf, 5.0), (6.0, np.inf)]})
    Population(executor, availability=away, rounds=2).play()
    assert executor.counts() == [[0], [1, 0]]


# -- the truth ----------------------------------------------------------------------------------------------


def peeking(kind: str, oracle_: bool, seen: list[Ints | None]) -> Population:
    """Two clients on concepts 0 and 1; the part of that kind reads the true concepts in every round."""

    class Truthful:
        oracle = oracle_

    class Peeks(Truthful, Single):
        def on_data(self, view: View) -> Assignment | None:
            seen.append(view.concepts)
            return super().on_data(view)

    class PeeksSelecting(Truthful, Random):
        def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
            seen.append(view.concepts)
            return super().select(candidates, wanted, view)

    class PeeksRemembering(Truthful, Held):
        def rows(self, clients: Ints, view: View) -> tuple[Ints, Ints, SampleRanges]:
            seen.append(view.concepts)
            return super().rows(clients, view)

    class PeeksAggregating(Truthful, FedAvg):
        def aggregate(self, updates: Updates, view: View) -> Floats32:
            seen.append(view.concepts)
            return super().aggregate(updates, view)

    class PeeksScheduling(Truthful, Halving):
        def observe(self, view: View) -> None:
            seen.append(view.concepts)
            super().observe(view)

    parts: dict[str, dict[str, Any]] = {
        "clusterer": {"clusterer": Peeks(NoSettings())},
        "selector": {"selector": PeeksSelecting(NoSettings())},
        "memory": {"memory": PeeksRemembering(HeldSettings())},
        "aggregator": {"aggregator": PeeksAggregating(FedAvgSettings())},
        "schedule": {"schedules": (PeeksScheduling(),)},
    }
    stream = FakeStream(np.ones((1, 2, 1)), concepts=[[0, 1], [0, 1]])
    return Population(FakeExecutor([1.0, 1.0]), stream=stream, **parts[kind])


@pytest.mark.parametrize("kind", ["clusterer", "selector", "memory", "aggregator", "schedule"])
def test_only_a_part_that_declares_itself_an_oracle_may_read_the_true_concepts(kind: str) -> None:
    seen: list[Ints | None] = []
    peeking(kind, True, seen).play()
    assert seen
    assert all(concepts is not None and concepts.tolist() == [0, 1] for concepts in seen)
    with pytest.raises(RunError, match=r"Peeks\w* reads the true concepts, which only parts .*oracle = True"):
        peeking(kind, False, seen).play()


def test_only_an_oracle_may_read_the_true_onsets() -> None:
    class Looks(Single):
        oracle = True

        def on_data(self, view: View) -> Assignment | None:
            seen.append(view.newest_onset)
            return super().on_data(view)

    class Peeks(Looks):
        oracle = False

    seen: list[Ints | None] = []
    concepts = [[0, 1], [0, 1], [0, 2], [0, 2]]
    stream = FakeStream(np.ones((3, 2, 1)), concepts=concepts, touched=np.ones((3, 2)))
    Population(FakeExecutor([1.0, 1.0]), stream=stream, clusterer=Looks(NoSettings()), rounds=3).play()
    assert [None if newest is None else newest.tolist() for newest in seen] == [[0, 0], [0, 0], [0, 2]]
    with pytest.raises(RunError, match=r"Peeks reads the true onsets, which only parts .*oracle = True"):
        Population(FakeExecutor([1.0]), clusterer=Peeks(NoSettings())).play()


def test_an_oracle_sees_no_concepts_if_the_trace_has_none() -> None:
    class Looks(Single):
        oracle = True

        def on_data(self, view: View) -> Assignment | None:
            assert view.concepts is None
            return super().on_data(view)

    assert Population(FakeExecutor([1.0]), clusterer=Looks(NoSettings())).play().records
