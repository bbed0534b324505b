from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

import pytest

from experiments import shipped
from experiments.reading import read_table
from experiments.shipped import Taken, absent, shipped_file, shipped_files, take
from tests.experiments.shipping import ship
from tests.experiments.small import write_small

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def configs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ships small, few/alpha and few/beta."""
    return ship(tmp_path_factory.mktemp("package"), monkeypatch)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("small", "small.toml"),
        ("small.toml", "small.toml"),
        ("few/alpha", "few/alpha.toml"),
        ("few/alpha.toml", "few/alpha.toml"),
        ("few", "few"),
        ("few/", "few"),
        ("experiments/configs/small.toml", "small.toml"),
        ("configs/few/beta.toml", "few/beta.toml"),
        ("/elsewhere/experiments/configs/few", "few"),
    ],
)
def test_a_name_and_a_path_that_ends_like_its_place_stand_for_a_shipped_one(
    given: str, name: str, configs: Path, beside_the_files: None
) -> None:
    taken = take(Path(given))
    assert taken.path == configs / name
    assert taken.note.startswith(f"{Path(given)}: ")


@pytest.mark.parametrize(
    "given", ["my/small.toml", "alpha", "few.toml", "configs", "myconfigs/small.toml", "small.csv", "/small"]
)
def test_other_paths_stand_for_themselves(given: str, configs: Path, beside_the_files: None) -> None:
    assert take(Path(given)) == Taken(Path(given))


def test_what_exists_wins_and_a_note_says_so_unless_it_is_the_same(
    configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("few").mkdir()
    write_small(Path())
    assert take(Path("few")) == Taken(Path("few"), "few: taking what is here, not the shipped configs/few")
    assert take(Path("small.toml")).path == Path("small.toml")
    assert take(Path("./small")) == Taken(
        configs / "small.toml", "small: taking the shipped configuration, not small.toml here"
    )
    monkeypatch.chdir(configs)
    assert take(Path("few")) == Taken(Path("few"))


def test_without_folders_the_name_of_one_stands_for_nothing(configs: Path, beside_the_files: None) -> None:
    assert take(Path("few"), folders=False) == Taken(Path("few"))
    assert take(Path("few/alpha"), folders=False).path == configs / "few" / "alpha.toml"


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ("my/faults.toml", "the shipped one is named faults"),
        ("my/digits.toml", "the shipped one is named digits or personal/digits"),
        ("figure-02", "the shipped one is named fielding/figure-02"),
        ("digitz", "the nearest shipped ones: digits, personal/digits (driftscale configs)"),
        ("figure-2", "the nearest shipped ones: fielding/figure-02 (driftscale configs)"),
        ("covid-mnst.toml", "the nearest shipped ones: covid-mnist (driftscale configs)"),
        ("feilding", "the nearest shipped ones: fielding (driftscale configs)"),
        ("my/feddrift", "feddrift is a folder of shipped ones: driftscale configs feddrift lists them"),
        ("nothing-like-it", "driftscale configs lists the shipped ones"),
    ],
)
def test_the_error_for_an_unknown_one_names_what_may_be_meant(given: str, remedy: str) -> None:
    assert absent(Path(given)) == f"no such configuration; {remedy}"


def test_a_missing_file_that_is_like_no_shipped_one_is_only_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absent(Path("mine.toml")) == "no such configuration"
    Path("mine.toml").touch()
    assert absent(Path("mine")) == "no such configuration; did you mean mine.toml?"


def test_a_file_two_folders_deep_is_a_part_that_is_extended_and_not_listed(
    configs: Path, beside_the_files: None
) -> None:
    before = shipped_files()
    part = configs / "few" / "parts" / "arms.toml"
    part.parent.mkdir()
    part.write_text("[round]\nrounds = 7\nparticipants = 3\n")
    (configs / "few" / "alpha.toml").write_text('extends = ["small", "few/parts/arms"]\n')
    assert shipped_files() == before
    assert list(shipped.shipped_folders()) == ["few"]
    assert shipped_file("few/parts/arms") == shipped_file("few/parts/arms.toml") == part
    assert take(Path("few/parts/arms")) == Taken(Path("few/parts/arms"))
    assert read_table(configs / "few" / "alpha.toml")["round"] == {"rounds": 7, "participants": 3}


def test_the_configurations_of_every_folder_are_data_of_the_package() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    patterns = setup["options.package_data"]["experiments"].replace("\n", "").split(",")
    shipped = {
        path.relative_to(ROOT / "experiments") for path in (ROOT / "experiments/configs").rglob("*.toml")
    }
    packed = {path for path in shipped if any(path.match(pattern.strip()) for pattern in patterns)}
    assert packed == shipped
