"""Runs that are tracked while they are played."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.config import Experiment
from experiments.locating import locator
from experiments.running.plan import Plan, PlannedRun, Reached, plan_run
from experiments.running.runner import run_plan
from experiments.running.stop import Stop
from experiments.tracking import live
from experiments.tracking.base import Point, Tracker
from experiments.tracking.finished import track_finished
from tests.experiments.running.played import logs, play
from tests.experiments.small import Story, small
from tests.experiments.tracking.fakes import FakeTracker

Trackers = Callable[[Callable[[], Tracker]], None]


@pytest.fixture
def tracked_by(monkeypatch: pytest.MonkeyPatch) -> Trackers:
    """Replaces the trackers of all names by those that a function makes."""

    def replace(make: Callable[[], Tracker]) -> None:
        monkeypatch.setattr(live, "make_tracker", lambda name, root, *folders: make())

    return replace


def tracked(experiment: Experiment, out: Path, names: tuple[str, ...] = ("tensorboard",)) -> Plan:
    return Plan(**{**vars(plan_run(experiment, out, None, locator(None, None), fresh=False)), "track": names})


class StoppingStory(Story):
    """Requests a stop in round `number`."""

    def __init__(self, stop: Stop, number: int) -> None:
        super().__init__()
        self._stop, self._number = stop, number

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        if reached.rounds == self._number:
            self._stop.leave_word()


def test_the_log_of_a_tracked_run_is_that_of_one_that_is_not(tmp_path: Path, tracked_by: Trackers) -> None:
    trackers: list[FakeTracker] = []
    tracked_by(lambda: trackers.append(FakeTracker()) or trackers[-1])
    play(small(), tmp_path / "plain")
    run_plan(tracked(small(), tmp_path / "tracked"), Story())
    assert logs(tmp_path / "tracked") == logs(tmp_path / "plain")
    configuration = [(tmp_path / name / "experiment.toml").read_text() for name in ("plain", "tracked")]
    assert configuration[0] == configuration[1]
    assert [len(tracker.told) for tracker in trackers] == [6, 6]  # begun, four rounds, ended
    assert [tracker.told[0] for tracker in trackers] == ["global, seed 0", "fielding, seed 0"]


@pytest.mark.parametrize("method", ["begun", "round_done", "ended"])
def test_a_tracker_that_fails_stops_no_run(tmp_path: Path, tracked_by: Trackers, method: str) -> None:
    tracked_by(lambda: FakeTracker(method, ImportError("not here")))
    story = Story()
    plan = tracked(small(), tmp_path / "tracked", ("tensorboard", "mlflow"))
    run_plan(plan, story)
    assert all(plan.is_kept(run) for run in plan.runs())
    notes = sorted(str(entry[1]) for entry in story.told if entry[0] == "note")
    assert notes == [
        f"{arm}, seed 0 in {name} is no longer tracked: ImportError: not here"
        for arm in ("fielding", "global")
        for name in ("mlflow", "tensorboard")
    ]


def test_a_resumed_run_is_tracked_as_one_that_was_never_stopped(tmp_path: Path, tracked_by: Trackers) -> None:
    trackers: list[FakeTracker] = []
    tracked_by(lambda: trackers.append(FakeTracker()) or trackers[-1])
    experiment = small(arm=[{"name": "global"}])
    run_plan(tracked(experiment, tmp_path / "whole"), Story())
    stop = Stop()
    with pytest.raises(KeyboardInterrupt):
        run_plan(tracked(experiment, tmp_path / "resumed"), StoppingStory(stop, 2), stop)
    run_plan(tracked(experiment, tmp_path / "resumed"), Story())
    whole, stopped, resumed = (tracker.told for tracker in trackers)
    assert stopped == [*whole[:3], "stopped"]
    assert resumed == whole
    assert whole[-1] == "finished"


def test_a_finished_run_is_exported_as_it_was_tracked(tmp_path: Path, tracked_by: Trackers) -> None:
    class Points(FakeTracker):
        def round_done(self, point: Point) -> None:
            self.told.append(point)

    trackers: list[Points] = []

    def make() -> Points:
        trackers.append(Points())
        return trackers[-1]

    tracked_by(make)
    plan = tracked(small(), tmp_path / "tracked")
    run_plan(plan, Story())
    assert track_finished(plan.directory, "fake", make) == 2
    played = {tracker.told[0]: tracker.told for tracker in trackers[:2]}
    assert {tracker.told[0]: tracker.told for tracker in trackers[2:]} == played
