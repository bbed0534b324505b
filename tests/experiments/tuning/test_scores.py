from __future__ import annotations

from pathlib import Path

import pytest

from emulator.errors import InputError, RunError
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.tables.summary import summarise_directory
from experiments.tuning.scores import read_scores
from tests.experiments.running.played import play
from tests.experiments.small import small


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    play(small(seeds=[3, 4]), tmp_path / "run")
    return RunDirectory(tmp_path / "run")


def test_a_score_is_the_mean_accuracy_of_the_summary(directory: RunDirectory) -> None:
    runs = [directory.read_run(*pair) for pair in directory.reported_pairs()]
    summary = summarise_directory(directory, runs)
    assert read_scores(directory, ["global", "fielding"], [3, 4], None) == {
        row.arm: dict(zip(row.seed_ids, row["mean_accuracy"].per_seed, strict=True)) for row in summary.rows
    }


def test_a_run_that_failed_has_no_score_and_sets_no_horizon(directory: RunDirectory) -> None:
    alone = read_scores(directory, ["global"], [3], None)
    directory.run_file("fielding", 3, "DONE").unlink()
    directory.mark_failed("fielding", 3, "diverged")
    assert read_scores(directory, ["global", "fielding"], [3], None) == {**alone, "fielding": {3: None}}
    assert read_scores(directory, ["fielding"], [3], None) == {"fielding": {3: None}}


def test_a_run_that_is_not_finished_is_no_run_that_failed(directory: RunDirectory) -> None:
    with pytest.raises(InputError, match="arm 'global', seed 5 is not finished"):
        read_scores(directory, ["global"], [3, 5], None)


def test_a_horizon_before_any_evaluation_leaves_nothing_to_choose_by(directory: RunDirectory) -> None:
    with pytest.raises(RunError, match=r"no evaluation before the horizon \(0\.001 s\)"):
        read_scores(directory, ["global"], [3], 0.001)
