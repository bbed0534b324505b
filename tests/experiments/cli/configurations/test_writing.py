from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from experiments.reading import read_table
from experiments.shipped import shipped_files
from tests.experiments.cli.conftest import Driftscale


def test_the_default_is_commented_has_the_name_of_its_file_and_is_valid(driftscale: Driftscale) -> None:
    ended = driftscale("new", "mine.toml")
    assert (ended.code, ended.out.splitlines()) == (
        0,
        [
            "mine.toml: like first-fleet; next:",
            "  driftscale check mine.toml",
            "  driftscale run mine.toml",
        ],
    )
    model = shipped_files()["first-fleet"].read_text()
    assert Path("mine.toml").read_text() == model.replace('name = "first-fleet"', 'name = "mine"')
    assert driftscale("check", "mine.toml", "--seeds", "0").code == 0


def test_one_that_needs_data_says_which(driftscale: Driftscale) -> None:
    ended = driftscale("new", "my swaps.toml", "--like", "fielding/figure-13-fashion")
    assert ended.code == 2
    ended = driftscale("new", "my-swaps.toml", "--like", "fielding/figure-13-fashion")
    assert ended.out.splitlines()[1:] == [
        "  driftscale check my-swaps.toml --data DIR",
        "  driftscale run my-swaps.toml --data DIR",
        "DIR has fashion_mnist",
    ]
    assert tomllib.loads(Path("my-swaps.toml").read_text())["name"] == "my-swaps"


def test_one_with_a_sweep_keeps_it(driftscale: Driftscale) -> None:
    assert driftscale("new", "swept.toml", "--like", "swap-samples").code == 0
    assert tomllib.loads(Path("swept.toml").read_text())["sweep"]


def test_one_that_extends_another_extends_it_from_anywhere(driftscale: Driftscale) -> None:
    assert driftscale("new", "mine.toml", "--like", "fielding/figure-01-few").code == 0
    whole = read_table(shipped_files()["fielding/figure-01-few"])
    assert read_table(Path("mine.toml")) == {**whole, "name": "mine"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("mine",), "FILE mine: must end in .toml, as in mine.toml"),
        (("there.toml",), "there.toml: exists already, and is not overwritten; take another name"),
        (("link.toml",), "link.toml: exists already, and is not overwritten; take another name"),
        (("nowhere/mine.toml",), "FILE nowhere/mine.toml: cannot be written (No such file or directory)"),
        (("my fleet.toml",), "FILE my fleet.toml: gives the experiment its name: name = 'my fleet': "),
        (('"".toml',), 'FILE "".toml: \'""\' cannot be the name of an experiment'),
        (("a\\1.toml",), "FILE a\\1.toml: 'a\\\\1' cannot be the name of an experiment"),
        (("mine.toml", "--like", "digitz"), "digitz: no shipped configuration has that name; the nearest"),
        (("mine.toml", "--like", "fielding"), "--like fielding: is a folder of configurations; driftscale"),
    ],
)
def test_nothing_is_written_where_it_may_not_be(
    arguments: tuple[str, ...], problem: str, driftscale: Driftscale
) -> None:
    Path("there.toml").touch()
    Path("link.toml").symlink_to("elsewhere.toml")
    ended = driftscale("new", *arguments)
    assert ended.code == 2
    assert ended.error.startswith(problem)
    assert sorted(path.name for path in Path().iterdir()) == ["link.toml", "there.toml"]
    assert Path("there.toml").read_bytes() == b""
