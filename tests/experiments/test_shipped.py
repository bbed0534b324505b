from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

import pytest

import experiments
from emulator.errors import InputError
from emulator.storage.bounded import read_toml
from experiments import shipped
from experiments.reading import read_table, take_first_look
from experiments.running.sweep import num_cells, table_axes
from experiments.shipped import (
    ShippedConfiguration,
    Taken,
    absent,
    find_shipped,
    head_comment,
    shipped_configurations,
    take,
)
from tests.experiments.shipping import ship
from tests.experiments.small import write_small

FOLDER = Path(experiments.__file__).parent / "configs"
OF_EACH_SOURCE = ("digits", "covid-mnist", "elec2", "feddrift/mnist-2-short", "fielding/figure-04-buckets")


@pytest.fixture(scope="module")
def by_name() -> dict[str, ShippedConfiguration]:
    return {item.name: item for item in shipped_configurations()}


ROOT = Path(__file__).resolve().parents[2]


def test_a_name_is_the_path_of_the_file_without_its_suffix(by_name: dict[str, ShippedConfiguration]) -> None:
    paths = FOLDER.rglob("*.toml")
    assert {name: item.path for name, item in by_name.items()} == {
        path.relative_to(FOLDER).with_suffix("").as_posix(): path for path in paths
    }
    names = list(by_name)
    assert names == sorted(names, key=lambda name: ("/" in name, name))


def test_each_begins_with_a_sentence_on_what_it_shows(by_name: dict[str, ShippedConfiguration]) -> None:
    for name, item in by_name.items():
        assert item.about.startswith(item.summary), name
        assert item.summary[-1] in ".?", name
        assert "#" not in item.about, name


def test_arms_seeds_and_cells_are_counted(by_name: dict[str, ShippedConfiguration]) -> None:
    table_3 = by_name["fielding/table-3"]
    assert (table_3.arms, table_3.seeds, table_3.cells, table_3.runs) == (11, 5, 2, 110)
    assert {name: item.cells for name, item in by_name.items()} == {
        name: num_cells(table_axes(read_table(item.path).get("sweep", {}), name))
        for name, item in by_name.items()
    }


@pytest.mark.parametrize("name", OF_EACH_SOURCE)
def test_the_data_are_what_a_run_looks_for(name: str, by_name: dict[str, ShippedConfiguration]) -> None:
    table = read_table(by_name[name].path)
    table.pop("sweep", None)
    looked_for = set()

    def locate(path: str) -> Path:
        looked_for.add(path)
        return Path("absent")

    take_first_look(table, name, locate).find_files(locate)
    assert by_name[name].data == tuple(sorted(looked_for))


def test_minutes_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "MINUTES", tmp_path / "minutes.toml")
    (tmp_path / "minutes.toml").write_text('digits = 4\n"fielding/map" = 300.5\n')
    minutes = {item.name: item.minutes for item in shipped_configurations()}
    assert (minutes["digits"], minutes["fielding/map"], minutes["swap"]) == (4, 300.5, None)


def test_minutes_are_those_of_shipped_configurations(by_name: dict[str, ShippedConfiguration]) -> None:
    measured = read_toml(shipped.MINUTES)
    assert measured.keys() <= by_name.keys()
    assert {"digits", "first-fleet"} <= measured.keys()
    assert all(minutes > 0 for minutes in measured.values())


def test_the_comment_at_the_head_ends_where_the_tables_begin() -> None:
    assert head_comment('#One.\n# Two.\n\n# Three.\nname = "x"') == "One. Two."


# -- names ---------------------------------------------------------------------------------------------------


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
        ("covid.toml", "the nearest shipped ones: covid-mnist (driftscale configs)"),
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


def test_one_is_found_by_its_name_and_a_folder_by_its_own(by_name: dict[str, ShippedConfiguration]) -> None:
    assert find_shipped("digits") == (by_name["digits"],)
    assert {item.name for item in find_shipped("feddrift")} == {
        name for name in by_name if name.startswith("feddrift/")
    }
    with pytest.raises(InputError, match=r"^digit: no shipped configuration has that name; .*digits"):
        find_shipped("digit")


def test_the_configurations_of_every_folder_are_data_of_the_package() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    patterns = setup["options.package_data"]["experiments"].replace("\n", "").split(",")
    shipped = {
        path.relative_to(ROOT / "experiments") for path in (ROOT / "experiments/configs").rglob("*.toml")
    }
    packed = {path for path in shipped if any(path.match(pattern.strip()) for pattern in patterns)}
    assert packed == shipped
