"""Runs that --until stops are reported up to there, and go on as if they had never stopped."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.config import Experiment
from experiments.results.reading.json_files import Until
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.medians import Bounds
from experiments.results.tables.summary import summarise_directory
from experiments.running.plan import PlannedRun, Reached, plan_run
from experiments.running.runner import run_plan
from tests.experiments.running.played import logs, play
from tests.experiments.small import Story, drifting, small
from tests.reliability.rows import row

LIFETIMES = ("adam-by-step", "buffered", "scaffold", "ditto", "apfl")
"""Rows whose clients remember until their data or their model change, or for the run; sync and buffered."""


class Killed(Story):
    """A story that ends the process, as kill -9 would, after five rounds."""

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        super().round_done(run, reached)
        if self.rounds == 5:
            raise SystemExit


def play_until(experiment: Experiment, out: Path, until: int | None, story: Story | None = None) -> Story:
    plan = plan_run(experiment, out, None, Path, fresh=False)
    run_plan(replace(plan, until=until), story := story or Story())
    return story


@pytest.mark.parametrize("name", LIFETIMES)
def test_a_run_that_stopped_twice_and_was_killed_has_the_bytes_of_one_that_did_not(
    name: str, tmp_path: Path
) -> None:
    experiment, out = row(name, round={"log_visits": True}), tmp_path / "out"
    play(experiment, tmp_path / "whole")
    directory, first = RunDirectory(out), experiment.round.evaluate_every
    for until in (first, first + 1):
        play_until(experiment, out, until)
        assert directory.until(name, 0) == Until(rounds=until, planned=experiment.round.rounds)
    with pytest.raises(SystemExit):
        play_until(experiment, out, None, Killed())
    assert len(directory.read_run(name, 0).records) == first + 1  # of those in the log
    assert directory.read_visits(name, 0)
    play_until(experiment, out, None)
    assert logs(out) == logs(tmp_path / "whole")
    files = [
        RunDirectory(tmp_path / path).run_file(name, 0, "visits.parquet").read_bytes()
        for path in ("out", "whole")
    ]
    assert files[0] == files[1]


def test_a_run_is_reported_where_it_was_stored_and_not_if_its_log_was_cut_back_or_it_failed(
    tmp_path: Path,
) -> None:
    experiment, directory = small(checkpoint={"every_rounds": 1}, round={"rounds": 9}), RunDirectory(tmp_path)
    with pytest.raises(SystemExit):
        play_until(experiment, tmp_path, None, Killed())
    play_until(experiment, tmp_path, 2)
    reached = [directory.until(arm, 0) for arm in ("global", "fielding")]
    assert reached == [Until(rounds=4, planned=9), Until(rounds=2, planned=9)]
    assert [told[0] for told in play_until(experiment, tmp_path, 2).told] == ["skipped", "skipped"]
    directory.checkpoints("global", 0).files()[0].write_bytes(b"")
    with pytest.raises(SystemExit):
        play_until(experiment, tmp_path, None, Killed())
    assert directory.reported_pairs() == [("fielding", 0)]
    directory.mark_failed("fielding", 0, "diverged")
    assert directory.reported_pairs() == []


def test_a_run_that_ends_by_seconds_before_the_round_is_done_and_a_note_says_so(tmp_path: Path) -> None:
    experiment = small(round={"rounds": 2, "seconds_per_round": 60}, arm=[{"name": "a"}])
    story = play_until(experiment, tmp_path, 10_000)
    rounds = len(RunDirectory(tmp_path).read_run("a", 0).records)
    assert ("note", f"a, seed 0 ended after {rounds} rounds, before --until 10000") in story.told
    play_until(experiment, tmp_path / "stopped", 1)
    assert RunDirectory(tmp_path / "stopped").until("a", 0) == Until(rounds=1, planned=None)


def test_figures_of_whole_runs_are_of_finished_ones_alone_and_times_are_censored_where_the_first_one_stopped(
    tmp_path: Path,
) -> None:
    experiment = drifting(seeds=[0], report={"targets": [1.0]})
    play_until(experiment, tmp_path, 2)
    summary = summarise_directory(RunDirectory(tmp_path), RunDirectory(tmp_path).reported_runs())
    assert summary.finished.arms == {}
    (held_from,) = summary.targets[0].rows[0]["held_from_s"].per_seed
    assert held_from == Bounds(summary.horizon.horizon_s, math.inf)
    assert summary.warnings()[0] == "until 2 of 4 rounds, where --until stopped runs of oblivious; oracle"
