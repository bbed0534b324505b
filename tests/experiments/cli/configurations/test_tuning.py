"""`driftscale tune`, on a folder with one small configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments.reading import load_experiment
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.shipping import ship
from tests.experiments.tuning.hand_made import ARMS, write_folder

SEEDS = ("--seeds", "100..102")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "mine")


def refusal(driftscale: Driftscale, *arguments: str) -> str:
    """The one line of the error for `driftscale tune` with these arguments; nothing is written."""
    ended = driftscale("tune", *arguments)
    assert ended.code == 2
    assert not Path("runs").exists()
    return ended.error


def with_arm(place: int, changes: Mapping[str, Any]) -> dict[str, Any]:
    arms = [*ARMS["arm"]]
    arms[place] = {**arms[place], **changes}
    return {"arm": arms}


def test_it_plays_chooses_writes_and_shows(driftscale: Driftscale, mine: Path) -> None:
    ended = driftscale("tune", "mine", *SEEDS)
    assert ended.code == 0
    assert sorted(path.name for path in Path("runs/tune/mine").iterdir()) == [
        "plotly.min.js",
        "swap",
        "tune.json",
        "tune.md",
    ]
    [facts] = json.loads(Path("runs/tune/mine/tune.json").read_text())
    assert (facts["trainings"], facts["of"]) == (30, 54)
    assert len(facts["first_seed"]) == 9 * 3 + 9
    assert {len(scores) for scores in facts["all_seeds"].values()} == {3}
    experiment = load_experiment(mine / "swap.toml")
    assert experiment.atlas is not None
    assert experiment.atlas.rival == facts["rival"] == experiment.atlas.best["fedavg"]
    values = facts["rows"]["ifca"]["values"]
    ifca = experiment.find_arm("ifca")
    assert (ifca.training.learning_rate, ifca.clusterer.settings.num_models) == tuple(values.values())
    first = (mine / "chosen" / "swap.toml").read_text().splitlines()[0]
    assert first == "# driftscale tune: written by driftscale tune mine --seeds 100..102"
    assert "trainings: 30 of the 54 of the whole grid (56 %)" in ended.out
    assert ended.out.endswith("table: runs/tune/mine/tune.md\n")

    again = driftscale("tune", "mine", *SEEDS, "--format", "json")
    assert (again.code, again.err) == (0, "")
    assert json.loads(again.out) == [facts]

    others = driftscale("tune", "mine", *SEEDS, "--arms", "ifca")
    assert others.code == 0
    assert load_experiment(mine / "swap.toml").atlas == experiment.atlas
    assert driftscale("run", "mine/swap.toml", "--seeds", "0").code == 0


@pytest.mark.parametrize("seeds", ["100", "100,100"])
def test_one_seed_does_not_choose(driftscale: Driftscale, mine: Path, seeds: str) -> None:
    ended = driftscale("tune", "mine", "--seeds", seeds)
    assert ended.code == 2
    assert "give two different seeds or more, as in 100..102" in ended.err


def test_seeds_that_are_reported_are_refused(driftscale: Driftscale, mine: Path) -> None:
    assert refusal(driftscale, "mine", "--seeds", "1..3") == (
        "mine/swap.toml: seeds: 1 is among those of --seeds, too; choose on seeds that it does not report"
    )


def test_what_is_no_folder_of_configurations_is_refused(driftscale: Driftscale, mine: Path) -> None:
    Path("empty").mkdir()
    assert refusal(driftscale, "empty", *SEEDS) == "empty: a folder without a configuration (*.toml)"
    assert refusal(driftscale, "mine/swap.toml", *SEEDS) == (
        "mine/swap.toml: a tune takes a folder of configurations (*.toml)"
    )


@pytest.mark.parametrize(
    ("arms", "swap", "rule"),
    [
        (with_arm(1, {"tune": {}}), {}, "arm.ifca: names no number to tune"),
        (with_arm(1, {"tune": {"clusterer.num_models": [0, 2]}}), {}, "num_models = 0"),
        (with_arm(1, {"tune": {"clusterer.num_modelz": [2]}}), {}, "unknown key 'num_modelz'"),
        (with_arm(0, {"baseline": False}), {}, "no arm is a baseline"),
        ({"tune": {}}, {}, "tune.learning_rate"),
        ({}, {"extends": "parts/arms.toml"}, 'it needs extends = ["parts/arms.toml", "chosen/swap.toml"]'),
        ({}, {"sweep": {"round.participants": [2, 3]}}, "has a [sweep]"),
        (
            {},
            {"arm": [{"name": "ifca", "clusterer": {"num_models": 3}}]},
            "arm.ifca.clusterer.num_models: is set in this file, over what is chosen",
        ),
    ],
)
def test_a_configuration_that_cannot_be_tuned_is_named_with_the_rule(
    driftscale: Driftscale, tmp_path: Path, arms: dict[str, Any], swap: dict[str, Any], rule: str
) -> None:
    write_folder(tmp_path / "mine", arms, swap)
    line = refusal(driftscale, "mine", *SEEDS)
    assert line.startswith("mine/swap.toml: ")
    assert rule in line


def test_arms_that_leave_out_the_rivals_need_choices_on_the_same_seeds(
    driftscale: Driftscale, mine: Path
) -> None:
    assert refusal(driftscale, "mine", *SEEDS, "--arms", "nope") == (
        "--arms: unknown arm 'nope'; choices: fedavg, ifca"
    )
    assert "--arms leaves out fedavg: the rival is chosen among all baselines" in refusal(
        driftscale, "mine", *SEEDS, "--arms", "ifca"
    )
    (mine / "chosen").mkdir()
    (mine / "chosen" / "swap.toml").write_text(
        '# driftscale tune: x\n[atlas]\nseeds = [200, 201]\nrival = "fedavg"\n'
    )
    assert "the other arms were chosen on the seeds 200, 201; take these" in refusal(
        driftscale, "mine", *SEEDS, "--arms", "ifca"
    )


def test_two_configurations_of_one_name_are_refused(driftscale: Driftscale, mine: Path) -> None:
    text = (mine / "swap.toml").read_text()
    (mine / "mass.toml").write_text(text.replace("chosen/swap", "chosen/mass"))
    assert "name = 'swap': is also that of mine/mass.toml" in refusal(driftscale, "mine", *SEEDS)


def test_a_folder_of_the_package_is_tuned_in_a_clone_or_by_its_path(
    driftscale: Driftscale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = ship(tmp_path / "package", monkeypatch)
    line = 'it needs extends = ["few/chosen/alpha"]\n'
    installed = driftscale("tune", "few", *SEEDS)
    assert installed.code == 2
    assert "few: is installed with driftscale, so what is chosen for it is not overwritten" in installed.err
    assert installed.err.endswith(f"copy it (cp -r {configs / 'few'} few)\n")
    assert driftscale("tune", configs / "few", *SEEDS).err.endswith(line)
    (configs.parents[1] / ".git").mkdir()
    assert driftscale("tune", "few", *SEEDS).err.endswith(line)
