from __future__ import annotations

import pytest

from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.oracle import Oracle
from coordinator.clusterers.single import Single
from coordinator.federation.stored_parts import StoredParts
from emulator.errors import RunError
from experiments.stopwatch import Stopwatch, TimedClusterer, TimedExecutor
from tests.fakes import NOTHING, FakeExecutor


class Clock:
    """Moves only when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("experiments.stopwatch.time.perf_counter", clock)
    return clock


def test_seconds_add_up_by_what_they_were_spent_on(clock: Clock) -> None:
    stopwatch = Stopwatch()
    for what, seconds in (("a", 1.0), ("b", 2.0), ("a", 4.0)):
        with stopwatch.measure(what):
            clock.now_s += seconds
        clock.now_s += 10.0  # spent on nothing that is measured
    assert stopwatch.seconds == {"a": 5.0, "b": 2.0}


def test_what_is_measured_within_something_else_counts_once(clock: Clock) -> None:
    stopwatch = Stopwatch()
    with stopwatch.measure("outer"):
        clock.now_s += 1.0
        with stopwatch.measure("inner"):
            clock.now_s += 2.0
            with stopwatch.measure("outer"):
                clock.now_s += 4.0
        clock.now_s += 8.0
    assert stopwatch.seconds == {"outer": 13.0, "inner": 2.0}


def test_what_fails_was_time_too(clock: Clock) -> None:
    stopwatch = Stopwatch()

    def fail() -> None:
        with stopwatch.measure("outer"):
            clock.now_s += 1.0
            with stopwatch.measure("inner"):
                clock.now_s += 2.0
                raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    clock.now_s += 4.0
    assert stopwatch.seconds == {"outer": 1.0, "inner": 2.0}


def test_every_moment_of_a_clusterer_and_every_score_counts(clock: Clock) -> None:
    stopwatch = Stopwatch()

    class SlowExecutor(FakeExecutor):
        def score(self, models, samples, metrics):
            clock.now_s += 100.0

    executor = TimedExecutor(SlowExecutor([1.0]), stopwatch)

    class Slow(Single):
        def on_data(self, view):
            clock.now_s += 1.0

        def on_participants(self, view):
            clock.now_s += 2.0
            executor.score(None, None, None)

        def on_updates(self, view):
            clock.now_s += 4.0

        def serve(self, view):
            clock.now_s += 8.0

    clusterer = TimedClusterer(Slow(NOTHING), stopwatch)
    clusterer.on_data(None)
    clusterer.on_participants(None)
    clusterer.on_updates(None)
    clusterer.serve(None)
    assert stopwatch.seconds == {"cluster_s": 15.0, "score_s": 100.0}


def public_names(kind: type) -> set[str]:
    return {name for base in kind.__mro__[:-1] for name in vars(base) if not name.startswith("_")}


def test_a_measured_clusterer_leaves_no_answer_to_the_base_class() -> None:
    measured = TimedClusterer(Oracle(NOTHING), Stopwatch())
    assert public_names(Clusterer) <= {*vars(TimedClusterer), *vars(measured)}
    assert (measured.oracle, measured.name) == (True, "Oracle")


class Counting(Single):
    state_fields = ("_count",)

    def __init__(self) -> None:
        super().__init__(NOTHING)
        self.limit = 3
        self._count = 0

    def on_updates(self, view):
        self._count += 1


def test_a_measured_clusterer_is_stored_as_the_one_it_measures() -> None:
    inner, other = Counting(), Counting()
    stored = StoredParts({"clusterer": TimedClusterer(inner, Stopwatch())})
    inner.on_updates(None)
    state = stored.state()
    assert state == StoredParts({"clusterer": inner}).state()
    StoredParts({"clusterer": TimedClusterer(other, Stopwatch())}).restore(state)
    assert other._count == 1


def test_a_measured_clusterer_that_cannot_be_stored_is_named_as_before() -> None:
    inner = Counting()
    stored = StoredParts({"clusterer": TimedClusterer(inner, Stopwatch())})
    inner.limit = 4
    with pytest.raises(RunError, match="the clusterer cannot be stored: its attribute limit has changed"):
        stored.state()
    measured = TimedClusterer(Counting(), Stopwatch())
    with pytest.raises(ValueError, match="state of Counting:"):
        measured.restore({})
