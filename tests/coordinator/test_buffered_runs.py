"""Over random fleets, drop-outs, lanes and buffers, every visit of a buffered run is accounted for.

The reference keeps visits in a dictionary: it hears of dispatches, of models that are replaced and of server
steps, and says which staleness and lane each visit must have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.coordinator import Coordinator
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.population import FaultSettings
from coordinator.view import View
from emulator.arrays import Ints
from emulator.emulation import Emulation
from emulator.in_flight import InFlight, VisitEnds
from emulator.messages import ABANDONED, COMPLETED, DROPPED, EndedVisits, SolverFacts, StateSpec, VisitRows
from emulator.plugins import NoSettings
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import (
    INF,
    FakeAvailability,
    FakeExecutor,
    FakeStream,
    MemoryLog,
    Population,
    a_fleet,
    fresh,
)

TRANSFER_S = 0.25
"""Of each direction, for the four bytes of a model."""


# -- the reference ------------------------------------------------------------------------------------------


@dataclass
class Out:
    """A visit that no server step has taken."""

    client: int
    lane: int  # -1: its model has no successor
    staleness: int = 0


@dataclass
class Reference:
    """The visits in flight, by id, and what was seen of those that are over."""

    out: dict[int, Out] = field(default_factory=dict)
    stepped_s: dict[int, float] = field(default_factory=dict)  # by visit, when it was handed over
    steps: int = 0

    def dispatched(self, first: int, clients: Sequence[int], lanes: Sequence[int]) -> None:
        for visit, (client, lane) in enumerate(zip(clients, lanes, strict=True), start=first):
            self.out[visit] = Out(client, lane)

    def replaced(self, successor: Sequence[int]) -> None:
        for visit in self.out.values():
            visit.lane = -1 if visit.lane < 0 else successor[visit.lane]

    def stepped(self, ended: EndedVisits, now_s: float) -> None:
        """Check the visits that a step takes, and age those that stay in its lanes."""
        names = ("visit", "client", "lane", "staleness", "outcome", "end_s")
        rows = list(zip(*(getattr(ended, name).tolist() for name in names), strict=True))
        assert [(client, visit) for visit, client, *_ in rows] == sorted(
            (client, visit) for visit, client, *_ in rows
        )
        absorbing = {lane for _, _, lane, _, outcome, _ in rows if outcome == COMPLETED}
        assert absorbing, "a step absorbs an update"
        for visit, client, lane, staleness, outcome, end_s in rows:
            expected = self.out.pop(visit)
            assert (client, lane, staleness) == (expected.client, expected.lane, expected.staleness)
            assert (outcome == ABANDONED) <= (lane == -1)
            assert (lane == -1) <= (outcome in (ABANDONED, DROPPED))
            assert end_s <= now_s
            self.stepped_s[visit] = now_s
        for other in self.out.values():
            other.staleness += other.lane in absorbing
        self.steps += 1

    def watch(self, coordinator: Coordinator) -> None:
        """Hear of the dispatches and the server steps of a run."""
        federation: Any = coordinator.federation
        dispatch, aggregate = federation.dispatch, federation.aggregate

        def dispatched(round_: int, number: int, first_visit: int, now_s: float) -> Any:
            sent = dispatch(round_, number, first_visit, now_s)
            self.dispatched(first_visit, sent.clients.tolist(), sent.lanes.tolist())
            return sent

        def aggregated(round_: int, step: int, ended: EndedVisits, now_s: float, out: Ints) -> Any:
            assert step == self.steps
            self.stepped(ended, now_s)
            return aggregate(round_, step, ended, now_s, out)

        federation.dispatch, federation.aggregate = dispatched, aggregated


class Replacing(Clusterer):
    """Replaces all models at some openings, as its script says; tells `reference` of the successors."""

    Settings = NoSettings
    state_fields = ("openings",)

    def __init__(self, script: Mapping[int, Assignment], reference: Reference) -> None:
        super().__init__(NoSettings())
        self.script, self.reference, self.openings = script, reference, 0

    def on_data(self, view: View) -> Assignment | None:
        assignment = self.script.get(self.openings)
        self.openings += 1
        if assignment is not None and assignment.changes_models and view.assignment is not None:
            self.reference.replaced(assignment.successor.tolist())
        return assignment


# -- random runs --------------------------------------------------------------------------------------------


def script_of(data: st.DataObject, clients: int) -> dict[int, Assignment]:
    """Up to three models, which are replaced at some of the first openings, with or without successors."""
    members = data.draw(st.lists(st.integers(0, 2), min_size=clients, max_size=clients))
    script = {0: fresh(np.unique(members, return_inverse=True)[1].tolist())}
    count = script[0].num_models
    for opening in sorted(data.draw(st.sets(st.integers(1, 6), max_size=3))):
        drawn = data.draw(st.lists(st.integers(0, 2), min_size=clients, max_size=clients))
        names, members = np.unique(drawn, return_inverse=True)
        successor = data.draw(st.lists(st.integers(-1, len(names) - 1), min_size=count, max_size=count))
        script[opening] = Assignment(
            mixing=np.full((len(names), count), 1 / count),
            extra=np.zeros((0, 0), dtype=np.float32),
            successor=np.array(successor),
            members=np.array(members)[:, None],
            reclustered=True,
        )
        count = len(names)
    return script


@dataclass
class Drawn:
    """A population of a drawn example, made anew for each run of it."""

    clients: int
    seconds: list[float]
    sessions: dict[int, list[tuple[float, float]]]
    pacing: BufferedSettings
    script: dict[int, Assignment]
    touched: Any
    rounds: dict[str, Any]
    crash: float

    def population(self, reference: Reference) -> Population:
        executor = FakeExecutor(np.linspace(0, 1, self.clients))
        executor.solver = SolverFacts({"times": StateSpec("scalar")})
        return Population(
            executor,
            stream=FakeStream(np.ones((len(self.touched), self.clients, 1)), touched=self.touched),
            availability=FakeAvailability(self.sessions),
            fleet=a_fleet(self.clients, [lasts_s - 2 * TRANSFER_S for lasts_s in self.seconds], 16.0, 16.0),
            clusterer=Replacing(self.script, reference),
            pacing=lambda cohort: Buffered(self.pacing, cohort),
            faults=FaultSettings(crash=self.crash),
            log_visits=True,
            **self.rounds,
        )


def drawn(data: st.DataObject) -> Drawn:
    clients = data.draw(st.integers(1, 7))
    number, each = st.integers(1, clients), {"min_size": clients, "max_size": clients}
    seconds = data.draw(st.lists(st.sampled_from([0.75, 1.0, 2.0, 3.0, 7.0]), **each))
    # Online from 0 on for a while, and again from 50 s on without end; or from 4 s on.
    kinds = data.draw(st.lists(st.sampled_from(["always", "short", "long", "late"]), **each))
    away = {"short": [(-INF, 1.5), (50.0, INF)], "long": [(-INF, 9.0), (50.0, INF)], "late": [(4.0, INF)]}
    slots = data.draw(number)
    pacing = {"buffer": data.draw(number), "concurrency": slots, "refill": data.draw(st.integers(1, slots))}
    rounds: dict[str, Any] = {"rounds": data.draw(st.integers(1, 5)), "participants": data.draw(number)}
    if data.draw(st.booleans()):
        rounds["seconds_per_round"] = data.draw(st.sampled_from([1.0, 3.25, 6.5]))
    return Drawn(
        clients,
        seconds,
        {client: away[kind] for client, kind in enumerate(kinds) if kind != "always"},
        BufferedSettings(**pacing),
        script_of(data, clients),
        data.draw(st.lists(st.lists(st.sampled_from([0, 0, 1]), **each), min_size=1, max_size=4)),
        rounds,
        data.draw(st.sampled_from([0.0, 0.0, 0.4])),
    )


def handed_over(visits: list[VisitRows]) -> list[dict[str, Any]]:
    """All visits, by id."""
    names = [name for name in vars(visits[0]) if name not in ("round", "models")] if visits else []
    rows = [
        dict(zip(names, values, strict=True))
        for batch in visits
        for values in zip(*(getattr(batch, name).tolist() for name in names), strict=True)
    ]
    return sorted(rows, key=lambda row: row["visit"])


def logged(log: MemoryLog) -> list[Any]:
    return [log.records, [{name: repr(column) for name, column in vars(rows).items()} for rows in log.visits]]


@settings(max_examples=12)
@given(data=st.data())
def test_every_visit_of_a_buffered_run_is_accounted_for(data: st.DataObject) -> None:
    example, reference = drawn(data), Reference()
    coordinator, log = example.population(reference).coordinator(), MemoryLog()
    reference.watch(coordinator)
    emulation = Emulation(coordinator, log)
    for _ in emulation.steps():
        counts = coordinator.visits
        ended = counts.completed + counts.waiting + counts.dropped + counts.abandoned
        assert counts.opened == ended + counts.out
        assert counts.waiting + counts.out <= example.clients
        assert counts.completed + counts.waiting + counts.out <= counts.completed + len(reference.out)
    counts, visits = coordinator.visits, handed_over(log.visits)
    # All were handed over: by a step, or as the run ended.
    assert [row["visit"] for row in visits] == list(range(counts.opened))
    outcomes = [row["outcome"] for row in visits]
    assert (counts.waiting, counts.out) == (0, 0)
    assert [outcomes.count(outcome) for outcome in (COMPLETED, DROPPED, ABANDONED)] == [
        *(counts.completed, counts.dropped, counts.abandoned)
    ]
    assert_one_at_a_time(visits, reference)
    assert_charged(visits, log, example)
    assert sum(record.steps or 0 for record in log.records) == reference.steps
    for name in ("participants", "completed", "dropped"):
        total = sum(len(getattr(record, name)) for record in log.records)
        assert total == {"participants": counts.opened}.get(name, getattr(counts, name, None))


def assert_one_at_a_time(visits: list[dict[str, Any]], reference: Reference) -> None:
    """A client goes out again when its update was absorbed, or lost, and not before."""
    free_s: dict[int, float] = {}
    for row in visits:
        assert row["dispatched_s"] >= free_s.get(row["client"], 0.0)
        absorbed = row["outcome"] == COMPLETED
        free_s[row["client"]] = reference.stepped_s[row["visit"]] if absorbed else row["end_s"]


def assert_charged(visits: list[dict[str, Any]], log: MemoryLog, example: Drawn) -> None:
    """Bytes are those that a visit had time for, and the ledger has them all."""
    for row in visits:
        elapsed_s, lasts_s = row["end_s"] - row["dispatched_s"], example.seconds[row["client"]]
        down = 4 * min(elapsed_s / TRANSFER_S, 1)
        up = 4 * min(max(elapsed_s - lasts_s + TRANSFER_S, 0) / TRANSFER_S, 1)
        assert (row["download_bytes"], row["upload_bytes"]) == pytest.approx((down, up), abs=1e-9)
        assert (row["outcome"] == COMPLETED) <= (elapsed_s == pytest.approx(lasts_s))
    for name in ("download_bytes", "upload_bytes"):
        assert getattr(log.records[-1], name) == pytest.approx(sum(row[name] for row in visits))


class OneByOne(InFlight):
    """Hands over one end of a visit at a time."""

    def first(self, until_s: float, most: int | None = None) -> VisitEnds:
        return super().first(until_s, 1)


def emulation_of(example: Drawn, log: MemoryLog) -> Emulation:
    return Emulation(example.population(Reference()).coordinator(), log)


@settings(max_examples=10)
@given(data=st.data())
def test_a_buffered_run_is_the_same_if_it_is_played_one_end_at_a_time(data: st.DataObject) -> None:
    example, whole, single = drawn(data), MemoryLog(), MemoryLog()
    emulation_of(example, whole).run()
    emulation = emulation_of(example, single)
    emulation.in_flight = OneByOne()
    emulation.run()
    assert logged(single) == logged(whole)


@settings(max_examples=8)
@given(data=st.data(), stored=st.sets(st.integers(0, 40), min_size=1, max_size=2))
def test_a_buffered_run_is_the_same_if_it_is_stored_and_resumed(
    data: st.DataObject, stored: set[int]
) -> None:
    example, whole, states = drawn(data), MemoryLog(), []
    first = emulation_of(example, whole)
    for number, _ in enumerate(first.steps()):
        if number in stored:
            states.append((len(whole.records), len(whole.visits), to_bytes(first.state())))
    for records, visits, content in states:
        rest = MemoryLog(whole.records[:records], whole.visits[:visits])
        again = emulation_of(example, rest)
        again.restore(from_bytes(content))
        assert to_bytes(again.state()) == content
        again.run()
        assert logged(rest) == logged(whole)
