from __future__ import annotations

from pathlib import Path

import pytest

from emulator.errors import ConfigurationError, InputError, UnknownNameError
from experiments.running.members import load_folder
from tests.experiments.small import write_drifting


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two experiments that have one arm in common."""
    write_drifting(tmp_path, name="beta")
    write_drifting(tmp_path, name="alpha", arm=[{"name": "oblivious"}, {"name": "window", "memory": "held"}])
    return tmp_path


def test_members_are_in_the_order_of_their_files_with_all_arms(folder: Path) -> None:
    members = load_folder(folder)
    assert [(member.experiment.name, member.arms) for member in members] == [("alpha", None), ("beta", None)]


def test_members_without_any_of_the_arms_are_left_out(folder: Path) -> None:
    members = load_folder(folder, arms=["oracle", "window"])
    assert [(member.experiment.name, member.arms) for member in members] == [
        ("alpha", ["window"]),
        ("beta", ["oracle"]),
    ]
    [member] = load_folder(folder, arms=["window"])
    assert member.path == folder / "alpha.toml"


def test_an_arm_that_no_configuration_has_is_refused(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown arm 'oracel'.*oblivious.*did you mean 'oracle'"):
        load_folder(folder, arms=["oblivious", "oracel"])


def test_two_configurations_of_one_name_are_refused(folder: Path) -> None:
    (folder / "zeta.toml").write_text((folder / "beta.toml").read_text())
    with pytest.raises(ConfigurationError, match=r"zeta\.toml: name = 'beta': is also that of .*beta\.toml"):
        load_folder(folder)


def test_a_folder_without_configurations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder without a configuration"):
        load_folder(tmp_path)


def test_a_misspelt_key_of_one_is_reported_before_a_setting_of_another_that_needs_torch(folder: Path) -> None:
    write_drifting(folder, name="aardvark", training={"model": {"kind": "mlp", "hiden": [3]}})
    write_drifting(folder, name="zeta", round={"roundz": 3})
    with pytest.raises(ConfigurationError, match=r"zeta\.toml: round: unknown key 'roundz'"):
        load_folder(folder)
    (folder / "zeta.toml").unlink()
    with pytest.raises(ConfigurationError, match=r"aardvark\.toml: training\.model: unknown key 'hiden'"):
        load_folder(folder)
