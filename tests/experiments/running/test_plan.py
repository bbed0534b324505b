from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import ConfigurationError, InputError, RunError
from experiments.config import Experiment
from experiments.locating import locator
from experiments.results.reading.recorded import MOST_EXPERIMENT_BYTES, MOST_RUNS
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.leftovers import clear
from experiments.running.locking import seed_locked
from experiments.running.plan import check, plan_run
from experiments.running.runner import run_plan
from tests.experiments.running.played import FINISHED, logs, play, stamps
from tests.experiments.small import DEVICES, Story, small

# -- another configuration --------------------------------------------------------------------------------


def test_another_configuration_in_the_same_directory_is_refused_and_says_what_differs(tmp_path: Path) -> None:
    out = tmp_path / "run"
    play(small(), out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for changes, difference in (
        ({"round": {"rounds": 5}}, "round.rounds was 4, is 5"),
        ({"trace": {"noise": 0.5}}, "trace.noise was 0.0, is 0.5"),
        ({"parts": {"solver": [{"kind": "sgd", "momentum": 0.5}]}}, "arm.global.solver was"),
        ({"name": "other"}, "name was 'small', is 'other'"),
        ({"executor": {"strategy": "loop"}}, "executor.strategy was 'auto', is 'loop'"),
    ):
        with pytest.raises(ConfigurationError) as refused:
            play(small(**changes), out)
        assert difference in str(refused.value)
        assert "--fresh" in str(refused.value)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_more_threads_keep_the_finished_runs_and_write_the_same_logs(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    play(small(seeds=[0, 1]), one)
    play(small(seeds=[0]), two)
    play(small(seeds=[0, 1], executor={"threads": 2}), two)
    assert logs(two) == logs(one)


def test_how_it_is_reported_may_change(tmp_path: Path) -> None:
    out = tmp_path / "run"
    play(small(), out)
    play(small(report={"window": 2}), out)
    assert RunDirectory(out).experiment()["report"] == {"window": 2, "targets": []}


def test_what_was_chosen_for_arms_that_a_command_leaves_out_is_still_recorded(tmp_path: Path) -> None:
    arms = [{"name": name} for name in ("a", "a+x", "b")]
    chosen = {"seeds": [7], "rival": "a", "best": {"a": "a+x", "b": "b"}}
    play(small(arm=arms, atlas=chosen), tmp_path)
    play(small(arm=arms[:2], atlas={"seeds": [7], "rival": "a+x", "best": {"a": "a"}}), tmp_path)
    recorded = RunDirectory(tmp_path).experiment()["atlas"]
    assert recorded == {"seeds": [7], "rival": "a+x", "best": {"a": "a", "b": "b"}}
    play(small(arm=arms[:1]), tmp_path)
    assert RunDirectory(tmp_path).experiment()["atlas"] == recorded


def test_runs_that_workers_are_to_play_are_checked_before_the_directory_is_made(tmp_path: Path) -> None:
    out, misfit = tmp_path / "run", small(round={"participants": 99})

    def plan(experiment: Experiment) -> None:
        plan_run(experiment, out, None, locator(None, None), fresh=False, is_checked_first=True)

    with pytest.raises(ConfigurationError, match=r"round\.participants = 99: more than the 12 clients"):
        plan(misfit)
    assert not out.exists()
    plan(small())
    plan(misfit)  # no longer the first runs: the workers find it
    assert "participants = 99" in RunDirectory(out).experiment_path.read_text()


def test_a_configuration_that_never_finished_a_run_binds_nobody(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(ConfigurationError, match=r"round\.participants = 99"):
        play(small(round={"participants": 99}), out)
    play(small(), out)
    assert len(logs(out)) == 2


def test_a_run_at_work_binds_before_it_has_stored_anything(tmp_path: Path) -> None:
    """A worker of a killed command may finish it, and what it stores then is of the configuration it has."""
    first = plan_run(small(), tmp_path, None, locator(None, None), fresh=False)
    with (
        seed_locked(first.directory, "fielding", 0),
        pytest.raises(ConfigurationError, match=r"round\.rounds was 4, is 5"),
    ):
        play(small(round={"rounds": 5}), tmp_path)
    assert first.directory.experiment()["round"]["rounds"] == 4
    play(small(round={"rounds": 5}), tmp_path)


def test_a_table_that_changed_since_its_runs_finished_is_refused(tmp_path: Path) -> None:
    experiment = small(devices={"profile": "profile.csv"})
    (tmp_path / "profile.csv").write_text(DEVICES)
    play(experiment, tmp_path / "out", tmp_path, arms=["global"])
    (tmp_path / "profile.csv").write_text(DEVICES.replace("a,0.01,", "a,0.03,"))
    with pytest.raises(
        InputError, match=r"profile\.csv: has changed since the runs in this directory were begun"
    ):
        play(experiment, tmp_path / "out", tmp_path)
    (tmp_path / "profile.csv").unlink()
    with pytest.raises(InputError, match=r"^profile\.csv: not found"):
        play(experiment, tmp_path / "out", tmp_path)
    assert RunDirectory(tmp_path / "out").is_done("global", 0)


def test_a_failed_arm_is_mended_beside_a_finished_one_which_still_binds(tmp_path: Path) -> None:
    def experiment(weight_decay: float, steps: int = 2) -> Experiment:
        mended = {"name": "bad", "solver": [{"kind": "sgd", "weight_decay": weight_decay}]}
        return small(arm=[{"name": "global", "training": {"local_steps": steps}}, mended])

    with pytest.raises(RunError, match="1 of 2 runs failed"):
        play(experiment(1e38), tmp_path / "out")
    assert play(experiment(0.0), tmp_path / "out").told == [("skipped", "global", 0), ("run", "bad", 0)]
    assert RunDirectory(tmp_path / "out").failure("bad", 0) is None
    for other in (experiment(0.5), experiment(0.0, steps=5)):
        with pytest.raises(ConfigurationError, match=r"arm\..* was"):
            play(other, tmp_path / "out")


def test_finished_runs_of_an_unknown_configuration_are_not_adopted(tmp_path: Path) -> None:
    play(small(), tmp_path / "out")
    RunDirectory(tmp_path / "out").experiment_path.unlink()
    with pytest.raises(InputError, match=r"no experiment\.toml with their configuration"):
        play(small(), tmp_path / "out")


def test_checkpoints_of_an_unknown_configuration_are_not_adopted(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "out")
    directory.start("global", 0)
    directory.checkpoints("global", 0).write(3, {"round": 3})
    with pytest.raises(InputError, match=r"no experiment\.toml with their configuration"):
        play(small(), tmp_path / "out")
    assert len(directory.checkpoints("global", 0).files()) == 1


# -- --fresh and folders ----------------------------------------------------------------------------------


def test_fresh_runs_everything_again_and_may_change_the_configuration(tmp_path: Path) -> None:
    out = tmp_path / "run"
    play(small(), out)
    story = play(small(round={"rounds": 5}, arm=[{"name": "global"}]), out, fresh=True)
    assert story.told == [("run", "global", 0)]
    assert story.rounds == 5
    assert not (out / "fielding").exists()


def test_fresh_deletes_only_what_a_run_wrote(tmp_path: Path) -> None:
    out = tmp_path / "run"
    play(small(), out)
    (out / "notes.md").write_text("precious")
    play(small(), out, fresh=True)
    assert (out / "notes.md").read_text() == "precious"


def test_fresh_runs_again_in_the_present_folder_and_in_one_behind_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    monkeypatch.chdir(tmp_path / "run")
    for out in (Path(), tmp_path / "link"):
        for fresh in (False, True):
            story = play(small(arm=[{"name": "global"}]), out, fresh=fresh)
        assert story.told == [("run", "global", 0)]
        assert (tmp_path / "run" / "global").is_dir()


def test_fresh_refuses_runs_of_an_unknown_configuration(tmp_path: Path) -> None:
    play(small(), tmp_path)
    (tmp_path / "experiment.toml").unlink()
    before = logs(tmp_path)
    with pytest.raises(InputError, match="not a run directory"):
        play(small(), tmp_path, fresh=True)
    assert logs(tmp_path) == before


@pytest.mark.parametrize("left", [[], ["notes.md"], [".lock", ".experiment.toml.999999999"]])
def test_fresh_runs_in_a_folder_without_runs_whatever_else_is_in_it(left: list[str], tmp_path: Path) -> None:
    """As one killed between the deletion of the old runs and the first file of the new ones leaves it."""
    out = tmp_path / "run"
    out.mkdir()
    for name in left:
        (out / name).write_text("")
    story = play(small(), out, fresh=True)
    assert ("run", "global", 0) in story.told
    assert (out / "notes.md").exists() == ("notes.md" in left)


class Killed(BaseException):
    """The process is killed: not even clean-up code runs."""


@pytest.mark.parametrize("deletions", range(1, 8))
def test_fresh_killed_while_it_deletes_leaves_no_run_that_says_done_and_is_not_whole(
    deletions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    play(small(), out)
    whole, unlink, left = logs(out), os.unlink, deletions

    def dying(*arguments: Any, **named: Any) -> None:
        nonlocal left
        if left == 0:
            raise Killed
        left -= not str(arguments[0]).endswith(".lock")
        unlink(*arguments, **named)

    with monkeypatch.context() as dead:
        dead.setattr(os, "unlink", dying)
        with pytest.raises(Killed):
            clear(RunDirectory(out))
    for done in out.glob("*/seed-*/DONE"):
        names = {path.name for path in done.parent.iterdir()}
        assert names == FINISHED
    plan = plan_run(small(), out, None, locator(None, None), fresh=False)
    assert len(plan.earlier()) in (0, 1)
    run_plan(plan, Story())
    assert logs(out) == whole


def test_fresh_deletes_nothing_when_the_new_run_cannot_be_built(tmp_path: Path) -> None:
    out = tmp_path / "run"
    play(small(), out)
    before = logs(out)
    for changes in ({"round": {"participants": 99}}, {"arm": [{"name": "a", "solver": ["fedprox"]}]}):
        with pytest.raises(InputError):
            play(small(**changes), out, fresh=True)
    assert logs(out) == before


def test_fresh_is_refused_while_another_process_is_at_work_on_a_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    play(small(), out)
    before = stamps(out)
    with (
        seed_locked(RunDirectory(out), "fielding", 0),
        pytest.raises(InputError, match=r"run is not deleted: fielding, seed 0: another call"),
    ):
        play(small(), out, fresh=True)
    assert stamps(out) == before
    assert play(small(), out, fresh=True).told == [("run", "global", 0), ("run", "fielding", 0)]


def test_a_file_in_the_place_of_the_run_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    for fresh in (False, True):
        with pytest.raises(InputError, match="is a file; a run directory is a folder"):
            play(small(), tmp_path / "run", fresh=fresh)


# -- check ------------------------------------------------------------------------------------------------


def test_a_check_builds_every_arm_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built = check(small(), locator(None, None), scratch=tmp_path / "not" / "there")
    assert built.trace.num_clients == 12
    refused = small(arm=[{"name": "a"}, {"name": "b", "solver": ["fedprox"]}])
    with pytest.raises(ConfigurationError, match="the last rule, and no other, must be an optimiser"):
        check(refused, locator(None, None), scratch=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_arm_that_its_trace_does_not_fit_is_refused_before_anything_trains(tmp_path: Path) -> None:
    arms = [{"name": "global"}, {"name": "all-knowing", "clusterer": "oracle"}]
    rule = r"^x\.toml: arm 'all-knowing': clusterer 'oracle' follows the true concepts"
    with pytest.raises(ConfigurationError, match=rule):
        check(small(arm=arms), locator(None, None), file="x.toml", scratch=tmp_path)
    plan = plan_run(small(arm=arms), tmp_path / "out", None, locator(None, None), fresh=False, file="x.toml")
    story = Story()
    with pytest.raises(ConfigurationError, match=rule):
        run_plan(plan, story)
    assert story.told == []
    built = check(small(arm=arms), locator(None, None), ["global"], scratch=tmp_path)
    assert built.trace.num_clients == 12


# -- configurations can be read back ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"arm": [{"name": f"arm-{number}"} for number in range(1500)], "seeds": [0, 1, 2, 3, 4]},
        {"arm": [{"name": "only"}], "seeds": list(range(2**32 - MOST_RUNS, 2**32))},
    ],
    ids=["1500 arms", "the most seeds"],
)
def test_the_largest_experiments_are_read_back_from_their_run_directory(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    plan = plan_run(small(**changes), tmp_path / "out", None, locator(None, None), fresh=False)
    assert plan.directory.experiment() == plan.experiment.resolved()
    assert plan.directory.experiment_path.stat().st_size < MOST_EXPERIMENT_BYTES / 2
    with pytest.raises(ConfigurationError, match=r"32769 seeds: an experiment has at most 32768 runs"):
        small(arm=[{"name": "only"}], seeds=list(range(MOST_RUNS + 1)))


def test_a_configuration_that_could_not_be_read_back_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.config.MOST_EXPERIMENT_BYTES", 2000)
    refused = r"for each of 2 arms, the configuration has [\d,]+ bytes, and experiment.toml at most 2,000"
    with pytest.raises(ConfigurationError, match=refused):
        plan_run(small(), tmp_path / "out", None, locator(None, None), fresh=False)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigurationError, match=refused):
        check(small(), locator(None, None), scratch=tmp_path)


def test_seeds_that_are_added_up_to_more_runs_than_can_be_read_back_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(small(seeds=[0]), tmp_path / "out")
    before = (tmp_path / "out/experiment.toml").read_bytes()
    monkeypatch.setattr("experiments.results.reading.recorded.MOST_RUNS", 4)
    play(small(seeds=[1]), tmp_path / "out")
    with pytest.raises(ConfigurationError, match=r"2 arms x 4 seeds: an experiment has at most 4 runs"):
        play(small(seeds=[2, 3]), tmp_path / "out")
    assert RunDirectory(tmp_path / "out").seeds() == [0, 1]
    assert (tmp_path / "out/experiment.toml").read_bytes() != before
