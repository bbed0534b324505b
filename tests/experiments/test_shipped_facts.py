from __future__ import annotations

from pathlib import Path

import pytest

import experiments
from emulator.errors import InputError
from emulator.storage.bounded import read_toml
from experiments import shipped_facts
from experiments.reading import read_table, take_first_look
from experiments.running.sweep import num_cells, table_axes
from experiments.shipped_facts import (
    ShippedConfiguration,
    find_shipped,
    head_comment,
    shipped_configurations,
)

FOLDER = Path(experiments.__file__).parent / "configs"
OF_EACH_SOURCE = ("digits", "covid-mnist", "elec2", "feddrift/mnist-2-short", "fielding/figure-04-buckets")


@pytest.fixture(scope="module")
def by_name() -> dict[str, ShippedConfiguration]:
    return {item.name: item for item in shipped_configurations()}


def test_a_name_is_the_path_of_the_file_without_its_suffix(by_name: dict[str, ShippedConfiguration]) -> None:
    paths = [*FOLDER.glob("*.toml"), *FOLDER.glob("*/*.toml")]
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
    monkeypatch.setattr(shipped_facts, "MINUTES", tmp_path / "minutes.toml")
    (tmp_path / "minutes.toml").write_text('digits = 4\n"fielding/map" = 300.5\n')
    minutes = {item.name: item.minutes for item in shipped_configurations()}
    assert (minutes["digits"], minutes["fielding/map"], minutes["swap"]) == (4, 300.5, None)


def test_minutes_are_those_of_shipped_configurations(by_name: dict[str, ShippedConfiguration]) -> None:
    measured = read_toml(shipped_facts.MINUTES)
    assert measured.keys() <= by_name.keys()
    assert {"digits", "first-fleet"} <= measured.keys()
    assert all(minutes > 0 for minutes in measured.values())


def test_the_comment_at_the_head_ends_where_the_tables_begin() -> None:
    assert head_comment('#One.\n# Two.\n\n# Three.\nname = "x"') == "One. Two."


def test_one_is_found_by_its_name_and_a_folder_by_its_own(by_name: dict[str, ShippedConfiguration]) -> None:
    assert find_shipped("digits") == (by_name["digits"],)
    assert {item.name for item in find_shipped("feddrift")} == {
        name for name in by_name if name.startswith("feddrift/")
    }
    with pytest.raises(InputError, match=r"^digit: no shipped configuration has that name; .*digits"):
        find_shipped("digit")
