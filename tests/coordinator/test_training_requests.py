"""Requests to clients to train a model: who responds, what comes back, and what it costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.population import Byzantine, FaultSettings
from coordinator.view import View
from emulator.messages import Updates
from emulator.plugins import NoSettings
from tests.fakes import NOTHING, FakeAvailability, FakeExecutor, FakeStream, Population, a_fleet, ints

START = np.array([0.0], dtype=np.float32)


class Asking(Clusterer):
    """Everybody has one model; in round 1, `request` is called as data arrive."""

    Settings = NoSettings

    def __init__(self, request: Callable[[View], object]) -> None:
        super().__init__(NOTHING)
        self.request = request

    def on_data(self, view: View) -> Assignment | None:
        if view.assignment is None:
            return Assignment.fresh(np.zeros(view.num_clients, dtype=np.int64), 1, view.initial(0))
        self.request(view)
        return None


def asked(request: Callable[[View], object], targets: list[float], **population: object) -> Population:
    return Population(FakeExecutor(targets), clusterer=Asking(request), rounds=2, **population)


def test_online_clients_with_samples_train_the_start_on_all_that_they_hold_for_the_steps_asked() -> None:
    answers: list[Updates] = []
    population = asked(
        lambda view: answers.append(view.train(ints(0, 1, 2, 3), START + 2, 7)),
        [4.0, 1.0, 0.0, 2.0],
        stream=FakeStream(np.ones((1, 4, 1)), train=[3, 0, 5, 1]),
        availability=FakeAvailability({3: [(0.0, 5.0)]}),
        fleet=a_fleet(4, seconds_per_sample=30.0),
    )
    played = population.play()
    (trained,) = answers
    # Client 1 holds nothing, client 3 is offline by then; the others move half of the way to their targets.
    assert trained.client.tolist() == [0, 2]
    assert trained.rows(slice(None)).tolist() == [[1.0], [-1.0]]
    wave = played.executor.waves[1]
    assert wave.samples.counts().tolist() == [3, 5]
    assert wave.settings["local_steps"].tolist() == [7, 7]
    assert (wave.settings["learning_rate"] == 0.1).all()


def test_a_model_down_the_training_and_a_model_up_are_charged_and_the_round_waits_for_the_slowest() -> None:
    population = asked(
        lambda view: view.train(ints(0, 1), START, 3),
        [1.0, 1.0],
        batch_size=5,
        fleet=a_fleet(2, seconds_per_sample=[1.0, 2.0]),
    )
    asking, silent = population.play().records[1], asked(lambda view: None, [1.0, 1.0]).play().records[1]
    # 4 bytes down and up at a byte per second, and 3 steps of 5 samples: of 2 s each for client 1.
    assert asking.dispatched_s - asking.opened_s == 4 + 30 + 4
    assert asking.control_bytes - silent.control_bytes == 2 * (4 + 4)
    assert asking.models_sent - silent.models_sent == 2 * 2


def test_training_on_request_changes_no_model_and_no_batch_of_the_round() -> None:
    asking = asked(lambda view: view.train(ints(0, 1), START + 9, 3), [1.0, -1.0]).play()
    silent = asked(lambda view: None, [1.0, -1.0]).play()
    assert asking.models == silent.models
    # The streams of batches are keyed by model: no request shares one with a model of the bank.
    requested, of_round = asking.executor.waves[1].model, asking.executor.waves[2].model
    assert not set(requested.tolist()) & set(of_round.tolist())


def test_two_requests_of_a_round_draw_different_batches() -> None:
    def twice(view: View) -> None:
        view.train(ints(0), START, 1)
        view.train(ints(0), START, 1)

    waves = asked(twice, [1.0]).play().executor.waves
    assert waves[1].model.tolist() != waves[2].model.tolist()


def test_a_byzantine_client_tampers_and_an_update_that_is_not_finite_is_missing() -> None:
    answers: list[Updates] = []
    flipping = FaultSettings(byzantine=(Byzantine(kind="sign_flip", share=1.0, scale=2.0),))
    asked(lambda view: answers.append(view.train(ints(0), START, 1)), [1.0], faults=flipping).play()
    broken = FaultSettings(corrupt=1.0, corruption="nan")
    asked(lambda view: answers.append(view.train(ints(0), START, 1)), [1.0], faults=broken).play()
    assert [answer.rows(slice(None)).tolist() for answer in answers] == [[[-1.0]], []]
