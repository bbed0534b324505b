"""`evaluate_with` of an arm stands for arms that differ in their adaptation alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from emulator.errors import ConfigurationError, InputError
from experiments.checks.uses import trained_alike
from experiments.config import Experiment
from experiments.extending import expanded
from experiments.locating import locator
from experiments.reading import load_experiment
from experiments.running.plan import check
from tests.experiments.small import SMALL, merged


def arms(*tables: dict[str, Any]) -> list[dict[str, Any]]:
    return expanded({"arm": list(tables)}, "file")["arm"]  # type: ignore[no-any-return]


def written(folder: Path, file: str, **table: Any) -> Path:
    path = folder / file
    path.write_text(tomli_w.dumps(table))
    return path


def loaded(folder: Path, *tables: dict[str, Any], **changes: Any) -> Experiment:
    return load_experiment(written(folder, "c.toml", **merged(SMALL, {"arm": list(tables), **changes})))


def test_a_list_names_each_use_after_its_arm_and_its_adaptation() -> None:
    tuned = {"kind": "tuned", "local_steps": 2}
    found = arms({"name": "a", "clusterer": "ifca", "evaluate_with": ["none", "prior", tuned]}, {"name": "b"})
    assert [arm["name"] for arm in found] == ["a", "a+prior", "a+tuned", "b"]
    assert [arm.get("adaptation") for arm in found] == ["none", "prior", tuned, None]
    assert [arm.get("clusterer") for arm in found] == ["ifca"] * 3 + [None]


def test_a_list_names_a_use_of_ones_own_by_its_class() -> None:
    assert [arm["name"] for arm in arms({"name": "a", "evaluate_with": ["my_parts:Mine"]})] == ["a+Mine"]


def test_a_table_names_them_itself() -> None:
    found = arms({"name": "a", "baseline": True, "evaluate_with": {"global": "none", "own": "tuned"}})
    assert [(arm["name"], arm["adaptation"], arm["baseline"]) for arm in found] == [
        ("global", "none", True),
        ("own", "tuned", True),
    ]


def test_uses_are_the_arms_that_one_would_write(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "all").mkdir()
    one = loaded(tmp_path / "one", {"name": "a", "evaluate_with": ["none", "tuned"]}, {"name": "b"})
    written_out = [{"name": "a"}, {"name": "a+tuned", "adaptation": "tuned"}, {"name": "b"}]
    assert one.resolved() == loaded(tmp_path / "all", *written_out).resolved()


def test_what_extends_a_file_names_arms_of_uses_and_picks_them(tmp_path: Path) -> None:
    uses = {"name": "a", "evaluate_with": ["none", "tuned", "prior"]}
    written(tmp_path, "base.toml", **merged(SMALL, {"arm": [uses, {"name": "b"}]}))
    faster = {"name": "a+tuned", "adaptation": {"kind": "tuned", "local_steps": 9}}
    own = written(tmp_path, "own.toml", extends="base.toml", arms=["b", "a+tuned"], arm=[faster])
    found = load_experiment(own).arm
    assert [arm.name for arm in found] == ["b", "a+tuned"]
    assert found[1].adaptation.settings.local_steps == 9


def test_what_extends_a_file_changes_all_uses_of_an_arm_at_once_or_says_others(tmp_path: Path) -> None:
    uses = {"name": "a", "evaluate_with": ["none", "tuned"]}
    written(tmp_path, "base.toml", **merged(SMALL, {"arm": [uses, {"name": "b"}]}))
    rate = {"name": "a", "training": {"learning_rate": 0.5}}
    rates = load_experiment(written(tmp_path, "rate.toml", extends="base.toml", arm=[rate])).arm
    assert [arm.training.learning_rate for arm in rates] == [0.5, 0.5, 0.05]
    for change, names in (
        ({"evaluate_with": ["none", "prior"]}, ["a", "a+prior", "b"]),
        ({"adaptation": "prior"}, ["a", "b"]),
    ):
        own = written(tmp_path, "own.toml", extends="base.toml", arm=[{"name": "a", **change}])
        assert [arm.name for arm in load_experiment(own).arm] == names


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ({"evaluate_with": "tuned"}, "evaluate_with = 'tuned': must be a list of adaptations"),
        ({"evaluate_with": []}, r"evaluate_with = \[\]: must be a list of adaptations"),
        ({"evaluate_with": ["tuned", {"kind": "tuned"}]}, "two uses are named alike; give a table"),
        ({"evaluate_with": ["tuned"], "adaptation": "prior"}, "adaptation is given, too; name it among the"),
        ({"evaluate_with": ["turned"]}, r"arm.a\+turned.adaptation = 'turned': unknown adaptation"),
        ({"evaluate_with": {"x y": "none"}}, "name"),
    ],
)
def test_other_uses_are_refused(arm: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=said):
        loaded(tmp_path, {"name": "a", **arm}, {"name": "b"})


def test_an_option_cannot_give_uses(tmp_path: Path) -> None:
    path = written(tmp_path, "c.toml", **SMALL)
    with pytest.raises(ConfigurationError, match=r"evaluate_with: .*is read with its file"):
        load_experiment(path, ["arm.global.evaluate_with=['tuned']"])


REPORTED = {"kind": "prior", "shares": "reported"}
TURNED = {"kind": "relabelled", "train": True, "by": "class_means"}


@pytest.mark.parametrize(
    ("arm", "use", "why"),
    [
        ({}, "alone", "federates nothing"),
        ({}, TURNED, "has a say in how clients train"),
        ({}, {"kind": "transformed", "standardised": True}, "has a say in how clients train"),
        ({}, REPORTED, "that they do not report anyway"),
        ({"clusterer": "static"}, REPORTED, "that they do not report anyway"),  # not for the whole run
        ({"solver": ["ditto", "sgd"]}, "tuned", "makes personal parameters"),
    ],
)
def test_an_adaptation_that_trains_otherwise_is_no_use(
    arm: dict[str, Any], use: Any, why: str, tmp_path: Path
) -> None:
    experiment = loaded(tmp_path, {"name": "a", **arm, "evaluate_with": {"it": use}}, {"name": "b"})
    with pytest.raises(InputError, match=why):
        check(experiment, locator(None, None), scratch=tmp_path)


def test_reported_shares_are_a_use_where_clients_report_labels_throughout(tmp_path: Path) -> None:
    arm = {"name": "a", "clusterer": "fielding", "evaluate_with": {"it": REPORTED, "plain": "none"}}
    experiment = loaded(tmp_path, arm, {"name": "b"})
    check(experiment, locator(None, None), scratch=tmp_path)
    assert trained_alike(experiment, ["it", "plain", "b"]) == [["plain", "it"], ["b"]]
