from __future__ import annotations

import time

import numpy as np
import pytest

from coordinator.clusterers.single import Single
from executor.ranks import Spent
from experiments.stopwatch import Stopwatch, Usage, own_spent
from tests.fakes import NOTHING, FakeExecutor, Population


class Clock:
    """A clock that a test moves by setting `now_s`."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("experiments.stopwatch.time.perf_counter", clock)
    return clock


def test_seconds_add_up_by_activity(clock: Clock) -> None:
    stopwatch = Stopwatch()
    for activity, seconds in (("a", 1.0), ("b", 2.0), ("a", 4.0)):
        with stopwatch.measure(activity):
            clock.now_s += seconds
        clock.now_s += 10.0  # not measured
    assert stopwatch.seconds == {"a": 5.0, "b": 2.0}


def test_a_nested_activity_counts_once(clock: Clock) -> None:
    stopwatch = Stopwatch()
    with stopwatch.measure("outer"):
        clock.now_s += 1.0
        with stopwatch.measure("inner"):
            clock.now_s += 2.0
            with stopwatch.measure("outer"):
                clock.now_s += 4.0
        clock.now_s += 8.0
    assert stopwatch.seconds == {"outer": 13.0, "inner": 2.0}


def test_the_time_of_a_failing_block_counts(clock: Clock) -> None:
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


def test_training_evaluation_every_score_and_every_moment_of_a_clusterer_count(clock: Clock) -> None:
    class SlowExecutor(FakeExecutor):
        def train(self, tasks, models, start, weights=None):
            clock.now_s += 1000.0
            return super().train(tasks, models, start, weights)

        def score(self, models, samples, metrics):
            clock.now_s += 100.0
            return super().score(models, samples, metrics)

        def evaluate(self, models, plan, samples):
            clock.now_s += 10_000.0
            return super().evaluate(models, plan, samples)

    class Slow(Single):
        def on_data(self, view):
            clock.now_s += 1.0
            return super().on_data(view)

        def on_participants(self, view):
            clock.now_s += 2.0
            view.score(view.participants, np.array([0]), "arrived")

        def on_updates(self, view):
            clock.now_s += 4.0

        def serve(self, view):
            clock.now_s += 8.0
            return super().serve(view)

    stopwatch = Stopwatch()
    Population(SlowExecutor([1.0]), clusterer=Slow(NOTHING), meter=stopwatch.measure).play()
    assert stopwatch.seconds == {
        "cluster_s": 15.0,
        "score_s": 100.0,
        "train_s": 1000.0,
        "evaluate_s": 10_000.0,
    }


def spend(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_a_small_run_has_spent_something_and_not_in_ticks() -> None:
    usage = Usage()
    spend(0.0015)
    assert 0.0015 <= usage.cpu_s < 0.01
    assert usage.peak_memory_bytes > 10_000_000


def test_what_the_other_ranks_spend_from_now_on_counts_and_all_that_they_hold() -> None:
    others = Spent(100.0, 5e12)
    usage = Usage(lambda: others)
    others = Spent(103.0, 6e12)
    assert 3.0 <= usage.cpu_s < 4.0
    assert 6e12 < usage.peak_memory_bytes < 6.5e12


def test_a_rank_reports_what_it_has_spent_since_it_began() -> None:
    before_s, _ = own_spent()
    spend(0.0015)
    after_s, held_bytes = own_spent()
    assert after_s >= before_s + 0.0015
    assert held_bytes > 10_000_000
