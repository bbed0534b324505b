"""A whole run logs the same bytes twice, in whichever order simultaneous events were inserted."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.pacing.sync import SyncSettings
from emulator.emulation import Emulation
from emulator.events import Event
from emulator.in_flight import VisitEnds
from emulator.ports import Coordinator, Reaction
from emulator.storage.runlog import RunLog, read_log
from tests.fakes import FakeAvailability, FakeExecutor, FakeStream, Population, a_fleet

CLIENTS, STEPS, LABELS = 24, 6, 5


def a_population(close: str = "lane") -> Population:
    """Drifting clients with two kinds of devices and shared sessions, so that many events coincide."""
    rng = np.random.default_rng(11)
    histograms = rng.dirichlet(np.full(LABELS, 0.3), size=(STEPS, CLIENTS))
    histograms[:, ::2] = histograms[0, ::2]  # every second client keeps what it has
    sessions = [(start, start + 44.0) for start in np.arange(0.0, 10_000.0, 60.0)]
    return Population(
        FakeExecutor(rng.uniform(size=CLIENTS), num_parameters=3),
        stream=FakeStream(histograms, rounds_per_step=2),
        availability=FakeAvailability(dict.fromkeys(range(0, CLIENTS, 3), sessions)),
        fleet=a_fleet(CLIENTS, seconds_per_sample=np.where(np.arange(CLIENTS) % 4, 1.0, 8.0)),
        clusterer=Fielding(FieldingSettings(max_clusters=4)),
        participants=8,
        over_commit=1.5,
        pacing=SyncSettings(close=close, deadline_s=36.0),
        local_steps=2,
        rounds=2 * STEPS,
        seed=5,
    )


class PermutedReactions:
    """A coordinator whose reactions list their events and visits in another order."""

    def __init__(self, inner: Coordinator, seed: int) -> None:
        self._inner = inner
        self._rng = np.random.default_rng(seed)

    @property
    def finished(self) -> bool:
        return self._inner.finished

    def start(self) -> Reaction:
        return self._permuted(self._inner.start())

    def handle(self, event: Event, now_s: float) -> Reaction:
        return self._permuted(self._inner.handle(event, now_s))

    def visits_ended(self, ends: VisitEnds) -> tuple[int, Reaction]:
        count, reaction = self._inner.visits_ended(ends)
        return count, self._permuted(reaction)

    def _permuted(self, reaction: Reaction) -> Reaction:
        order = self._rng.permutation(len(reaction.events))
        visits = reaction.visits.take(self._rng.permutation(len(reaction.visits)))
        return replace(reaction, events=[reaction.events[index] for index in order], visits=visits)


def logged(path: Path, population: Population, permutation: int | None = None) -> bytes:
    coordinator: Coordinator = population.coordinator()
    if permutation is not None:
        coordinator = PermutedReactions(coordinator, permutation)
    with RunLog(path, {"arm": "fielding", "seed": population.seed}) as log:
        Emulation(coordinator, log).run()
    return path.read_bytes()


def test_the_same_run_twice_writes_the_same_bytes(tmp_path):
    assert logged(tmp_path / "a.jsonl", a_population()) == logged(tmp_path / "b.jsonl", a_population())


def test_this_run_has_everything_in_it(tmp_path):
    """Otherwise the other tests of this file would show little."""
    logged(tmp_path / "log.jsonl", a_population())
    _, records = read_log(tmp_path / "log.jsonl")
    assert len(records) == 2 * STEPS
    assert any(record.dropped for record in records)
    assert any(record.abandoned for record in records)
    assert any(record.moved for record in records)
    assert any(record.reclustered for record in records)
    assert any(record.closed_s == record.dispatched_s + 36.0 for record in records)
    assert records[-1].control_bytes > CLIENTS * LABELS * 4


@pytest.mark.parametrize("close", ["lane", "pooled"])
@pytest.mark.parametrize("permutation", range(4))
def test_events_of_one_instant_may_be_inserted_in_any_order(tmp_path, close, permutation):
    plain = logged(tmp_path / "plain.jsonl", a_population(close))
    assert logged(tmp_path / "other.jsonl", a_population(close), permutation) == plain


@pytest.mark.parametrize("buffer", [1, 5])
@pytest.mark.parametrize("permutation", range(2))
def test_the_same_holds_of_visits_that_go_on_as_rounds_close(tmp_path, buffer, permutation):
    def buffered():
        population = a_population()
        population.pacing = lambda cohort: Buffered(BufferedSettings(buffer=buffer), cohort)
        return population

    plain = logged(tmp_path / "plain.jsonl", buffered())
    assert logged(tmp_path / "other.jsonl", buffered(), permutation) == plain
    _, records = read_log(tmp_path / "plain.jsonl")
    assert any(record.in_flight and (record.moved or record.reclustered) for record in records)
    assert any(record.largest_staleness > 1 for record in records)


def test_another_seed_is_another_run(tmp_path):
    population = a_population()
    population.seed = 6
    assert logged(tmp_path / "a.jsonl", a_population()) != logged(tmp_path / "b.jsonl", population)
