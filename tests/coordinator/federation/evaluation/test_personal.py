"""Personal accuracies and the age of what they are made of, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from coordinator.assignment import Assignment
from coordinator.federation.bank import ModelBank
from coordinator.federation.evaluation import personal as module
from coordinator.federation.evaluation.personal import Personal, PersonalFigures, figures_by_age
from coordinator.federation.solver_state import SolverState
from emulator.arrays import Floats32, Ints
from emulator.errors import RunError
from emulator.messages import (
    ArrayUpdates,
    Evaluation,
    InferencePlan,
    OutputMix,
    SampleRanges,
    SolverFacts,
    StateSpec,
    TrainTasks,
)
from tests.fakes import FakeExecutor, FakeStream, Played, Population, ints

OWN = SolverFacts(state={"own": StateSpec("parameters", until="run")}, personal=frozenset({"own"}))


def test_ages_and_accuracies_by_age_by_hand() -> None:
    """Of ages 0, 9, 10, 49 and 50, two are below 10 and two below 50; the median of five is 10."""
    figures = figures_by_age(np.array([1.0, 0.5, 0.5, 0.25, 0.125, 0.0]), ints(0, 9, 10, 49, 50, -1))
    assert figures == PersonalFigures(
        personal_accuracy=2.375 / 6,
        personal_accuracy_std=float(np.std([1.0, 0.5, 0.5, 0.25, 0.125, 0.0])),
        memory_age=10.0,
        memory_age_90=50.0,
        without_memory=1 / 6,
        personal_accuracy_by_age={0: 0.75, 10: 0.375, 50: 0.125},
        clients_by_age={0: 2, 10: 2, 50: 1},
    )


def test_nine_of_ten_clients_have_memory_no_older_than_the_90_percent_age() -> None:
    figures = figures_by_age(np.ones(10), np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 100]))
    assert (figures.memory_age, figures.memory_age_90) == (5.5, 9.0)


def test_where_nobody_remembers_there_is_no_age_and_all_are_without_memory() -> None:
    figures = figures_by_age(np.array([0.5, 1.0]), ints(-1, -1))
    assert figures == PersonalFigures(
        personal_accuracy=0.75,
        personal_accuracy_std=0.25,
        memory_age=None,
        memory_age_90=None,
        without_memory=1.0,
        personal_accuracy_by_age={0: None, 10: None, 50: None},
        clients_by_age={0: 0, 10: 0, 50: 0},
    )


# -- of clients with models and memory of their own --------------------------------------------------------


class World:
    """Models 0.5 and 0, of which each client's test accuracy is 1 minus the distance to its target."""

    def __init__(self, targets: Sequence[float], test: list[int] | None = None) -> None:
        count = len(targets)
        self.executor = FakeExecutor(targets)
        self.executor.solver = OWN
        self.stream = FakeStream(np.ones((1, count, 1)), test=test)
        self.stream.advance_to_round(0)
        self.bank = ModelBank(num_parameters=1)
        models = np.array([[0.5], [0.0]], dtype=np.float32)
        self.bank.apply(Assignment.fresh(np.zeros(count, dtype=np.int64), 2, models))
        self.memory = SolverState(OWN.state, num_parameters=1)
        self.personal = Personal(self.executor, self.memory, self.bank, self.stream)

    def remember(self, clients: Ints, own: Sequence[float], round_: int) -> None:
        count = len(clients)
        rows = np.array(own, dtype=np.float32)[:, None]
        none = np.zeros((count, 1), dtype=np.float32)
        ones = np.ones(count, dtype=np.int64)
        self.memory.commit(ArrayUpdates(clients, 0 * ones, ones, ones, none, state={"own": rows}), round_)

    def figures(self, round_: int, serving: npt.ArrayLike, clients: Ints | None = None) -> PersonalFigures:
        serving = np.array(serving, dtype=np.int64)
        clients = np.arange(len(serving)) if clients is None else clients
        plan = InferencePlan.alike(serving.reshape(len(serving), -1))
        samples = self.stream.held(clients, "test")
        served = self.executor.evaluate(self.bank.parameters, plan, samples)
        return self.personal.figures(round_, plan, clients, served)


def test_clients_without_memory_count_with_the_model_that_serves_them() -> None:
    """Client 0 has 1 of its own, 1 has 0.5; 2 and 3 have none, and are served by 0.5 and by 0."""
    world = World([1.0, 0.75, 0.75, 0.75])
    world.remember(ints(0), [1.0], 3)
    world.remember(ints(1), [0.5], 5)
    figures = world.figures(15, [0, 0, 0, 1])
    assert figures.personal_accuracy == (1.0 + 0.75 + 0.75 + 0.25) / 4
    assert (figures.memory_age, figures.memory_age_90, figures.without_memory) == (11.0, 12.0, 0.5)
    assert figures.personal_accuracy_by_age == {0: None, 10: 0.875, 50: None}
    assert figures.clients_by_age == {0: 0, 10: 2, 50: 0}


def test_before_anybody_has_trained_the_personal_accuracy_is_that_of_the_served_models() -> None:
    figures = World([1.0, 0.75]).figures(0, [0, 1])
    assert (figures.personal_accuracy, figures.without_memory) == ((0.5 + 0.25) / 2, 1.0)


def test_clients_without_test_samples_or_without_a_model_are_in_no_figure() -> None:
    world = World([1.0, 1.0, 1.0], test=[1, 0, 1])
    world.remember(ints(0, 1, 2), [1.0, 0.0, 0.0], 4)
    figures = world.figures(4, [0, 0, -1])
    assert (figures.personal_accuracy, figures.memory_age, figures.without_memory) == (1.0, 0.0, 0.0)
    assert figures.clients_by_age == {0: 1, 10: 0, 50: 0}


def test_of_a_sample_of_clients_each_has_its_own_memory() -> None:
    world = World([1.0, 0.0, 0.5, 0.25])
    world.remember(ints(0, 1, 3), [0.0, 1.0, 0.25], 4)
    figures = world.figures(6, [0, 0], clients=ints(2, 3))
    assert (figures.personal_accuracy, figures.memory_age, figures.without_memory) == (1.0, 2.0, 0.5)


def test_clients_some_at_a_time_have_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World([1.0, 0.75, 0.5, 0.25, 0.0])
    world.remember(ints(1, 2, 4), [1.0, 0.5, 0.25], 3)
    together = world.figures(5, [0, 1, 0, 1, 0])
    for at_once in (1, 2):
        monkeypatch.setattr(module, "AT_ONCE", at_once)
        assert world.figures(5, [0, 1, 0, 1, 0]) == together


def test_a_client_that_several_models_serve_ends_the_run() -> None:
    with pytest.raises(RunError, match=r"^round 7: the solver makes personal parameters of one model, and"):
        World([1.0, 0.0]).figures(7, [[0, 1], [0, -1]])


def trained_accuracy(scored: Ints, steps: Sequence[int] = (1, 1, 1), test: list[int] | None = None) -> object:
    """Of clients 0 to 2, whose own models after training are 1, 0.5 and 0, and whose targets are 1."""
    world = World([1.0, 1.0, 1.0], test)
    own = np.array([[1.0], [0.5], [0.0]], dtype=np.float32)
    everyone = np.arange(3)
    updates = ArrayUpdates(
        everyone, 0 * everyone, 1 + 0 * everyone, np.array(steps), 0 * own, state={"own": own}
    )
    return world.personal.trained_accuracy(
        updates, world.bank.parameters, 0 * everyone, everyone >= 0, scored, 0 * everyone
    )


def test_the_trained_accuracy_is_of_scored_participants_with_test_samples_that_took_a_step() -> None:
    assert trained_accuracy(ints(0, 1, 2)) == 0.5
    assert trained_accuracy(ints(0, 1)) == 0.75
    assert trained_accuracy(ints(0, 1, 2), steps=[0, 1, 1]) == 0.25
    assert trained_accuracy(ints(0, 1, 2), test=[1, 0, 1]) == 0.5
    assert trained_accuracy(ints(2, 7)) == 0.0
    assert trained_accuracy(ints(7)) is None


def test_without_personal_parameters_the_trained_accuracy_is_of_the_trained_models() -> None:
    world = World([1.0, 0.75])
    world.executor.solver = SolverFacts()
    personal = Personal(world.executor, world.memory, world.bank, world.stream)
    both, delta = np.arange(2), np.array([[0.5], [0.5]], dtype=np.float32)
    updates = ArrayUpdates(both, both, 1 + 0 * both, 1 + 0 * both, delta)
    # 0.5 + 0.5 of model 0, and 0 + 0.5 of model 1.
    models = world.bank.parameters
    assert personal.trained_accuracy(updates, models, both, both >= 0, both, 0 * both) == (1.0 + 0.75) / 2


def test_a_client_whose_new_memory_is_not_finite_has_trained_what_it_sent() -> None:
    world, one = World([1.0, 1.0]), ints(1, 1)
    own, delta = np.array([[0.75], [np.nan]], dtype="f"), np.array([[-9.0], [0.25]], dtype="f")
    updates = ArrayUpdates(ints(0, 1), 0 * one, one, one, delta, state={"own": own})
    everyone, models = ints(0, 1), world.bank.parameters
    trained = world.personal.trained_accuracy(updates, models, 0 * one, one > 0, everyone, 0 * one)
    assert trained == (0.75 + 0.75) / 2


class Mixing(FakeExecutor):
    """A fake whose models are mixed by their weights."""

    def evaluate(self, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
        assert plan.combine == "logits"
        assert plan.weights.sum(axis=1) == pytest.approx(1)
        mixed = (models[plan.models, 0] * plan.weights).sum(axis=1)
        distance = np.abs(self.targets[samples.first % len(self.targets), 0] - mixed)
        return Evaluation(1 - distance, distance)


MIXED = SolverFacts(
    state={**OWN.state, "shift": StateSpec("scalar", until="run")},
    personal=frozenset({"own", "shift"}),
    mixes=OutputMix(0.5, "shift"),
)


def mixing() -> tuple[World, dict[str, Floats32]]:
    """A world, and what its clients remember: own models of 1 and 0, with the shares 0.75 and 0."""
    world = World([1.0, 1.0])
    world.executor = Mixing([1.0, 1.0])
    world.executor.solver = MIXED
    world.memory = SolverState(MIXED.state, num_parameters=1)
    world.personal = Personal(world.executor, world.memory, world.bank, world.stream)
    return world, {"own": np.float32([[1], [0]]), "shift": np.float32([[0.25], [-0.5]])}


def test_clients_that_mix_outputs_use_their_share_of_the_own_and_the_rest_of_the_served_model() -> None:
    """Models 0.5 and 0 serve clients 0 and 1: 0.75 x 1 + 0.25 x 0.5, and 0, since the share is 0."""
    world, state = mixing()
    ones, both = ints(1, 1), ints(0, 1)
    updates = ArrayUpdates(both, 0 * ones, ones, ones, np.zeros((2, 1), "f"), state=state)
    world.memory.commit(updates, 3)
    served = Evaluation(np.array([0.5, 0.0]), np.zeros(2))
    figures = world.personal.figures(4, InferencePlan.alike(both[:, None]), both, served)
    assert figures.personal_accuracy == (0.875 + 0) / 2
    (kept,) = world.personal.own(InferencePlan.alike(both[:, None]))
    assert kept.shares is not None
    assert (kept.models.tolist(), kept.row.tolist(), kept.shares.tolist()) == ([[1], [0]], [0, 1], [0.75, 0])


def test_their_trained_accuracy_is_with_the_model_that_they_have_just_trained() -> None:
    """Trained from 0.5 to 0.75; that of the second client has no memory that is finite."""
    world, state = mixing()
    state["own"][1] = np.nan
    ones, both = ints(1, 1), ints(0, 1)
    delta = np.full((2, 1), 0.25, dtype=np.float32)
    updates = ArrayUpdates(both, 0 * ones, ones, ones, delta, state=state)
    trained = world.personal.trained_accuracy(
        updates, world.bank.parameters, 0 * both, ones > 0, both, 0 * both
    )
    assert trained == ((0.75 + 0.25 * 0.75) + 0.75) / 2


# -- in a run ----------------------------------------------------------------------------------------------


def test_memory_ages_by_the_rounds_since_its_client_took_part() -> None:
    """One of two clients in each round: the own row of a FakeExecutor counts visits, from 1 on.

    The accuracy of a row n is 1 - |1 - n| of its client, and 1 - |1 - w| of one that has not taken part.
    """
    executor = FakeExecutor([1.0, 1.0], pull=0.0)
    executor.solver = OWN
    records = Population(executor, participants=1, rounds=6).play().records
    visits, last = [0, 0], [-1, -1]
    for record in records:
        (client,) = record.completed
        visits[client], last[client] = visits[client] + 1, record.round
        ages = [record.round - of for of in last if of >= 0]
        assert record.memory_age == np.median(ages)
        assert record.without_memory == 1 - len(ages) / 2
        accuracy = [1 - abs(1 - count) for count in visits]  # 0 of a client that never took part: w is 0
        assert record.personal_accuracy == np.mean(accuracy)
        assert record.accuracy == 0.0


class Overflows(FakeExecutor):
    """In round 1 the own row of client 0 overflows."""

    def train(self, tasks: TrainTasks, models: Floats32, start: Ints, weights: object = None) -> ArrayUpdates:
        trained = super().train(tasks, models, start)
        trained.state["own"][(tasks.client == 0) & (tasks.dispatch == 1)] = np.inf
        return trained


def test_a_client_whose_memory_overflows_begins_anew_and_its_update_counts_all_the_same() -> None:
    def play(executor: FakeExecutor) -> Played:
        executor.solver = OWN
        return Population(executor, rounds=3).play()

    plain, overflows = play(FakeExecutor([1.0, 0.0])), play(Overflows([1.0, 0.0]))
    assert overflows.models == plain.models
    assert [record.accuracy for record in overflows.records] == [record.accuracy for record in plain.records]
    assert [record.rejected for record in overflows.records] == [[], [], []]
    assert [record.forgotten for record in overflows.records] == [[], [0], []]
    assert [record.without_memory for record in overflows.records] == [0.0, 0.5, 0.0]
    assert not any(record.forgotten for record in plain.records)
