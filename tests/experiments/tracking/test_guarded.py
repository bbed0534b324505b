"""A tracker that fails or hangs ends its tracking, with one note, and nothing else."""

from __future__ import annotations

import time
from threading import Event

import pytest

from experiments.tracking.base import Point
from experiments.tracking.guarded import GuardedTracker
from tests.experiments.tracking.fakes import FACTS, FakeTracker

POINTS = [Point(number, 10.0 * number, {"accuracy": 0.5}) for number in range(4)]


def track(tracker: FakeTracker, patience_s: float = 20.0) -> list[str]:
    """Track a run of four rounds; the notes."""
    notes: list[str] = []
    guarded = GuardedTracker("global, seed 0 in fake", tracker, notes.append, patience_s)
    guarded.begun(FACTS)
    guarded.rounds_done(POINTS[:2])
    for point in POINTS[2:]:
        guarded.round_done(point)
    guarded.ended("finished", {})
    return notes


def test_a_tracker_is_told_the_whole_run_in_order() -> None:
    tracker = FakeTracker()
    assert track(tracker) == []
    assert tracker.told == ["global, seed 0", (0, 0.0), (1, 10.0), (2, 20.0), (3, 30.0), "finished"]


@pytest.mark.parametrize("method", ["begun", "round_done", "ended"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SystemExit(1), ValueError("a\nb")])
def test_a_failure_is_noted_once_on_one_line(method: str, error: BaseException) -> None:
    tracker = FakeTracker(method, error)
    (note,) = track(tracker)
    said = " ".join(str(error).split())
    assert note == f"global, seed 0 in fake is no longer tracked: {type(error).__name__}: {said}"
    assert "finished" not in tracker.told


@pytest.mark.parametrize("method", ["begun", "round_done", "ended"])
def test_a_tracker_that_hangs_is_given_up_at_the_end_of_the_run(method: str) -> None:
    release, start_s = Event(), time.monotonic()
    (note,) = track(FakeTracker(method, release=release), patience_s=0.05)
    assert time.monotonic() - start_s < 10.0
    assert note in (
        "global, seed 0 in fake is no longer tracked: it did not end within 0.05 s",
        "global, seed 0 in fake is no longer tracked: it has not responded for 0.05 s",
    )
    release.set()


def test_a_tracker_that_hangs_is_dropped_in_a_later_round() -> None:
    now_s, begins, release = [0.0], Event(), Event()

    class Hanging(FakeTracker):
        def round_done(self, point: Point) -> None:
            begins.set()
            super().round_done(point)

    notes: list[str] = []
    tracker = Hanging("round_done", release=release)
    guarded = GuardedTracker("x", tracker, notes.append, patience_s=60.0, clock=lambda: now_s[0])
    guarded.begun(FACTS)
    guarded.round_done(POINTS[0])
    assert begins.wait(20.0)
    now_s[0] = 60.0
    guarded.round_done(POINTS[1])
    assert notes == []
    now_s[0] = 60.1
    guarded.round_done(POINTS[2])
    guarded.round_done(POINTS[3])
    guarded.ended("finished", {})  # does not wait
    assert notes == ["x is no longer tracked: it has not responded for 60 s"]
    release.set()
