"""What participants find in the samples that have arrived since their last visit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.detectors import Detector
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.schedules import Schedule
from coordinator.view import View
from emulator.arrays import Bools, Floats, Ints
from emulator.messages import COMPLETED, DROPPED, EndedVisits, SampleRanges
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
)

NOTHING = NoSettings()


class Watching(Detector):
    """Flags a client of whose samples fewer than half are right, and tells what it was given."""

    Settings = NoSettings
    watches = "arrivals"

    def __init__(self) -> None:
        super().__init__(NOTHING)
        self.given: list[tuple[list[int], list[list[float]]]] = []
        self.forgotten: list[list[int]] = []

    def detect(self, clients: Ints, signal: Floats, last: Floats | None) -> Bools:
        assert last is None
        self.given.append((clients.tolist(), signal.tolist()))
        flags: Bools = signal[:, 0] < signal[:, 1] / 2
        return flags

    def forget(self, clients: Ints) -> None:
        self.forgotten.append(clients.tolist())


@dataclass
class Seen:
    """What a schedule saw at a dispatch."""

    participants: list[int]
    changed: list[int]
    flagged: dict[str, list[int]]


class Noting(Schedule):
    """Leaves the learning rate as it is, and notes what it sees."""

    Settings = NoSettings
    sets = frozenset({"learning_rate"})

    def __init__(self) -> None:
        super().__init__(NOTHING)
        self.seen: list[Seen] = []
        self.ended: list[tuple[list[int], list[int]]] = []

    def feedback(self, visits: EndedVisits) -> None:
        self.ended.append((visits.client.tolist(), visits.outcome.tolist()))

    def task_settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        flagged = {name: np.flatnonzero(flags).tolist() for name, flags in view.drift.items()}
        self.seen.append(Seen(view.participants.tolist(), view.changed.tolist(), flagged))
        return {"learning_rate": base["learning_rate"]}


class Growing(FakeStream):
    """Two more samples arrive for each client at each data step, and are kept; of a client they are in a row.

    `holding` is as in `FakeStream`.
    """

    def __init__(self, clients: int, steps: int, rounds_per_step: int = 1, **fields: Any) -> None:
        touched = np.ones((steps, clients), dtype=bool)
        super().__init__(np.ones((steps, clients, 1)), rounds_per_step, touched=touched, **fields)
        self.room = 2 * steps

    def held(self, ids: Ints, split: str) -> SampleRanges:
        return self.arrived(ids, 0, self.step)

    def arrived(self, ids: Ints, first_step: int, last_step: int) -> SampleRanges:
        begin = ids * self.room
        last = np.where(self.holding[ids], 2 * (min(last_step, self.step) + 1), 2 * first_step)
        return SampleRanges.one_each(begin + 2 * first_step, begin + last)


def play(stream: FakeStream, **fields: Any) -> tuple[Watching, Noting, Played]:
    """A run of clients who all want a model of 1, with a detector that watches arrivals, and a schedule.

    After round r the model is 1 - 2^-(r + 1), which is also the share of samples that it predicts correctly.
    """
    watching, noting = Watching(), Noting()
    detectors = fields.pop("detectors", {"mine": watching})
    population = Population(
        FakeExecutor([1.0] * stream.num_clients),
        stream=stream,
        detectors=detectors,
        schedules=(noting,),
        log_visits=True,
        **fields,
    )
    return watching, noting, population.play()


def test_a_participant_scores_what_has_arrived_by_the_model_that_it_receives_and_schedules_see_the_flags():
    watching, noting, _ = play(Growing(2, 3), rounds=3)
    assert watching.given == [
        ([0, 1], [[0.0, 2.0]] * 2),
        ([0, 1], [[1.0, 2.0]] * 2),
        ([0, 1], [[1.5, 2.0]] * 2),
    ]
    assert noting.seen == [
        Seen([0, 1], [0, 1], {"mine": [0, 1]}),
        Seen([0, 1], [0, 1], {"mine": []}),
        Seen([0, 1], [0, 1], {"mine": []}),
    ]


def test_where_nothing_has_arrived_since_its_last_visit_it_scores_nothing():
    watching, noting, _ = play(Growing(2, 2, rounds_per_step=2), rounds=4)
    assert [clients for clients, _ in watching.given] == [[0, 1], [0, 1]]
    assert [seen.changed for seen in noting.seen] == [[0, 1], [], [0, 1], []]


def test_one_that_was_away_scores_all_that_has_arrived_meanwhile():
    # A round takes 9 s and 2/3 of a second, for the samples that are predicted.
    coming = FakeAvailability({1: [(-INF, 0.0), (15.0, INF)]})
    watching, _, _ = play(Growing(2, 3), rounds=3, availability=coming)
    assert watching.given == [([0], [[0.0, 2.0]]), ([0], [[1.0, 2.0]]), ([0, 1], [[1.5, 2.0], [4.5, 6.0]])]


def test_what_it_predicts_takes_time_a_third_of_training_and_no_bytes():
    _, _, without = play(Growing(1, 2), rounds=2, detectors={})
    _, _, watched = play(Growing(1, 2), rounds=2)
    assert [record.closed_s for record in without.records] == [9.0, 18.0]
    assert [record.closed_s for record in watched.records] == pytest.approx([9 + 2 / 3, 18 + 4 / 3])
    assert [rows.compute_s.tolist() for rows in watched.visits] == [[pytest.approx(1 + 2 / 3)]] * 2
    for name in ("download_bytes", "upload_bytes", "control_bytes"):
        assert getattr(watched.records[-1], name) == getattr(without.records[-1], name)


def test_a_visit_counts_however_it_ends():
    away = FakeAvailability({0: [(-INF, 2.0), (9.0, INF)]})
    watching, noting, _ = play(Growing(2, 2), rounds=2, availability=away)
    # Client 0 has dropped out of its first visit: what had arrived before is not new at the second.
    assert [signal[0] for _, signal in watching.given] == [[0.0, 2.0], [1.0, 2.0]]
    assert noting.ended == [([0, 1], [DROPPED, COMPLETED]), ([0, 1], [COMPLETED, COMPLETED])]


def test_each_scores_the_model_of_its_own_cluster():
    two = FakeClusterer({0: fresh([0, 1])})
    late = FakeAvailability({1: [(-INF, 0.0), (9.0, INF)]})
    watching, _, _ = play(Growing(2, 2), rounds=2, clusterer=two, availability=late)
    # Client 1 meets a model that nobody has trained.
    assert watching.given == [([0], [[0.0, 2.0]]), ([0, 1], [[1.0, 2.0], [0.0, 4.0]])]


def test_of_several_models_it_scores_the_one_that_it_belongs_to_first():
    # Model 1 is right from the start; model 0, of the lower row, is trained as well.
    both = Assignment.fresh(np.array([[1, 0], [1, 0]]), 2, np.array([[0.0], [1.0]], dtype=np.float32))
    watching, _, _ = play(Growing(2, 1), clusterer=FakeClusterer({0: both}))
    assert watching.given == [([0, 1], [[2.0, 2.0]] * 2)]


def test_one_that_holds_nothing_any_more_is_forgotten_and_scores_all_when_it_comes_back():
    holding = np.array([[True, True], [False, True], [True, True]])
    watching, _, _ = play(Growing(2, 3, holding=holding), rounds=3)
    assert watching.forgotten == [[0]]
    assert [clients for clients, _ in watching.given] == [[0, 1], [1], [0, 1]]
    assert watching.given[2][1] == [[1.5 * 3, 6.0], [1.5, 2.0]]


def test_asynchronous_visits_score_what_is_there_at_their_dispatch():
    """Data arrive every 2 s: client 1, whose visits take 3 s, is sent out at 0, 3 and 6 s."""
    watching, noting, _ = play(
        Growing(2, 4),
        fleet=a_fleet(2, [0.3, 1.5], 16.0, 16.0),
        pacing=lambda cohort: Buffered(BufferedSettings(buffer=1, concurrency=2), cohort),
        participants=1,
        rounds=4,
        seconds_per_round=2.0,
    )
    totals = [
        [
            total
            for clients, signal in watching.given
            for one, (_, total) in zip(clients, signal, strict=True)
            if one == client
        ]
        for client in (0, 1)
    ]
    assert totals == [[2.0] * 4, [2.0, 2.0, 4.0]]
    assert all(seen.flagged.keys() == {"mine"} for seen in noting.seen)
