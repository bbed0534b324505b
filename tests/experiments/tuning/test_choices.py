from __future__ import annotations

from pathlib import Path

import pytest

from emulator.errors import ConfigurationError, InputError
from emulator.storage.bounded import read_toml
from experiments.config import Choice
from experiments.extending import value_at
from experiments.reading import load_experiment, read_file, read_table
from experiments.tuning.choices import chosen_path, kept_choices, without_choices, write_choices
from experiments.tuning.halving import Chosen, choose
from experiments.tuning.rows import Row, names_of, rows_of
from tests.experiments.shipping import ship
from tests.experiments.tuning.hand_made import ARMS, rows, write_folder

SEEDS = [100, 101]


def best(row: Row, setting: int, use: int) -> tuple[Row, Chosen]:
    """A choice of this setting of a row, and of this try of it."""
    names = names_of([row.settings[setting]])
    chosen = choose([row.settings[setting]], {name: [float(name == names[use])] for name in names})
    assert chosen is not None
    return row, chosen


def write(path: Path, *names: str) -> Path:
    """Choose the fourth setting of the rows of these names, and the last try of it."""
    chosen = [best(row, 3, -1) for row in rows(*names)]
    return write_choices(path, "driftscale tune mine", SEEDS, chosen, "fedavg+tuned", kept_choices(path))


def test_what_is_written_is_read_back_by_extends_and_gives_the_chosen_numbers(tmp_path: Path) -> None:
    path = write_folder(tmp_path) / "swap.toml"
    assert write(path, "fedavg", "ifca") == tmp_path / "chosen" / "swap.toml"
    experiment = load_experiment(path)
    assert [arm.name for arm in experiment.arm] == ["fedavg", "fedavg+tuned", "ifca"]
    fedavg, tuned, _ = experiment.arm
    assert [arm.training.learning_rate for arm in experiment.arm] == [0.2, 0.2, 0.2]
    assert (fedavg.training.local_steps, tuned.training.local_steps) == (1, 1)
    assert (fedavg.adaptation.kind, tuned.adaptation.kind) == ("none", "tuned")
    assert value_at(experiment.resolved(), ("arm", "fedavg+tuned", "adaptation", "local_steps")) == 5
    assert value_at(experiment.resolved(), ("arm", "ifca", "clusterer", "num_models")) == 2
    assert [arm.baseline for arm in experiment.arm] == [True, True, False]
    assert experiment.atlas is not None
    assert experiment.atlas.seeds == (100, 101)
    assert experiment.atlas.rival == "fedavg+tuned"
    assert experiment.atlas.best == {"fedavg": "fedavg+tuned", "ifca": "ifca"}


def test_each_number_has_an_entry_in_chosen_that_holds(tmp_path: Path) -> None:
    path = write_folder(tmp_path) / "swap.toml"
    table = read_toml(write(path, "fedavg", "ifca"))
    assert list(table["chosen"]) == [
        "arm.fedavg.training.learning_rate",
        "arm.fedavg.training.local_steps",
        "arm.fedavg.evaluate_with.fedavg+tuned.local_steps",
        "arm.ifca.training.learning_rate",
        "arm.ifca.clusterer.num_models",
    ]
    for key, entry in table["chosen"].items():
        choice = Choice.model_validate(entry)
        assert choice.problem(value_at(table, key.split(".")), seeds=(0, 1)) == "", key
    assert [key for key, entry in table["chosen"].items() if "edge" not in entry] == [
        "arm.fedavg.training.learning_rate",
        "arm.ifca.training.learning_rate",
    ]


def test_without_a_row_that_row_is_kept_as_it_was(tmp_path: Path) -> None:
    path = write_folder(tmp_path) / "swap.toml"
    whole = read_toml(write(path, "fedavg", "ifca"))
    [ifca] = rows("ifca")
    again = read_toml(write_choices(path, "", SEEDS, [best(ifca, 8, 0)], "fedavg+tuned", kept_choices(path)))
    assert value_at(again, ("arm", "ifca", "clusterer", "num_models")) == 4
    assert value_at(again, ("arm", "fedavg")) == value_at(whole, ("arm", "fedavg"))
    assert again["atlas"] == whole["atlas"]
    assert again["chosen"].keys() == whole["chosen"].keys()
    assert again["chosen"] != whole["chosen"]


def test_a_file_of_ones_own_is_not_overwritten_and_a_default_is(tmp_path: Path) -> None:
    path = write_folder(tmp_path) / "swap.toml"
    chosen_path(path).parent.mkdir()
    chosen_path(path).write_text("# mine\n[training]\nbatch_size = 5\n")
    with pytest.raises(
        InputError, match="is overwritten only if its first line begins with '# driftscale tune'"
    ):
        kept_choices(path)
    for default in (
        "# Nothing was chosen yet.\n",
        "# driftscale tune writes this file; until then, defaults\n",
    ):
        chosen_path(path).write_text(default)
        assert kept_choices(path) == {}
    assert (
        write(path, "fedavg", "ifca")
        .read_text()
        .startswith("# driftscale tune: written by driftscale tune mine\n")
    )


@pytest.mark.parametrize("extends", [[], ["parts/arms.toml"], ["chosen/swap.toml", "parts/arms.toml"]])
def test_a_configuration_that_does_not_extend_its_choices_last_is_told_the_line(
    tmp_path: Path, extends: list[str]
) -> None:
    path = write_folder(tmp_path, swap={"extends": extends}) / "swap.toml"
    others = [text for text in extends if text != "chosen/swap.toml"]
    with pytest.raises(ConfigurationError) as refused:
        without_choices(read_file(path), path)
    line = ", ".join(f'"{text}"' for text in [*others, "chosen/swap.toml"])
    assert str(refused.value).startswith(f"{path}: does not extend what is chosen for it, after all others")
    assert str(refused.value).endswith(f"it needs extends = [{line}]")


def test_what_was_chosen_before_is_not_among_what_is_tuned(tmp_path: Path) -> None:
    path = write_folder(tmp_path) / "swap.toml"
    assert without_choices(read_file(path), path)["extends"] == ["parts/arms.toml"]
    only = {"name": "swap", "extends": "chosen/swap.toml"}
    assert without_choices(only, path) == {"name": "swap"}


def test_a_shipped_configuration_names_its_choices_as_what_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = ship(tmp_path, monkeypatch)
    own = {"extends": ["few/parts/arms", "few/chosen/alpha"]}
    for path in (configs / "few" / "alpha.toml", configs / "few" / ".." / "few" / "alpha.toml"):
        assert without_choices(own, path) == {"extends": ["few/parts/arms"]}


def test_what_is_chosen_is_in_the_configuration_that_is_read(tmp_path: Path) -> None:
    path = write_folder(tmp_path) / "swap.toml"
    write(path, "fedavg", "ifca")
    assert "chosen" not in read_table(path)


def test_of_a_model_that_all_arms_share_the_whole_model_is_written_and_of_an_own_one_what_was_tried(
    tmp_path: Path,
) -> None:
    mlp = {"kind": "mlp", "hidden": [2]}
    arms = [
        {"name": "shared", "baseline": True, "tune": {"training.model.hidden": [[4]]}},
        {
            "name": "own",
            "clusterer": "ifca",
            "training": {"model": mlp},
            "tune": {"training.model.hidden": [[8]]},
        },
    ]
    changes = {"training": {**ARMS["training"], "model": mlp}, "tune": {"learning_rate": [0.2]}, "arm": arms}
    path = write_folder(tmp_path, changes) / "swap.toml"
    chosen = [best(row, 0, 0) for row in rows_of({**ARMS, **changes}, "x.toml")]
    table = read_toml(write_choices(path, "", SEEDS, chosen, "shared", {}))
    assert [arm["training"] for arm in table["arm"]] == [
        {"learning_rate": 0.2, "model": {"kind": "mlp", "hidden": [4]}},
        {"learning_rate": 0.2, "model": {"hidden": [8]}},
    ]
    experiment = load_experiment(path)
    assert [arm.training.model.settings.hidden for arm in experiment.arm] == [(4,), (8,)]
    assert [arm.training.batch_size for arm in experiment.arm] == [4, 4]
