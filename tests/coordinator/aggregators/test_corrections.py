"""FedDyn and FedDC in whole runs on quadratics, by the real rules, while clients leave, return and move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.feddc import FedDC
from coordinator.aggregators.feddyn import FedDyn, FedDynSettings
from coordinator.assignment import Assignment
from emulator.arrays import Floats32, Ints
from emulator.messages import ArrayUpdates, TrainTasks
from emulator.plugins import NoSettings
from executor.rules.base import LocalRule, LocalRun, build_chain
from experiments import contracts
from tests.coordinator.aggregators.arrived import arrived
from tests.coordinator.aggregators.quadratics import CURVATURE, LEAVES, RETURNS, moves, optimum
from tests.executor.fakes import rule
from tests.fakes import FakeClusterer, FakeExecutor, FakeStream, Population, a_view, fresh

MINIMUM = np.array([1.0, 4.0, -3.0, 10.0])
STEPS, RATE = 10, 0.05


class Quadratics(FakeExecutor):
    """Client i has the loss `a_i (w - m_i)^2 / 2`, and takes K steps of 0.05 by these rules."""

    def __init__(self, *rules: LocalRule) -> None:
        super().__init__(MINIMUM)
        self.chain = build_chain(rules)
        self.solver = self.chain.facts

    def train(self, tasks: TrainTasks, models: Floats32, start: Ints, weights: object = None) -> ArrayUpdates:
        trained = super().train(tasks, models, start)
        received = torch.from_numpy(models[start]).double()
        state = {name: torch.from_numpy(rows).double() for name, rows in tasks.state.items()}
        sent = {name: torch.from_numpy(rows[start]).double() for name, rows in tasks.broadcast.items()}
        column = torch.ones_like(received)
        rates = {"learning_rate": RATE * column}
        run = LocalRun(received, received.clone(), rates, state, None, sent, STEPS * column)
        curvature, minimum = (torch.from_numpy(of[tasks.client, None]) for of in (CURVATURE, MINIMUM))
        self.chain.begin(run)
        for _ in range(STEPS):
            self.chain.step(run, curvature * (run.present - minimum))
        self.chain.finish(run)
        return replace(
            trained,
            num_steps=0 * trained.num_steps + STEPS,
            delta=(run.present - received).numpy().astype(np.float32),
            state={name: run.state[name].numpy().astype(np.float32) for name in tasks.state},
        )


def feddyn() -> tuple[Quadratics, Aggregator]:
    return Quadratics(rule("feddyn", alpha=1.0), rule("sgd")), FedDyn(FedDynSettings(alpha=1.0))


def feddc() -> tuple[Quadratics, Aggregator]:
    return Quadratics(rule("feddc", alpha=0.5), rule("sgd")), FedDC(NoSettings())


METHOD = pytest.mark.parametrize("method", [feddyn, feddc])


@pytest.mark.slow
@METHOD
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
    method: Callable[[], tuple[Quadratics, Aggregator]],
    stream: FakeStream | None,
    script: dict[int, Assignment],
    ends: list[list[int]],
) -> None:
    executor, aggregator = method()
    population = Population(
        executor,
        stream=stream,
        aggregator=aggregator,
        clusterer=FakeClusterer(script),
        rounds=200,
        evaluate_every=200,
    )
    expected = np.array([[optimum(MINIMUM, clients)] for clients in ends])
    assert population.play().models == pytest.approx(expected, abs=2e-6)


@pytest.mark.slow
@METHOD
def test_of_a_sample_of_the_clients_in_each_round_the_model_ends_there_too(
    method: Callable[[], tuple[Quadratics, Aggregator]],
) -> None:
    executor, aggregator = method()
    population = Population(executor, aggregator=aggregator, participants=2, rounds=200, evaluate_every=200)
    assert population.play().models == pytest.approx(np.array([[optimum(MINIMUM, range(4))]]), abs=2e-6)


@METHOD
def test_what_clients_remember_ends_with_their_model(
    method: Callable[[], tuple[Quadratics, Aggregator]],
) -> None:
    """After all models are made anew in round 2, tasks begin with nothing; in round 4 that of who moved."""
    executor, aggregator = method()
    script = {
        0: fresh([0, 0, 1, 1]),
        2: Assignment.reclustered_from(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), 2, 2),
        4: moves([1, 1, 0, 1]),
    }
    population = Population(executor, aggregator=aggregator, clusterer=FakeClusterer(script), rounds=5)
    population.play()
    remembers = [
        [bool(any(rows[task].any() for rows in wave.state.values())) for task in range(4)]
        for wave in executor.waves
    ]
    assert remembers == [[False] * 4, [True] * 4, [False] * 4, [True] * 4, [False, True, True, True]]


def test_the_aggregators_read_means_after_the_present_updates() -> None:
    """Two of three clients take part: FedDyn's h is the sum of their g_i over three."""
    executor, aggregator = feddyn()
    seen: list[float] = []

    class Watched(FedDyn):
        def aggregate(self, updates, view):  # type: ignore[no-untyped-def]
            seen.append(float(view.remembered["feddyn.own"][0, 0] * view.num_clients))
            seen.append(-float(updates.weighted_sum(np.ones((1, len(updates))))[0, 0]))
            return super().aggregate(updates, view)

    assert isinstance(aggregator, FedDyn)
    Population(executor, aggregator=Watched(aggregator.settings), participants=2, rounds=1).play()
    assert seen[0] == pytest.approx(seen[1], rel=1e-6)
    assert seen[0] != 0


@pytest.mark.parametrize("aggregator", [FedDyn(FedDynSettings(alpha=0.5)), FedDC(NoSettings())])
def test_a_client_without_steps_or_samples_does_not_count_and_a_model_without_updates_stays(
    aggregator: Aggregator,
) -> None:
    means = {name: np.array([[0.5], [0.5]]) for name in aggregator.averages}
    view = a_view(models=[[1.0], [10.0]], model_ids=[4, 9], remembered=means)
    shift = 0.5 / 0.5 if isinstance(aggregator, FedDyn) else -0.5
    none = replace(arrived([0, 3], model=[4, 4], num_samples=[1, 1]), num_steps=np.array([0, 1]))
    assert aggregator.aggregate(none, view).tolist() == [[4 - shift], [10]]
    empty = arrived([0, 3], model=[4, 4], num_samples=[0, 1])
    assert aggregator.aggregate(empty, view).tolist() == [[4 - shift], [10]]


def test_they_meet_the_contract_of_aggregators() -> None:
    contracts.check_aggregator(lambda: FedDyn(FedDynSettings(alpha=0.5)))
    contracts.check_aggregator(lambda: FedDC(NoSettings()))


def test_an_alpha_of_0_by_which_h_would_be_divided_is_refused() -> None:
    with pytest.raises(ValidationError, match="alpha"):
        FedDynSettings(alpha=0)
    with pytest.raises(ValidationError, match="alpha"):
        rule("feddyn", alpha=0)


def test_where_clients_count_by_samples_each_is_told_its_own_over_their_mean() -> None:
    """Of those that hold data: in round 1 the last has left."""
    executor = Quadratics(rule("feddyn", alpha=1.0, weights="samples"), rule("sgd"))
    holding = [[True] * 4, [True] * 3 + [False]]
    stream = FakeStream(np.ones((2, 4, 1)), train=[1, 2, 3, 6], holding=holding)
    aggregator = FedDyn(FedDynSettings(alpha=1.0))
    Population(executor, stream=stream, aggregator=aggregator, participants=3, rounds=2).play()
    for wave, mean in zip(executor.waves, (3, 2), strict=True):
        told = wave.settings["relative_samples"]
        assert told.tolist() == (wave.samples.counts() / mean).tolist()
    alike, aggregator = feddyn()
    Population(alike, aggregator=aggregator).play()
    assert "relative_samples" not in alike.waves[0].settings
