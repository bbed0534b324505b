"""`driftscale tune`, on a folder with one small configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.cli.configurations.tuning import shown
from experiments.reading import load_experiment
from experiments.tuning.command import Tuned
from experiments.tuning.halving import DIVERGED, Chosen, choose
from experiments.tuning.rows import RATE, Row, Setting, Try
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


@pytest.mark.slow
def test_it_plays_chooses_writes_and_shows(driftscale: Driftscale, mine: Path) -> None:
    ended = driftscale("tune", "mine", *SEEDS)
    assert ended.code == 0
    assert sorted(path.name for path in Path("runs/tune/mine").iterdir()) == [
        "plotly.min.js",
        "swap",
        "tune.json",
    ]
    facts = json.loads(Path("runs/tune/mine/tune.json").read_text())
    rows, notes = facts["swap"]
    assert [(row["arm"], row["rate"]) for row in rows] == [
        (arm, rate) for arm in ("fedavg", "ifca") for rate in ("0.05", "0.2", "0.8")
    ]
    experiment = load_experiment(mine / "swap.toml")
    assert experiment.atlas is not None
    assert experiment.atlas.rival == experiment.atlas.best["fedavg"]
    assert f"rival: {experiment.atlas.rival}" in notes
    ifca = experiment.find_arm("ifca")
    chosen = f"{ifca.training.learning_rate:g}, {ifca.clusterer.settings.num_models}: ifca"
    assert [row["chosen"] for row in rows if row["arm"] == "ifca" and row["chosen"]] == [chosen]
    first = (mine / "chosen" / "swap.toml").read_text().splitlines()[0]
    assert first == "# driftscale tune: written by driftscale tune mine --seeds 100..102"
    assert "trainings: 30 of the 54 of the whole grid (56 %)" in ended.out
    assert ended.out.endswith("scores: runs/tune/mine/tune.json\n")

    again = driftscale("tune", "mine", *SEEDS, "--format", "json")
    assert again.code == 0
    assert {line.rpartition(": ")[2] for line in again.err.splitlines()} == {"finished earlier, kept"}
    assert json.loads(again.out) == facts

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
    assert refusal(driftscale, "empty", *SEEDS) == "empty: no folder with configurations (*.toml)"
    assert refusal(driftscale, "mine/swap.toml", *SEEDS) == (
        "mine/swap.toml: no folder with configurations (*.toml)"
    )


@pytest.mark.parametrize(
    ("arms", "swap", "rule"),
    [
        (with_arm(1, {"tune": {}}), {}, "arm.ifca: names no number to tune"),
        (with_arm(1, {"tune": {"clusterer.num_models": [0, 2]}}), {}, "num_models = 0"),
        (with_arm(1, {"tune": {"clusterer.num_modelz": [2]}}), {}, "unknown key 'num_modelz'"),
        (with_arm(0, {"baseline": False}), {}, "all arms with baseline = true (none)"),
        ({"tune": {}}, {}, "tune.learning_rate"),
        ({}, {"extends": "parts/arms.toml"}, 'it needs extends = ["parts/arms.toml", "chosen/swap.toml"]'),
        ({}, {"sweep": {"round.participants": [2, 3]}}, "has a [sweep]"),
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
    rule = "the rival is the best of all arms with baseline = true (fedavg), on the seeds of all choices"
    assert rule in refusal(driftscale, "mine", *SEEDS, "--arms", "ifca")
    (mine / "chosen").mkdir()
    (mine / "chosen" / "swap.toml").write_text(
        '# driftscale tune: x\n[atlas]\nseeds = [200, 201]\nrival = "fedavg"\n'
    )
    assert rule in refusal(driftscale, "mine", *SEEDS, "--arms", "ifca")


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
    assert "few: cannot be written in, or is installed with driftscale" in installed.err
    assert installed.err.endswith(f"so it cannot be tuned; copy it (cp -r {configs / 'few'} few)\n")
    assert driftscale("tune", configs / "few", *SEEDS).err.endswith(line)
    (configs.parents[1] / ".git").mkdir()
    assert driftscale("tune", "few", *SEEDS).err.endswith(line)


# -- the table -----------------------------------------------------------------------------------------------

NUMBER = "clusterer.num_models"


def tuned(chosen: Chosen | None, settings: list[Setting]) -> Tuned:
    """Two rates with two numbers; the last diverged, and the first two were played on both seeds."""
    row = Row({"name": "a"}, {RATE: (0.05, 0.2), NUMBER: (2, 4)}, {}, settings)
    column: Any = SimpleNamespace(rows=[row])
    first = {"a-0.05-2": [0.5], "a-0.05-4": [0.75], "a-0.2-2": [0.25], "a-0.2-4": [DIVERGED]}
    return Tuned(column, first, {"a": settings[:2]}, SCORES, {"a": chosen}, "a", Path("chosen/swap.toml"))


SCORES = {"a-0.05-2": [0.5, 0.75], "a-0.05-4": [0.75, 0.5]}
SETTINGS = [
    Setting({RATE: rate, NUMBER: number}, [Try(f"a-{rate}-{number}", "a", None, {}, {})])
    for rate in (0.05, 0.2)
    for number in (2, 4)
]


def test_a_row_of_the_table_has_a_rate_with_all_values_of_the_number() -> None:
    [low, high], notes = shown(tuned(choose(SETTINGS[:2], SCORES), SETTINGS), 2)
    assert low == {
        "arm": "a",
        "rate": "0.05",
        "number": "clusterer.num_models = 2, 4",
        "first seed (%)": "50.00, 75.00",
        "2 seeds (%)": "62.50, 62.50",
        "chosen": "0.05, 2: a",
    }
    assert (high["first seed (%)"], high["2 seeds (%)"], high["chosen"]) == ("25.00, diverged", "-, -", "")
    assert notes == [
        "a: 0.05, 2; 0.05, 4 tie; the first is taken",
        "rival: a",
        "trainings: 6 of the 8 of the whole grid (75 %)",
        "written: chosen/swap.toml",
    ]


def test_a_row_of_rates_of_its_own_has_no_further_number() -> None:
    settings = [Setting({RATE: rate}, [Try(f"a-{rate}", "a", None, {}, {})]) for rate in (30, 100)]
    column: Any = SimpleNamespace(rows=[Row({"name": "a"}, {RATE: (30, 100)}, {}, settings)])
    first, scores = {"a-30": [0.5], "a-100": [0.25]}, {"a-30": [0.5, 0.5], "a-100": [0.25, 0.25]}
    chosen = {"a": choose(settings, scores)}
    [low, _], _ = shown(Tuned(column, first, {"a": settings}, scores, chosen, "a", Path("mine.toml")), 2)
    assert (low["number"], low["first seed (%)"], low["chosen"]) == ("", "50.00", "30: a")


def test_a_row_of_which_all_diverged_has_no_choice() -> None:
    [low, high], notes = shown(tuned(None, SETTINGS), 2)
    assert low["chosen"] == high["chosen"] == ""
    assert len(notes) == 3


@pytest.mark.slow
def test_where_all_settings_of_an_arm_diverge_the_others_are_written_and_it_is_named(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    arms = with_arm(1, {"training": {"model": {"kind": "mlp", "hidden": [4]}, "local_steps": 5}})
    lowest = {"learning_rate": [1e37, 1e38]}
    write_folder(tmp_path / "mine", {**arms, "tune": lowest})
    ended = driftscale("tune", "mine", *SEEDS)
    assert ended.code == 3
    assert ended.err.splitlines()[-1] == (
        "error: every setting diverged, so that none is chosen, and what was before stays: swap: ifca; "
        "try smaller rates"
    )
    assert load_experiment(tmp_path / "mine" / "swap.toml").find_arm("fedavg").training.learning_rate >= 1e37
    assert "diverged, diverged, diverged" in ended.out
