"""A tune in this process, in a folder with one small configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from emulator.errors import ConfigurationError, InputError, RunError
from experiments.playing.command import RunCommand, Several
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.tables.summary import summarise_directory
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from experiments.tuning.command import Column, Tuned, read_columns, read_scores, tune
from experiments.tuning.halving import DIVERGED
from experiments.tuning.rows import Setting, names_of
from tests.experiments.running.played import play
from tests.experiments.small import Story
from tests.experiments.tuning.hand_made import write_folder


class Player:
    """Plays in this process; runs of arms whose names begin with one of `diverging` fail."""

    def __init__(self, out: Path, diverging: tuple[str, ...] = ()) -> None:
        self.out, self.diverging = out, diverging
        self.played: list[tuple[str, int]] = []

    def __call__(self, several: Several) -> None:
        failed = False
        for member in several.members:
            plan = plan_run(
                member.experiment, self.out / member.experiment.name, member.arms, member.locate, fresh=False
            )
            for run in plan.runs():
                if run.arm.startswith(self.diverging or "?"):
                    plan.directory.mark_failed(run.arm, run.seed, "diverged")
                    failed = True
            left = [arm for arm in plan.arms if not arm.startswith(self.diverging or "?")]
            self.played += [pair for pair in plan.pairs() if not plan.directory.is_done(*pair)]
            if left:
                run_plan(
                    plan_run(member.experiment, plan.directory.path, left, member.locate, fresh=False),
                    Story(),
                )
        if failed:
            raise RunError("some failed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    arms = [
        {"name": "fedavg", "baseline": True, "tune": {"training.local_steps": [1, 2, 3]}},
        {"name": "ifca", "clusterer": "ifca", "tune": {"clusterer.num_models": [2, 3]}},
    ]
    return write_folder(tmp_path / "mine", {"tune": {"learning_rate": [0.05, 0.2], "uses": {}}, "arm": arms})


def tuned_with(folder: Path, player: Player) -> Tuned:
    command = RunCommand(folder, seeds=[7, 8, 9], out=player.out, arguments=["driftscale", "tune", "mine"])
    columns, left_out = read_columns(command, folder)
    assert left_out == []
    [found] = tune(command, columns, player)
    return found


@pytest.mark.slow
def test_all_settings_are_played_on_the_first_seed_and_three_of_each_row_on_the_others(
    folder: Path, tmp_path: Path
) -> None:
    player = Player(tmp_path / "out")
    found = tuned_with(folder, player)
    by_seed = {seed: [arm for arm, of in player.played if of == seed] for seed in (7, 8, 9)}
    assert (len(by_seed[7]), len(by_seed[8]), len(by_seed[9])) == (6 + 4, 6, 6)
    assert by_seed[8] == by_seed[9]
    assert {*by_seed[8]} == {name for of in found.finals.values() for name in names_of(of)}
    rounds = {
        len(player_run.records)
        for arm, seed in player.played
        for player_run in [RunDirectory(tmp_path / "out" / "swap").read_run(arm, seed)]
    }
    assert rounds == {4}


@pytest.mark.slow
def test_a_finished_tune_plays_nothing_and_writes_the_same(folder: Path, tmp_path: Path) -> None:
    first = tuned_with(folder, Player(tmp_path / "out"))
    assert first.file is not None
    text = first.file.read_bytes()
    again = Player(tmp_path / "out")
    found = tuned_with(folder, again)
    assert (again.played, found.first, found.scores) == ([], first.first, first.scores)
    assert first.file.read_bytes() == text


@pytest.mark.slow
def test_a_tune_that_was_ended_plays_the_rest(folder: Path, tmp_path: Path) -> None:
    class Ended(Player):
        def __call__(self, several: Several) -> None:
            if several.members[0].experiment.seeds != (7,):
                raise KeyboardInterrupt
            super().__call__(several)

    with pytest.raises(KeyboardInterrupt):
        tuned_with(folder, Ended(tmp_path / "out"))
    assert not (folder / "chosen").exists()
    rest = Player(tmp_path / "out")
    tuned_with(folder, rest)
    assert {seed for _, seed in rest.played} == {8, 9}


@pytest.mark.slow
def test_what_diverges_is_worse_than_all_others_and_ends_nothing(folder: Path, tmp_path: Path) -> None:
    found = tuned_with(folder, Player(tmp_path / "out", ("fedavg-0.2",)))
    assert found.first["fedavg-0.2-1"] == [DIVERGED]
    assert [[*setting.values.values()] for setting in found.finals["fedavg"]] == [
        [0.05, 1],
        [0.05, 2],
        [0.05, 3],
    ]
    assert found.file is not None


@pytest.mark.slow
def test_a_row_of_which_all_diverge_is_not_written(folder: Path, tmp_path: Path) -> None:
    found = tuned_with(folder, Player(tmp_path / "out", ("ifca",)))
    assert found.chosen["ifca"] is None
    assert found.file is not None
    assert "ifca" not in found.file.read_text()


@pytest.mark.slow
def test_where_all_baselines_diverge_there_is_no_rival_and_nothing_is_written(
    folder: Path, tmp_path: Path
) -> None:
    found = tuned_with(folder, Player(tmp_path / "out", ("fedavg",)))
    assert (found.rival, found.file) == (None, None)
    assert not (folder / "chosen").exists()


def test_a_failure_that_leaves_runs_unfinished_ends_the_tune(folder: Path, tmp_path: Path) -> None:
    def fail(_: Several) -> None:
        raise RunError("cannot be played")

    command = RunCommand(folder, seeds=[7, 8], out=tmp_path / "out")
    with pytest.raises(RunError, match="cannot be played"):
        tune(command, read_columns(command, folder)[0], fail)


@pytest.mark.slow
def test_runs_of_another_configuration_are_not_taken_for_those_of_this_one(
    folder: Path, tmp_path: Path
) -> None:
    tuned_with(folder, Player(tmp_path / "out"))
    other = write_folder(tmp_path / "other" / "mine", swap={"round": {"rounds": 2, "participants": 3}})
    (other / "parts" / "arms.toml").write_text((folder / "parts" / "arms.toml").read_text())
    with pytest.raises(ConfigurationError, match="holds runs of another configuration"):
        tuned_with(other, Player(tmp_path / "out"))


# -- scores --------------------------------------------------------------------------------------------------


@pytest.fixture
def column(folder: Path, tmp_path: Path) -> Column:
    """The column of the folder, whose runs on seeds 7 and 8 of the first setting of each row are finished."""
    command = RunCommand(folder, seeds=[7, 8], out=tmp_path / "out")
    [column], _ = read_columns(command, folder)
    play(column.member.experiment, column.directory.path, arms=names_of(first_settings(column)))
    return column


def first_settings(column: Column) -> list[Setting]:
    return [row.settings[0] for row in column.rows]


def test_a_score_is_the_mean_accuracy_of_the_summary(column: Column) -> None:
    runs = [column.directory.read_run(*pair) for pair in column.directory.reported_pairs()]
    summary = summarise_directory(column.directory, runs)
    assert read_scores(column, first_settings(column), [7, 8]) == {
        row.arm: row["mean_accuracy"].per_seed for row in summary.rows
    }


def test_of_clients_with_parameters_of_their_own_it_is_the_mean_personal_accuracy(tmp_path: Path) -> None:
    ditto = {"name": "ditto", "solver": ["ditto", "sgd"], "baseline": True, "tune": {"solver.0.pull": [1]}}
    fedavg = {"name": "fedavg", "tune": {"training.local_steps": [1]}}
    own = {"tune": {"learning_rate": [0.05], "uses": {}}, "arm": [ditto, fedavg]}
    folder = write_folder(tmp_path / "mine", own)
    [column], _ = read_columns(RunCommand(folder, seeds=[7, 8], out=tmp_path / "out"), folder)
    play(column.member.experiment, column.directory.path)
    runs = [column.directory.read_run(*pair) for pair in column.directory.reported_pairs()]
    rows = {row.arm: row for row in summarise_directory(column.directory, runs).rows}
    scores = read_scores(column, first_settings(column), [7, 8])
    assert scores == {arm: row["mean_personal_accuracy"].per_seed for arm, row in rows.items()}
    assert scores["ditto-0.05-1"] != rows["ditto-0.05-1"]["mean_accuracy"].per_seed


def test_a_run_that_failed_is_worse_than_all_and_sets_no_horizon(column: Column) -> None:
    fedavg, ifca = first_settings(column)
    alone = read_scores(column, [fedavg], [7])
    [arm] = names_of([ifca])
    column.directory.run_file(arm, 7, "DONE").unlink()
    column.directory.mark_failed(arm, 7, "diverged")
    assert read_scores(column, [fedavg, ifca], [7]) == {**alone, arm: [DIVERGED]}
    assert read_scores(column, [ifca], [7]) == {arm: [DIVERGED]}


def test_a_run_that_is_not_finished_is_no_run_that_failed(column: Column) -> None:
    with pytest.raises(InputError, match=r"arm 'fedavg-0\.05-1', seed 9 is not finished"):
        read_scores(column, first_settings(column), [7, 9])


def test_a_horizon_before_any_evaluation_leaves_nothing_to_choose_by(column: Column) -> None:
    member = column.member
    report = member.experiment.report.model_copy(update={"horizon_s": 0.001})
    early = replace(member, experiment=member.experiment.model_copy(update={"report": report}))
    with pytest.raises(RunError, match=r"no evaluation before the horizon \(0\.001 s\)"):
        read_scores(replace(column, member=early), first_settings(column), [7, 8])
