"""A client with nothing to train is not a candidate: its visit would take no time and fill a quota first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.memories.claimed import Claimed, ClaimedSettings
from coordinator.memories.held import Held, HeldSettings
from coordinator.view import View
from emulator.arrays import Bools, Ints
from emulator.errors import RunError
from emulator.messages import SampleRanges
from emulator.ports import Split
from tests.fakes import (
    INF,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    FakeStream,
    Population,
    fresh,
    ints,
)

VISIT_S = 9.0


class Drying(FakeStream):
    """A stream with one data step per round, and one training sample per client that arrives in each step.

    Client c holds no training samples in the steps `dry[c]`.
    """

    def __init__(self, num_clients: int, steps: int, dry: Mapping[int, range]) -> None:
        super().__init__(np.ones((steps, num_clients, 1)))
        self.dry = dry

    def held(self, ids: Ints, split: Split) -> SampleRanges:
        ranges = super().held(ids, split)
        is_dry = np.array(
            [self.step in self.dry.get(client, range(0)) for client in ids.tolist()], dtype=bool
        )
        return SampleRanges.one_each(
            ranges.first, np.where(is_dry & (split == "train"), ranges.first, ranges.last)
        )


def drying(num_clients: int, dry: Mapping[int, range], rounds: int = 3, **settings: Any) -> Population:
    return Population(
        FakeExecutor([1.0] * num_clients),
        stream=Drying(num_clients, rounds, dry),
        rounds=rounds,
        **settings,
    )


def test_a_client_that_has_run_dry_fills_no_quota() -> None:
    records = drying(2, {1: range(1, 9)}, participants=1, over_commit=2).play().records
    assert [record.participants for record in records] == [[0, 1], [0], [0]]
    assert [record.completed for record in records][1:] == [[0], [0]]
    assert all(record.train_loss is not None for record in records)
    assert records[-1].closed_s == 3 * VISIT_S


def test_a_client_that_receives_samples_again_is_a_candidate_again() -> None:
    records = drying(2, {1: range(1, 2)}).play().records
    assert [record.completed for record in records] == [[0, 1], [0], [0, 1]]


def test_quotas_are_shared_over_the_clients_that_can_train() -> None:
    # Three of four clients of the first lane run dry: the one participant comes from the second lane, of two.
    records = (
        drying(
            6,
            {client: range(1, 9) for client in (0, 1, 2)},
            rounds=2,
            clusterer=FakeClusterer({0: fresh([0, 0, 0, 0, 1, 1])}),
            participants=1,
        )
        .play()
        .records
    )
    assert set(records[0].completed) < {0, 1, 2, 3}
    assert set(records[1].completed) < {4, 5}


def test_a_round_waits_for_enough_clients_that_can_train() -> None:
    # Clients 0 and 1 are online; client 1 has run dry; client 2 comes at 40 s.
    away = FakeAvailability({2: [(0.0, 5.0), (40.0, INF)]})
    population = drying(3, {1: range(1, 9)}, rounds=2, min_online=2, availability=away)
    assert population.play().records[1].dispatched_s == 40.0


def test_min_online_requires_no_more_clients_than_can_train() -> None:
    records = drying(3, {1: range(1, 9)}, rounds=2, min_online=3).play().records
    assert records[1].dispatched_s == VISIT_S
    assert records[1].completed == [0, 2]


def test_those_that_can_train_and_never_come_back_are_not_waited_for_without_end() -> None:
    away = FakeAvailability({0: [(0.0, 9.5)]})
    with pytest.raises(RunError, match=r"round 2: 0 of 1 clients are online.*never"):
        drying(2, {1: range(1, 9)}, availability=away).play()


def test_when_no_client_can_train_the_run_ends_with_the_reason() -> None:
    with pytest.raises(RunError) as raised:
        drying(2, dict.fromkeys(range(2), range(1, 9))).play()
    assert str(raised.value) == (
        "round 1: nobody can be selected: of 2 clients 2 are in a lane, and none of these has "
        "samples to train on at data step 1; a trace must last as long as round.rounds = 3"
    )


def test_a_window_in_which_nothing_arrived_leaves_nothing_to_train() -> None:
    class Arriving(FakeStream):
        """Samples are held for ever; those of client 1 arrived in step 0, those of the others arrive now."""

        def arrived(self, ids: Ints, first_step: int, last_step: int) -> SampleRanges:
            ranges = self.held(ids, "train")
            newest = np.where(ids == 1, 0, self.step)
            in_window = (first_step <= newest) & (newest <= last_step)
            return SampleRanges.one_each(ranges.first, np.where(in_window, ranges.last, ranges.first))

    def completed_with(memory: HeldSettings) -> list[list[int]]:
        population = Population(
            FakeExecutor([1.0, 1.0]), stream=Arriving(np.ones((3, 2, 1))), memory=Held(memory), rounds=3
        )
        return [record.completed for record in population.play().records]

    assert completed_with(HeldSettings()) == [[0, 1]] * 3
    assert completed_with(HeldSettings(window=2)) == [[0, 1], [0, 1], [0]]
    assert completed_with(HeldSettings(window=1, weighting="linear")) == [[0, 1], [0], [0]]


def test_claims_for_models_without_members_leave_nothing_to_train() -> None:
    # Only client 1 received samples for model 1, in step 0; then it belongs to model 0, and has run dry.
    script = {0: fresh([0, 1]), 1: Assignment.moved(ints(0, 0), 2)}
    population = drying(
        2,
        {1: range(1, 9)},
        clusterer=FakeClusterer(script),
        memory=Claimed(ClaimedSettings()),
    )
    assert [record.completed for record in population.play().records] == [[0, 1], [0], [0]]


def test_a_memory_is_evaluated_once_per_assignment_and_data_step() -> None:
    class Counting(Held):
        evaluated = 0

        def trains(self, clients: Ints, view: View) -> Bools:
            self.evaluated += 1
            return super().trains(clients, view)

    memory = Counting(HeldSettings())
    still = FakeStream(np.ones((2, 2, 1)), rounds_per_step=3)
    Population(FakeExecutor([1.0, 1.0]), stream=still, memory=memory, rounds=6).play()
    assert memory.evaluated == 2
