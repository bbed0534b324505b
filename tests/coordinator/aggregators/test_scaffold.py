from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from pydantic import ValidationError

from coordinator.aggregators.scaffold import CONTROL, OWN, Scaffold, ScaffoldSettings
from coordinator.assignment import Assignment
from coordinator.memories.claimed import Claimed, ClaimedSettings
from coordinator.view import View
from emulator.arrays import Floats32, Ints
from emulator.messages import ArrayUpdates, SampleRanges, SolverFacts, StateSpec, TrainTasks
from experiments import contracts
from tests.coordinator.aggregators.quadratics import CURVATURE, LEAVES, RETURNS, moves, optimum
from tests.fakes import FakeClusterer, FakeExecutor, FakeStream, Population, a_view, fresh


def scaffold(rate: float = 1.0) -> Scaffold:
    return Scaffold(ScaffoldSettings(rate=rate))


def updates(
    model: Sequence[int], delta: Sequence[float], steps: Sequence[int], samples: Sequence[int] | None = None
) -> ArrayUpdates:
    rows = len(model)
    return ArrayUpdates(
        client=np.arange(rows),
        model=np.array(model, dtype=np.int64),
        num_samples=np.ones(rows, dtype=np.int64) if samples is None else np.array(samples),
        num_steps=np.array(steps),
        delta=np.array(delta, dtype=np.float32).reshape(rows, 1),
    )


def view_of(models: Sequence[float], ids: Sequence[int], members: Sequence[int]) -> View:
    """A view of clients that belong to these rows of the bank."""
    columns = np.array(models)[:, None]
    return a_view(models=columns, model_ids=ids, num_clients=len(members), assignment=fresh(members))


VIEW = view_of([1.0, 10.0], [4, 9], [0, 0, 0, 1])
"""Three clients of model 4, and one of model 9."""


def test_it_sends_the_mean_of_what_clients_remember_of_each_model() -> None:
    view = a_view(models=[[1.0], [2.0]], model_ids=[4, 9], remembered={OWN: np.array([[0.25], [-3.0]])})
    sent = scaffold().broadcast(view)[CONTROL]
    assert (sent.tolist(), sent.dtype) == ([[0.25], [-3.0]], np.float32)


def test_the_mean_is_of_each_models_updates_whatever_their_samples_and_steps() -> None:
    arrived = updates([4, 9, 4], [-6, 4, 3], [2, 2, 3], samples=[1, 50, 100])
    assert scaffold().aggregate(arrived, VIEW).tolist() == [[1 - 1.5], [14]]
    assert scaffold(rate=0.5).aggregate(arrived, VIEW).tolist() == [[1 - 0.75], [12]]


@pytest.mark.parametrize(("steps", "samples"), [([0, 1], [1, 1]), ([2, 1], [0, 1])])
def test_a_client_without_steps_or_samples_does_not_count(steps: list[int], samples: list[int]) -> None:
    both = scaffold().aggregate(updates([4, 4], [0, 3], steps, samples), VIEW)
    assert both.tolist() == [[4], [10]]


def test_it_meets_the_contract_of_aggregators() -> None:
    contracts.check_aggregator(lambda: scaffold(rate=0.5))


def test_a_rate_of_0_is_refused() -> None:
    with pytest.raises(ValidationError, match="rate"):
        ScaffoldSettings(rate=0)


# -- on quadratics, in whole runs --------------------------------------------------------------------------

MINIMUM = np.array([0.0, 4.0, -3.0, 10.0])
STEPS, RATE = 10, 0.02


class Quadratics(FakeExecutor):
    """Client i has the loss `a_i (w - m_i)^2 / 2`, and trains by SCAFFOLD: K steps of 0.02."""

    def __init__(self) -> None:
        super().__init__(MINIMUM)
        state = {OWN: StateSpec("parameters", until="model")}
        self.solver = SolverFacts(state=state, receives=frozenset({CONTROL}), uploads=1)

    def train(self, tasks: TrainTasks, models: Floats32, start: Ints, weights: object = None) -> ArrayUpdates:
        trained = super().train(tasks, models, start)
        received = models[start].astype(np.float64)
        control, own = tasks.broadcast[CONTROL][start].astype(np.float64), tasks.state[OWN]
        present = received.copy()
        for _ in range(STEPS):
            slope = CURVATURE[tasks.client, None] * (present - MINIMUM[tasks.client, None])
            present -= RATE * (slope - own + control)
        return ArrayUpdates(
            client=trained.client,
            model=trained.model,
            num_samples=trained.num_samples,
            num_steps=0 * trained.num_steps + STEPS,
            delta=(present - received).astype(np.float32),
            metrics=trained.metrics,
            state={OWN: (own - control + (received - present) / (STEPS * RATE)).astype(np.float32)},
        )


@pytest.mark.parametrize(
    ("stream", "script", "ends"),
    [
        pytest.param(None, {0: fresh([0, 0, 0, 0])}, [[0, 1, 2, 3]], id="all stay"),
        pytest.param(LEAVES, {0: fresh([0, 0, 0, 0])}, [[0, 1, 2]], id="one leaves"),
        pytest.param(RETURNS, {0: fresh([0, 0, 0, 0])}, [[0, 1, 2, 3]], id="one leaves and returns"),
        pytest.param(
            None, {0: fresh([0, 0, 1, 0]), 100: moves([0, 0, 1, 1])}, [[0, 1], [2, 3]], id="one moves"
        ),
    ],
)
def test_the_models_end_at_the_optimum_of_the_clients_that_they_have_then(
    stream: FakeStream | None, script: dict[int, Assignment], ends: list[list[int]]
) -> None:
    """With what a client that left had contributed to c, the second case ends at 5.6 instead of 1.9."""
    population = Population(
        Quadratics(),
        stream=stream,
        aggregator=scaffold(),
        clusterer=FakeClusterer(script),
        rounds=200,
        evaluate_every=200,
    )
    models = population.play().models
    assert models == pytest.approx(np.array([[optimum(MINIMUM, clients)] for clients in ends]), abs=1e-5)


class Keeps(FakeStream):
    """What arrived at earlier data steps can still be trained on."""

    def arrived(self, ids: Ints, first_step: int, last_step: int) -> SampleRanges:
        ranges = self.held(ids, "train")
        last = ranges.last if first_step <= self.step else ranges.first
        return SampleRanges.one_each(ranges.first, last)


def test_what_a_client_remembers_of_a_model_counts_as_long_as_it_trains_it_on_old_claims() -> None:
    """Client 3 moves; its older claim trains model 0 for one more data step, and then no claim of it does."""
    population = Population(
        Quadratics(),
        stream=Keeps(np.ones((4, 4, 1)), 75, touched=[[True] * 4] * 4),
        memory=Claimed(ClaimedSettings(window=2)),
        aggregator=scaffold(),
        clusterer=FakeClusterer({0: fresh([0, 0, 1, 0]), 75: moves([0, 0, 1, 1])}),
        rounds=300,
        evaluate_every=300,
    )
    played = population.play()
    trained = [
        sorted(zip(wave.client.tolist(), wave.model.tolist(), strict=True)) for wave in played.executor.waves
    ]
    assert [(3, 0) in wave and (3, 1) in wave for wave in trained[74::75]] == [False, True, False, False]
    ends = np.array([[optimum(MINIMUM, [0, 1])], [optimum(MINIMUM, [2, 3])]])
    assert played.models == pytest.approx(ends, abs=1e-5)


def test_of_a_sample_of_the_clients_in_each_round_the_model_ends_there_too() -> None:
    """FedAvg would wander about: only with each client's own correction do all its steps end up at rest."""
    population = Population(
        Quadratics(), aggregator=scaffold(), participants=2, rounds=200, evaluate_every=200
    )
    assert population.play().models == pytest.approx(np.array([[optimum(MINIMUM, range(4))]]), abs=1e-4)
