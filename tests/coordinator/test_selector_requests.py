"""Requests of a selector are charged as any other: dispatch waits for the slowest response."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coordinator.candidates import Candidates
from coordinator.clusterers import Clusterer
from coordinator.clusterers.single import Single
from coordinator.pacing.sync import SyncSettings
from coordinator.selectors import Selector
from coordinator.view import View
from emulator.arrays import Ints
from emulator.emulation import Emulation
from emulator.plugins import NoSettings, Settings
from emulator.storage.runlog import RoundRecord
from emulator.storage.state_tree import from_bytes, to_bytes
from experiments.contracts import check_selector
from tests.fakes import (
    INF,
    NOTHING,
    FakeAvailability,
    FakeExecutor,
    MemoryLog,
    Population,
    a_fleet,
    ints,
)

# For one model of one parameter and one sample, at a byte and a trained sample per second.
RESPONSE_S = 4 + 1 / 3 + 8  # the model down, a forward pass, a sum and a count up
VISIT_S = 4 + 1 + 4
HELD_VISIT_S = 1 + 4  # of a client that holds the model already


class PowerOfChoiceSettings(Settings):
    candidates: int


class PowerOfChoice(Selector):
    """Of `candidates` drawn clients, those that their lane's model serves worst (Cho et al. 2020)."""

    Settings = PowerOfChoiceSettings
    settings: PowerOfChoiceSettings

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        chosen = []
        for lane, count in enumerate(wanted.tolist()):
            drawn = np.sort(candidates.draw(lane, self.settings.candidates, view.rng("selection", lane)))
            response = view.score(drawn, ints(lane), "arrived")
            assert response.scores.correct is not None
            worst = np.argsort(response.scores.correct[:, 0], kind="stable")[:count]
            chosen.append(response.clients[worst])
        return np.sort(np.concatenate(chosen))


class ScoringParticipants(Clusterer):
    """Requests participants to score their model."""

    Settings = NoSettings

    def on_data(self, view: View) -> Any:
        return Single(NOTHING).on_data(view)

    def on_participants(self, view: View) -> None:
        view.score(view.participants, ints(0), "arrived")


def choosing(candidates: int, targets: list[float], **settings: Any) -> Population:
    """The accuracy of a client is lower the further its target is from 0, the initial model."""
    return Population(
        FakeExecutor(targets),
        selector=PowerOfChoice(PowerOfChoiceSettings(candidates=candidates)),
        **{"participants": 1, **settings},
    )


def first_record(population: Population) -> RoundRecord:
    return population.play().records[0]


def test_visits_begin_after_the_slowest_response() -> None:
    # Client 0 uploads at half a byte per second; it scores the model, but is not selected.
    fleet = a_fleet(2, upload_bytes_per_s=[0.5, 1.0])
    record = first_record(choosing(2, [0.0, 0.5], fleet=fleet))
    assert record.opened_s == 0
    assert record.dispatched_s == pytest.approx(RESPONSE_S + 8)
    assert record.participants == record.completed == [1]
    assert record.closed_s == pytest.approx(RESPONSE_S + 8 + HELD_VISIT_S)


def test_a_round_of_power_of_choice_is_not_shorter_than_one_of_random_selection() -> None:
    rounds = 3
    power_of_choice = choosing(3, [0.0, 0.5, 0.25], rounds=rounds).play().records
    drawn = Population(FakeExecutor([0.0, 0.5, 0.25]), participants=1, rounds=rounds).play().records
    assert drawn[-1].closed_s == rounds * VISIT_S
    assert power_of_choice[-1].closed_s == pytest.approx(rounds * (RESPONSE_S + HELD_VISIT_S))
    assert power_of_choice[-1].closed_s > drawn[-1].closed_s


def test_every_candidate_is_charged_and_the_model_it_has_is_not_sent_to_it_again() -> None:
    record = first_record(choosing(3, [0.0, 0.5, 0.25]))
    assert record.control_bytes == 3 * (4 + 8)
    assert (record.download_bytes, record.upload_bytes) == (0, 4)
    assert record.models_sent == 3 + 1  # three downloads for scoring, one upload after training


def test_a_selector_without_requests_costs_nothing() -> None:
    record = first_record(Population(FakeExecutor([0.0, 0.5]), participants=1))
    assert (record.dispatched_s, record.control_bytes) == (0.0, 0.0)


def test_a_client_that_goes_offline_while_others_respond_drops_out_as_its_visit_begins() -> None:
    # Both are selected, and dispatched at 12.3 s; client 1 is offline from 10 s to 20 s.
    away = FakeAvailability({1: [(0.0, 10.0), (20.0, INF)]})
    record = first_record(choosing(2, [0.0, 0.5], participants=2, availability=away))
    assert record.participants == [0, 1]
    assert (record.completed, record.dropped) == ([0], [1])
    assert record.closed_s == pytest.approx(RESPONSE_S + HELD_VISIT_S)
    assert record.upload_bytes == 4


def test_a_client_that_is_back_by_then_takes_part() -> None:
    away = FakeAvailability({1: [(0.0, 10.0), (11.0, INF)]})
    record = first_record(choosing(2, [0.0, 0.5], participants=2, availability=away))
    assert record.completed == [0, 1]


def test_when_all_selected_clients_went_offline_the_round_ends_and_the_next_one_waits() -> None:
    away = FakeAvailability({client: [(0.0, 10.0), (50.0, INF)] for client in range(2)})
    records = choosing(2, [0.0, 0.5], availability=away, rounds=2).play().records
    assert (records[0].completed, records[0].dropped) == ([], [1])
    assert records[0].closed_s == records[0].dispatched_s == pytest.approx(RESPONSE_S)
    assert records[0].train_loss is None
    assert records[1].dispatched_s == pytest.approx(50 + RESPONSE_S)
    assert records[1].completed == [1]


def test_the_deadline_counts_from_dispatch() -> None:
    in_time = choosing(2, [0.0, 0.5], pacing=SyncSettings(deadline_s=HELD_VISIT_S))
    assert first_record(in_time).completed == [1]
    late = choosing(2, [0.0, 0.5], pacing=SyncSettings(deadline_s=HELD_VISIT_S - 0.5))
    record = first_record(late)
    assert record.completed == []
    assert record.closed_s == pytest.approx(RESPONSE_S + HELD_VISIT_S - 0.5)


def test_requests_to_participants_lengthen_their_own_visits_alone() -> None:
    record = first_record(choosing(2, [0.0, 0.5], clusterer=ScoringParticipants(NOTHING)))
    assert record.dispatched_s == pytest.approx(RESPONSE_S)
    # The client holds the model already: a forward pass, and a sum and a count up.
    assert record.closed_s == pytest.approx(RESPONSE_S + (1 / 3 + 8) + HELD_VISIT_S)


def test_while_too_few_are_online_there_are_no_requests() -> None:
    away = FakeAvailability({0: [(30.0, INF)]})
    record = first_record(choosing(2, [0.5, 0.0], availability=away, min_online=2))
    assert record.dispatched_s == pytest.approx(30 + RESPONSE_S)
    assert record.control_bytes == 2 * (4 + 8)


def test_it_keeps_to_the_contract_of_selectors() -> None:
    check_selector(lambda: PowerOfChoice(PowerOfChoiceSettings(candidates=3)))


def test_a_run_resumed_between_any_two_steps_is_the_same_run() -> None:
    def played(stored_after: int | None) -> tuple[list[RoundRecord], int]:
        """The records, and the number of steps."""
        log, steps = MemoryLog(), 0
        emulation = Emulation(population().coordinator(), log)
        playing = emulation.steps()
        for _ in playing:
            steps += 1
            if steps == stored_after:
                stored = to_bytes(emulation.state())
                emulation = Emulation(population().coordinator(), log)
                emulation.restore(from_bytes(stored))
                playing.close()
                steps += sum(1 for _ in emulation.steps())
                break
        return log.records, steps

    def population() -> Population:
        away = FakeAvailability({1: [(0.0, 10.0), (20.0, INF)]})
        return choosing(
            3,
            [0.0, 0.5, 0.25],
            participants=2,
            availability=away,
            rounds=3,
            clusterer=ScoringParticipants(NOTHING),
        )

    whole, steps = played(None)
    assert steps > 3 * 4
    for step in range(1, steps):
        assert played(step) == (whole, steps), step
