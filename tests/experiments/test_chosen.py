"""`[chosen]`: refuses reported seeds, and an edge of a grid without a word; and no run reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from emulator.errors import ConfigurationError
from emulator.plugins import FIRST_LOOK
from emulator.storage.bounded import read_toml
from experiments.config import Choice, Experiment, parse_experiment
from experiments.extending import CHOSEN
from experiments.reading import SWEEP, load_experiment, read_table
from experiments.running.members import load_members, read_configuration
from experiments.shipped import shipped_file, shipped_files
from tests.experiments.running.played import logs, play
from tests.experiments.running.test_until import play_until
from tests.experiments.small import small, small_table, write_small

RATE = "training.learning_rate"
SOUND: dict[str, Any] = {"seeds": [100, 101], "grid": [0.01, 0.05, 0.25], "by": "mean accuracy of global"}
"""How the rate of the small configuration, which is the default of 0.05, could have been chosen."""


def chosen(key: str = RATE, /, **changes: Any) -> dict[str, Any]:
    return {key: SOUND | changes}


def refusal(key: str = RATE, /, **changes: Any) -> str:
    """The error for the small configuration with this `[chosen]`, which is one line."""
    with pytest.raises(ConfigurationError) as refused:
        small(chosen=chosen(key, **changes))
    assert "\n" not in str(refused.value)
    return str(refused.value)


# -- shipped configurations ----------------------------------------------------------------------------------


def shipped(name: str) -> tuple[Experiment, set[int]]:
    """A shipped configuration as it stands, and the seeds on which those that it extends were chosen."""
    own = read_toml(shipped_files()[name])
    table = read_table(shipped_files()[name])
    table.pop(SWEEP, None)
    return parse_experiment(table, name), {
        seed
        for inherited in extended_by(own)
        for choice in inherited.get(CHOSEN, {}).values()
        for seed in choice["seeds"]
    }


def extended_by(own: dict[str, Any]) -> list[dict[str, Any]]:
    """The content of the shipped files that one extends, and of those that they extend."""
    names = own.get("extends", [])
    paths = [shipped_file(name) for name in ([names] if isinstance(names, str) else names)]
    tables = [read_toml(path) for path in paths if path is not None]
    assert len(tables) == len(paths)
    return [*tables, *(further for table in tables for further in extended_by(table))]


@pytest.mark.parametrize("name", shipped_files())
def test_no_shipped_configuration_reports_a_seed_on_which_it_or_what_it_extends_was_chosen(name: str) -> None:
    experiment, inherited = shipped(name)
    own = {seed for choice in experiment.chosen.values() for seed in choice.seeds}
    assert {*experiment.seeds} & (own | inherited) == set()


def test_the_seeds_of_what_is_extended_are_looked_at_too() -> None:
    experiment, inherited = shipped("flash/synthetic-pair")
    assert not experiment.chosen
    assert inherited == {100}


# -- what is refused -----------------------------------------------------------------------------------------


def test_a_sound_choice_is_read_also_of_an_arm_of_parts_and_of_values_without_an_order() -> None:
    whole = {
        **chosen(),
        **chosen("arm.fielding.clusterer.max_clusters", grid=[2, 3, 4]),
        **chosen("arm.fielding.clusterer.kind", grid=["fielding", "ifca"]),
        **chosen("arm.global.training.batch_size", grid=[4, 8], edge="larger than what clients hold"),
        **chosen("arm.global.solver.0.kind", grid=["sgd", "adam"]),
        **chosen("devices.model_factor", grid=[1, "flops"]),
        **chosen("parts.memory.kind", grid=["held", "claimed"]),
        **chosen("trace.drift.kind", grid=["label_mix", "none"]),
    }
    read = small(chosen=whole).chosen
    assert read.keys() == whole.keys()
    assert read[RATE] == Choice(**SOUND)
    assert read["arm.global.training.batch_size"].edge == "larger than what clients hold"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"seeds": [1, 0, 100]},
            "seed 0 is among the seeds of the runs; run others than it was chosen on",
        ),
        (
            {"grid": [0.05, 0.25]},
            "0.05 is at the edge of its grid (0.05, 0.25); try further values, or say in edge why not",
        ),
        (
            {"grid": [0.05, 0.01]},
            "0.05 is at the edge of its grid (0.05, 0.01); try further values, or say in edge why not",
        ),
        (
            {"edge": "larger ones diverge"},
            "0.05 is at no edge of its grid (0.01, 0.05, 0.25); leave edge out",
        ),
        (
            {"grid": [0.01, 0.1]},
            "the setting is 0.05, which is not one of its grid (0.01, 0.1); say how it was chosen",
        ),
    ],
)
def test_what_does_not_fit_the_setting_or_the_seeds_is_refused(changes: dict[str, Any], message: str) -> None:
    assert refusal(**changes) == f"small: chosen.{RATE}: {message}"


@pytest.mark.parametrize("key", ["training.learning_rat", "arm.nobody.solver", "round.evaluate_every_s"])
def test_a_key_of_no_setting_is_refused(key: str) -> None:
    rule = "no setting of that name has a value; name it as --set does, as in training.learning_rate"
    assert refusal(key) == f"small: chosen.{key}: {rule}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grids": [1]}, "unknown key 'grids'"),
        ({"seeds": []}, "must not be empty"),
        ({"seeds": [-1]}, "greater than or equal to 0"),
        ({"grid": []}, "must not be empty"),
        ({"by": ""}, "at least 1 character"),
    ],
)
def test_its_form_is_checked_with_file_and_key(changes: dict[str, Any], message: str) -> None:
    said = refusal(**changes)
    assert said.startswith(f"small: chosen.{RATE}")
    assert message in said


def test_settings_that_need_torch_are_found_at_the_second_look() -> None:
    table = small_table(chosen=chosen("arm.global.training.model.hiden"))
    assert parse_experiment(table, "small", FIRST_LOOK).chosen
    with pytest.raises(ConfigurationError, match="no setting of that name has a value"):
        parse_experiment(table, "small")


# -- where it holds ------------------------------------------------------------------------------------------


def test_options_leave_it_out(tmp_path: Path) -> None:
    path = write_small(tmp_path, chosen=chosen())
    assert load_experiment(path).chosen
    assert not load_experiment(path, [f"{RATE}=0.2"]).chosen
    assert not load_experiment(path, seeds=[100]).chosen
    swept = read_configuration(path, sweep=[f"{RATE}=0.1,0.2"])
    assert [member.experiment.chosen for member in load_members([swept])] == [{}, {}]


def test_what_extends_a_configuration_does_not_inherit_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path, chosen=chosen())
    child = tmp_path / "child.toml"
    child.write_text(tomli_w.dumps({"extends": "small.toml", "seeds": [100]}))
    assert not load_experiment(child).chosen
    child.write_text(tomli_w.dumps({"extends": "small.toml", "chosen": chosen(seeds=[7])}))
    assert load_experiment(child).chosen[RATE].seeds == (7,)


def test_no_run_reads_it_and_one_that_began_before_it_was_added_goes_on(tmp_path: Path) -> None:
    without, stated = small(), small(chosen=chosen())
    assert stated.to_toml() == without.to_toml()
    play(without, tmp_path / "whole")
    play_until(without, tmp_path / "out", 2)
    story = play_until(stated, tmp_path / "out", None)
    assert [told[0] for told in story.told] == ["run", "going on"] * 2
    assert logs(tmp_path / "out") == logs(tmp_path / "whole")
    assert [told[0] for told in play_until(stated, tmp_path / "out", None).told] == ["skipped", "skipped"]
