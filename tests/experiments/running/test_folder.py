from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import ConfigurationError, InputError, RunError
from experiments.build import World, build_world
from experiments.config import Experiment
from experiments.running import plan
from experiments.running.folder import check_members, plan_folder, run_folder
from experiments.running.members import load_folder, load_members, read_configuration
from experiments.running.plan import Plan
from experiments.running.sharing import sharing
from tests.experiments.small import Story, write_drifting, write_small


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two experiments that have one arm in common."""
    folder = tmp_path / "configs"
    write_drifting(folder, name="beta", seeds=[0])
    extra = [{"name": "oblivious"}, {"name": "window", "memory": {"kind": "held", "window": 1}}]
    write_drifting(folder, name="alpha", seeds=[0], arm=extra)
    return folder


def play(folder: Path, out: Path, arms: list[str] | None = None) -> tuple[Story, list[str]]:
    """Run the folder; the story of its progress, and the finished experiments in order."""
    story, finished = Story(), []

    def finish(plan: Plan) -> None:
        finished.append(plan.experiment.name)

    plans = plan_folder(load_folder(folder, arms=arms), out, fresh=False)
    with sharing(plans, finish, story.note) as when_ended:
        run_folder(plans, story, when_ended)
    return story, finished


def test_every_configuration_is_run_by_name_into_a_directory_of_its_own(folder: Path, tmp_path: Path) -> None:
    story, finished = play(folder, tmp_path / "out")
    assert finished == ["alpha", "beta"]
    assert story.told == [
        ("run", "oblivious", 0),
        ("run", "window", 0),
        ("run", "oracle", 0),  # beta's oblivious is the same run as alpha's
    ]
    done = sorted(str(path.parent.relative_to(tmp_path / "out")) for path in tmp_path.glob("out/*/*/*/DONE"))
    assert done == [
        "alpha/oblivious/seed-0",
        "alpha/window/seed-0",
        "beta/oblivious/seed-0",
        "beta/oracle/seed-0",
    ]


def test_finished_runs_are_kept(folder: Path, tmp_path: Path) -> None:
    play(folder, tmp_path / "out", arms=["oblivious"])
    story, _ = play(folder, tmp_path / "out")
    assert [told[:2] for told in story.told] == [
        ("skipped", "oblivious"),
        ("run", "window"),
        ("run", "oracle"),
    ]


def test_arms_that_only_some_configurations_have_are_run_where_they_are(folder: Path, tmp_path: Path) -> None:
    story, finished = play(folder, tmp_path / "out", arms=["oracle"])
    assert finished == ["beta"]
    assert story.told == [("run", "oracle", 0)]
    assert not (tmp_path / "out" / "alpha").exists()


def test_one_bad_configuration_is_reported_before_anything_is_touched(folder: Path, tmp_path: Path) -> None:
    write_drifting(folder, name="gamma", round={"participants": 9})  # of three clients
    with pytest.raises(ConfigurationError) as refused:
        play(folder, tmp_path / "out")
    assert str(refused.value) == (
        f"{folder / 'gamma.toml'}: round.participants = 9: more than the 3 clients of the trace"
    )
    assert not (tmp_path / "out").exists()


def test_arms_that_cannot_be_put_together_are_reported_before_anything_is_touched(
    folder: Path, tmp_path: Path
) -> None:
    write_drifting(folder, name="gamma", arm=[{"name": "oblivious", "schedules": ["adaptive_lr"] * 2}])
    with pytest.raises(ConfigurationError, match=r"gamma\.toml: arm 'oblivious': schedules .* both set"):
        play(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_directory_does_not_take_a_folder_of_experiments(folder: Path, tmp_path: Path) -> None:
    play(folder, tmp_path / "out")
    with pytest.raises(InputError, match="is the run directory of one experiment"):
        plan_folder(load_folder(folder), tmp_path / "out" / "alpha", fresh=False)


def test_an_experiment_that_fails_stops_no_other_and_is_named_at_the_end(
    folder: Path, tmp_path: Path
) -> None:
    diverging = {"learning_rate": 1e38}
    write_drifting(folder, name="aardvark", seeds=[0], training=diverging)
    story, finished = Story(), []

    def finish(plan: Plan) -> None:
        finished.append(plan.experiment.name)

    plans = plan_folder(load_folder(folder), tmp_path / "out", fresh=False)
    with pytest.raises(RunError, match=r"^1 of 3 experiments failed: aardvark$"):
        run_folder(plans, story, finish)
    assert finished == ["aardvark", "alpha", "beta"]
    assert [told[0] for told in story.told].count("run") == 2 + 2 + 1  # oblivious of alpha and beta is one
    # Each failure is reported once.
    assert [told[:2] for told in story.told if told[0] != "run"] == [
        ("failed", "oblivious"),
        ("failed", "oracle"),
    ]


def test_an_arm_that_its_trace_or_its_model_does_not_fit_is_reported_before_anything_is_touched(
    folder: Path, tmp_path: Path
) -> None:
    write_drifting(folder, name="gamma", arm=[{"name": "oblivious"}, {"name": "k", "clusterer": "kue"}])
    with pytest.raises(ConfigurationError) as refused:
        play(folder, tmp_path / "out")
    assert str(refused.value).startswith(
        f"{folder / 'gamma.toml'}: arm 'k': clusterer 'kue' gives each model"
    )
    assert not (tmp_path / "out").exists()
    play(folder, tmp_path / "out", arms=["oblivious"])  # those that are chosen can run
    assert (tmp_path / "out/gamma/oblivious/seed-0/DONE").exists()


def test_cells_of_one_world_are_checked_with_one_and_each_different_arm_is_built_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, built = [], []

    def draw(experiment: Experiment, *arguments: Any) -> World:
        drawn.append(experiment.name)
        return build_world(experiment, *arguments)

    def build(experiment: Experiment, arms: Sequence[str], world: World) -> None:
        built.extend((experiment.name, arm) for arm in arms)

    monkeypatch.setattr(plan, "build_world", draw)
    monkeypatch.setattr(plan, "check_arms", build)
    sweep = [
        "round.rounds=4,6",
        "arm.fielding.clusterer.trigger.threshold=0.1,0.25",
        "round.participants=2,3",
    ]
    configuration = read_configuration(write_small(tmp_path), sweep=[sweep[1], sweep[0], sweep[2]])
    members = load_members([configuration])
    checked = [member.experiment.name for member, _ in check_members(members, tmp_path)]
    assert sorted(checked) == sorted(member.experiment.name for member in members)
    assert drawn == [
        "small,threshold=0.1,participants=2,rounds=4",
        "small,threshold=0.1,participants=2,rounds=6",
    ]
    assert len(built) == 2 * 2 * 2 + 2 * 2  # fielding in each cell, global for each number of participants
    assert checked[:4] == [name for name in checked if name.endswith("rounds=4")]


def test_a_cell_is_checked_against_a_world_that_was_drawn_for_another(tmp_path: Path) -> None:
    configuration = read_configuration(write_small(tmp_path), sweep=["round.min_online=1,13"])
    with pytest.raises(
        ConfigurationError, match=r"\(small,min_online=13\): round.min_online = 13: more than the 12"
    ):
        list(check_members(load_members([configuration]), tmp_path))
