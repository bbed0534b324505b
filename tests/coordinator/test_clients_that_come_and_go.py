"""Clients that leave and return: as candidates, in quotas and `min_online`, and when they register."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.clusterers.single import Single
from coordinator.clusterers.static import Static, StaticSettings
from coordinator.memories.claimed import Claimed, ClaimedSettings
from coordinator.memories.held import Held, HeldSettings
from coordinator.pacing.sync import SyncSettings
from coordinator.representations.gradient import Gradient, GradientSettings
from emulator.errors import RunError
from tests.fakes import (
    INF,
    NOTHING,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    Played,
    Population,
    a_fleet,
    fresh,
    ints,
)
from tests.traces.tiny import some_images, trace_of
from traces.trace import TraceStream


def population(*held: str, labels: Sequence[int] | None = None, **settings: Any) -> Population:
    """Clients that hold data in the steps marked by an x, a step per round, of the label in `labels`."""
    labels = labels or [0] * len(held)
    rows = [
        (client, split, step, labels[client])
        for client, steps in enumerate(held)
        for step, mark in enumerate(steps)
        for split in (0, 1)
        if mark == "x"
    ]
    trace = trace_of(rows, retain_steps=1, num_clients=len(held), images=some_images(num_labels=2))
    facts = {"stream": TraceStream(trace), "rounds": len(held[0]), **settings}
    return Population(FakeExecutor([1.0] * len(held)), **facts)


def completed(played: Played) -> list[list[int]]:
    return [record.completed for record in played.records]


MEMORIES = [Held(HeldSettings()), Held(HeldSettings(window=1)), Held(HeldSettings(weighting="linear"))]


@pytest.mark.parametrize("memory", [*MEMORIES, Claimed(ClaimedSettings())])
def test_a_client_is_a_candidate_exactly_while_it_holds_data(memory: Held | Claimed) -> None:
    played = population("xxxxx", ".xx..", "x..xx", memory=memory).play()
    assert completed(played) == [[0, 2], [0, 1], [0, 1], [0, 2], [0, 2]]


@pytest.mark.parametrize(
    ("share", "participants", "expected"),
    [
        # Three clients in the first lane, two in the second; then one in the first; then two in the second.
        ("clients", 5, [5, 1, 2]),
        ("clients", 2, [2, 1, 2]),
        ("equal", 4, [4, 1, 2]),
    ],
)
def test_quotas_are_over_the_lanes_that_have_clients_left(
    share: str, participants: int, expected: list[int]
) -> None:
    played = population(
        "xx.",
        "x..",
        "x..",
        "x.x",
        "x.x",
        clusterer=FakeClusterer({0: fresh([0, 0, 0, 1, 1])}),
        participants=participants,
        pacing=SyncSettings(share=share),
    )
    # Clients that return are placed by `on_joined`: no cluster has members then, so in the first.
    sizes = [len(record.completed) for record in played.play().records]
    assert sizes == expected


def test_clients_that_all_come_at_once_are_those_that_train() -> None:
    played = population("x..", "x..", ".xx", ".xx", clusterer=FakeClusterer({0: fresh([0, 1, 1, 1])})).play()
    assert completed(played) == [[0, 1], [2, 3], [2, 3]]
    members = [None if record.members is None else record.members.tolist() for record in played.records]
    assert members == [[0, 1, -1, -1], [-1, -1, 0, 0], None]
    assert [record.clusters for record in played.records] == [[0, 1]] * 3


def test_min_online_requires_no_more_clients_than_hold_data() -> None:
    assert completed(population("xxx", "x.x", "x..", min_online=3).play()) == [[0, 1, 2], [0], [0, 1]]


def test_a_round_waits_for_clients_that_hold_data_not_for_others() -> None:
    # At 9 s client 0 is online, client 1 does not hold data, and client 2 comes at 40 s.
    away = FakeAvailability({2: [(0.0, 5.0), (40.0, INF)]})
    played = population("xx", "x.", "xx", min_online=2, availability=away).play()
    assert [record.dispatched_s for record in played.records] == [0.0, 40.0]
    assert played.records[1].completed == [0, 2]


def test_when_nobody_holds_data_the_run_ends_with_the_reason() -> None:
    with pytest.raises(RunError, match="round 1: nobody can be selected: of 2 clients 0 are in a lane"):
        population("x.", "x.").play()


def test_a_client_may_be_left_without_a_model_on_purpose() -> None:
    class Aloof(Single):
        def on_joined(self, view):  # type: ignore[no-untyped-def]
            return None

    played = population("xx", ".x", clusterer=Aloof(NOTHING)).play()
    assert completed(played) == [[0], [0]]
    assert [record.scored_clients for record in played.records] == [1, 1]
    assert [record.holding for record in played.records] == [1, None]


def test_moves_of_a_joined_client_count_from_the_next_opening_on() -> None:
    swap = Assignment.moved(ints(1, 0, 0), 2)
    script = {0: fresh([0, 1, 0]), 1: swap, 2: Assignment.moved(ints(1, 0, 1), 2)}
    played = population("xxx", "xxx", ".xx", clusterer=FakeClusterer(script)).play()
    # First clients 0 and 1 change places as client 2 joins; then client 2 moves.
    assert [record.moved for record in played.records] == [0, 2, 1]


# -- registering -------------------------------------------------------------------------------------------


def fielding(*held: str, labels: Sequence[int], **settings: Any) -> Played:
    return population(*held, labels=labels, clusterer=Fielding(FieldingSettings()), **settings).play()


def test_a_check_in_of_a_client_that_has_left_since_is_charged_and_forgotten() -> None:
    # Client 1 is offline when its data change at 9 s, is back at 12 s, and has left at 18 s.
    away = FakeAvailability({1: [(0.0, 5.0), (12.0, INF)]})
    played = fielding("xxx", "xx.", labels=[0, 1], availability=away, hear="check_in")
    assert [record.changed for record in played.records] == [2, 1, 2]
    assert [record.holding for record in played.records] == [None, None, 1]
    last = played.records[-1].members
    assert last is not None
    assert last.tolist() == [0, -1]


def test_a_client_that_leaves_has_no_check_in_left() -> None:
    # Client 1 would be back at 20 s, after it has left at 18 s; then it returns.
    away = FakeAvailability({1: [(0.0, 5.0), (20.0, INF)]})
    played = fielding("xxxx", "xx.x", labels=[0, 1], availability=away, hear="check_in")
    assert [record.changed for record in played.records] == [2, 1, 1, 2]
    assert [record.reported for record in played.records] == [2, 0, 0, 1]


def test_with_reports_at_present_models_all_report_anew_when_a_client_joins() -> None:
    played = population(
        "xxxx",
        "xxxx",
        ".xxx",
        clusterer=Fielding(FieldingSettings()),
        representation=Gradient(GradientSettings(at="global")),
        evaluate_every=4,
    )
    # Samples are replaced at each step: so all report at each, the joined client once like the others.
    records = played.play().records
    assert [record.reported for record in records] == [2, 3, 3, 3]
    assert [record.changed for record in records] == [2, 3, 3, 3]


def test_a_clients_joining_alone_makes_the_others_report_at_the_same_models() -> None:
    # Clients 0 and 1 keep their samples: only client 2 has news, at step 2.
    rows = [(client, split, 0, client) for client in (0, 1) for split in (0, 1)]
    rows += [(2, split, 2, 0) for split in (0, 1)]
    trace = trace_of(rows, retain_steps=9)
    played = Population(
        FakeExecutor([1.0, 0.0, 0.5]),
        stream=TraceStream(trace),
        clusterer=Fielding(FieldingSettings()),
        representation=Gradient(GradientSettings(at="global")),
        rounds=4,
    ).play()
    assert [record.reported for record in played.records] == [2, 0, 3, 0]
    assert [record.changed for record in played.records] == [2, 0, 1, 0]
    # A gradient is of one number. At the registration and at step 2 each report is 4 bytes, and 4 of a model.
    assert [record.control_bytes for record in played.records] == [16, 16, 40, 40]


def test_nobody_waits_for_a_client_that_registers() -> None:
    # A report takes client 1 80 s.
    fleet = a_fleet(2, upload_bytes_per_s=[1.0, 0.1])
    played = fielding("xx", ".x", labels=[0, 1], fleet=fleet, participants=1)
    assert played.records[1].dispatched_s == played.records[1].opened_s
    assert played.records[1].control_bytes == 16


def test_a_report_of_a_joined_client_that_is_not_finite_ends_the_run() -> None:
    class Broken(Gradient):
        def measure(self, clients, data):  # type: ignore[no-untyped-def]
            return np.where(clients == 1, np.nan, 1.0)[:, None]

    population_ = population(
        "xx",
        ".x",
        clusterer=Fielding(FieldingSettings()),
        representation=Broken(GradientSettings(at="global")),
    )
    with pytest.raises(RunError, match=r"round 1: the report of client 1 is not finite \(1 of 1 are not\)"):
        population_.play()


def test_a_static_clustering_hears_a_client_once_it_joins_and_nobody_else_again() -> None:
    played = population("xxx", "xxx", ".xx", labels=[0, 1, 1], clusterer=Static(StaticSettings())).play()
    assert [record.reported for record in played.records] == [2, 1, 0]
    assert [record.control_bytes for record in played.records] == [16, 24, 24]
    members = played.records[1].members
    assert members is not None
    assert members.tolist() == [0, 1, 1]
