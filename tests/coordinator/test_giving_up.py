"""Runs are given up if nothing was ever absorbed: whose visits end, how many, and under which pacing.

A slot is a visit that is out at once; by hand a run may have 100 visits for each, and ends at the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from coordinator.coordinator import FRUITLESS_VISITS
from coordinator.pacing import CohortSize, Pacing
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.fixed import Fixed, FixedSettings
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.population import FaultSettings
from emulator.emulation import Emulation
from emulator.errors import RunError
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import INF, FakeAvailability, FakeExecutor, MemoryLog, Population, a_fleet

PACINGS: dict[str, Callable[[CohortSize], Pacing]] = {
    "sync": lambda cohort: Sync(SyncSettings(), cohort),
    "sync with a time-out": lambda cohort: Sync(SyncSettings(timeout_s=0.75), cohort),
    "fixed": lambda cohort: Fixed(FixedSettings(duration_s=1.0), cohort),
    "buffered": lambda cohort: Buffered(BufferedSettings(), cohort),
}

any_pacing = pytest.mark.parametrize("pacing", PACINGS.values(), ids=PACINGS)


def clients(number: int, pacing: Callable[[CohortSize], Pacing], **settings: Any) -> Population:
    """Clients whose visits take 0.75 s: a quarter each to download, to compute and to upload."""
    fleet = a_fleet(number, 0.25, 16.0, 16.0)
    return Population(FakeExecutor([1.0] * number), fleet=fleet, pacing=pacing, **settings)


def short_seconds(number: int, first: int = 0) -> FakeAvailability:
    """One client, online from the start of each of so many seconds for half of it, and after that always."""
    short = [(float(start), start + 0.5) for start in range(first, first + number)]
    return FakeAvailability({0: [(-INF, first - 0.25), *short, (float(first + number), INF)]})


@any_pacing
def test_a_run_is_given_up_before_the_visit_after_a_hundred_and_one_that_were_not_absorbed(pacing):
    assert FRUITLESS_VISITS == 100
    visits = clients(1, pacing, availability=short_seconds(100), rounds=200).play().coordinator.visits
    assert visits.dropped == 100
    assert visits.completed >= 100
    lost = "101 visits opened, of which 0 completed, 101 dropped, 0 abandoned and 0 out"
    with pytest.raises(
        RunError, match=f"no visit was absorbed since the run began \\({lost}\\): it is given up"
    ):
        clients(1, pacing, availability=short_seconds(101), rounds=200).play()


@any_pacing
def test_a_run_that_has_absorbed_one_visit_survives_any_night(pacing):
    population = clients(1, pacing, availability=short_seconds(500, first=1))
    population.rounds, population.seconds_per_round = 1, 505.0
    played = population.play()
    absorbed = [record.closed_s for record in played.records if record.completed]
    assert absorbed[0] <= 1.0
    assert absorbed[1] > 501.0
    assert played.coordinator.visits.dropped == 500


@pytest.mark.parametrize(
    ("pacing", "round_", "opened", "dropped"),
    [("sync", 101, 606, 606), ("fixed", 101, 606, 606), ("buffered", 0, 606, 601)],
)
def test_slots_are_the_visits_that_are_out_at_once(
    pacing: str, round_: int, opened: int, dropped: int
) -> None:
    """Four participants are six visits; a buffered pacing opens them one by one, so that five are out."""
    population = clients(8, PACINGS[pacing], participants=4, over_commit=1.5, rounds=200)
    population.faults = FaultSettings(crash=1.0)
    message = (
        f"round {round_}: no visit was absorbed.*{opened} visits opened.* 0 completed, {dropped} dropped"
    )
    with pytest.raises(RunError, match=message):
        population.play()


@pytest.mark.parametrize("limit", ["deadline_s", "timeout_s"])
def test_visits_that_are_abandoned_at_a_deadline_or_a_time_out_count_too(limit: str) -> None:
    population = clients(1, lambda cohort: Sync(SyncSettings(**{limit: 0.5}), cohort), rounds=200)
    with pytest.raises(RunError, match=r"0 dropped, 101 abandoned and 0 out\): it is given up; clients go"):
        population.play()


@any_pacing
def test_a_run_that_ends_before_that_is_played_to_its_end(pacing):
    population = clients(1, pacing, faults=FaultSettings(crash=1.0))
    population.rounds, population.seconds_per_round = 1, 20.0
    played = population.play()
    assert played.records[-1].closed_s == 20.0
    assert not any(record.completed for record in played.records)


@pytest.mark.slow
@any_pacing
@pytest.mark.parametrize("is_given_up", [True, False])
def test_a_run_that_was_stopped_and_resumed_is_given_up_at_the_same_visit_or_not_at_all(pacing, is_given_up):
    def emulation(log: MemoryLog) -> Emulation:
        online = short_seconds(101) if is_given_up else short_seconds(150, first=1)
        return Emulation(clients(1, pacing, availability=online, rounds=160).coordinator(), log)

    def end_of(run: Emulation, after_step: Callable[[], None] = lambda: None) -> str:
        try:
            for _ in run.steps():
                after_step()
        except RunError as error:
            return str(error)
        return "played to its end"

    whole = MemoryLog()
    first = emulation(whole)
    steps = count()
    states: list[tuple[int, bytes]] = []

    def keep_some() -> None:
        if next(steps) % 211 == 0:
            states.append((len(whole.records), to_bytes(first.state())))

    end = end_of(first, keep_some)
    assert ("101 dropped" in end) == is_given_up
    assert len(states) > 1
    for recorded, content in states:
        log = MemoryLog(whole.records[:recorded])
        resumed = emulation(log)
        resumed.restore(from_bytes(content))
        assert end_of(resumed) == end
        assert log.records == whole.records


def test_visits_that_wait_in_a_buffer_are_not_fruitless() -> None:
    population = clients(150, lambda cohort: Buffered(BufferedSettings(buffer=150, concurrency=1), cohort))
    population.rounds = 1
    [record] = population.play().records
    assert len(record.completed) == 150
