"""A name of a shipped configuration works wherever a path to one does."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.experiments.cli.conftest import Driftscale
from tests.experiments.shipping import ship
from tests.experiments.small import write_small

SHORT = ("--arms", "global", "--set", "round.rounds=1")


@pytest.fixture
def configs(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    return ship(tmp_path_factory.mktemp("site-packages"), monkeypatch)


@pytest.mark.slow
def test_a_name_is_run_into_the_present_folder_and_resumes_what_its_path_has_begun(
    driftscale: Driftscale, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.running.command_facts.git_commit", lambda folder: "0a" * 20)
    driftscale("run", os.path.relpath(configs / "few" / "alpha.toml"), *SHORT)
    ended = driftscale("run", "few/alpha", *SHORT, "--seeds", "0,1", "--format", "json")
    assert ended.err.splitlines()[0] == "few/alpha: taking the shipped configuration"
    assert "[1/2] global, seed 0: finished earlier, kept" in ended.err.splitlines()
    assert json.loads(ended.out)["name"] == "few-alpha"
    assert [path.name for path in Path("runs").iterdir()] == ["few-alpha"]
    of_path, of_name = json.loads(Path("runs/few-alpha/manifest.json").read_text())["commands"]
    assert of_name["arguments"][:3] == ["driftscale", "run", "few/alpha"]
    assert ("git_commit" in of_path, "git_commit" in of_name) == (True, False)
    (configs.parents[1] / ".git").touch()  # a clone, whose shipped files may have been changed
    driftscale("run", "few/alpha", *SHORT, "--seeds", "2")
    assert "git_commit" in json.loads(Path("runs/few-alpha/manifest.json").read_text())["commands"][-1]


@pytest.mark.slow
def test_a_folder_of_shipped_ones_is_checked_and_run_whole(driftscale: Driftscale, configs: Path) -> None:
    facts = driftscale("check", "few", "--format", "json")
    assert [fact["name"] for fact in json.loads(facts.out)] == ["few-alpha", "few-beta"]
    assert facts.err == "few: taking the folder of shipped configurations\n"
    ended = driftscale("run", "few", *SHORT)
    assert ended.code == 0
    assert sorted(path.name for path in Path("runs/few").iterdir() if path.is_dir()) == [
        *("few-alpha", "few-beta"),
    ]


def test_a_path_that_ends_like_the_place_of_one_names_it(driftscale: Driftscale, configs: Path) -> None:
    ended = driftscale("check", "experiments/configs/few/beta.toml", "--format", "json")
    assert json.loads(ended.out)["name"] == "few-beta"
    assert (
        ended.err
        == "experiments/configs/few/beta.toml: not here; taking the shipped configuration few/beta\n"
    )


def test_what_is_here_wins_and_is_said(driftscale: Driftscale, configs: Path) -> None:
    write_small(Path(), name="mine")
    ended = driftscale("check", "small.toml", "--format", "json")
    assert json.loads(ended.out)["name"] == "mine"
    assert ended.err == "small.toml: taking what is here, not the shipped configs/small.toml\n"
    ended = driftscale("check", "small", "--format", "json")
    assert json.loads(ended.out)["name"] == "small"
    assert ended.err == "small: taking the shipped configuration, not small.toml here\n"


def test_an_unknown_name_is_answered_with_the_nearest_ones(driftscale: Driftscale, configs: Path) -> None:
    for command in (("run",), ("check",), ("traces", "inspect")):
        ended = driftscale(*command, "smal")
        assert ended.code == 2
        assert (
            ended.error == "smal: no such configuration; the nearest shipped ones: small (driftscale configs)"
        )


def test_errors_call_a_shipped_one_by_its_name(driftscale: Driftscale, configs: Path) -> None:
    ended = driftscale("run", "few/alpha", "--set", "round.roundz=1")
    assert ended.err.splitlines()[1].startswith("error: few/alpha (shipped): round: unknown key 'roundz'")
    ended = driftscale("run", "few", "--sweep", "round.roundz=1,2")
    assert "few/alpha (shipped) with --sweep round.roundz = 1: round: unknown key" in ended.err


def test_a_trace_is_inspected_by_the_name_of_its_configuration(driftscale: Driftscale, configs: Path) -> None:
    ended = driftscale("traces", "inspect", "small", "--format", "json")
    assert (json.loads(ended.out)["name"], ended.code) == ("small", 0)
    assert ended.err.splitlines()[0] == "small: taking the shipped configuration"
    ended = driftscale("traces", "inspect", "few")
    assert ended.error == (
        "few: no such configuration; few is a folder of shipped ones: driftscale configs few lists them"
    )


def test_only_the_first_rank_says_which_was_taken(
    driftscale: Driftscale, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, note in (("0", ["few: taking the folder of shipped configurations"]), ("1", [])):
        monkeypatch.setenv("RANK", rank)
        ended = driftscale("run", "few")
        assert (ended.code, ended.err.splitlines()[:1]) == (2, note)


def test_data_and_modules_are_not_looked_for_beside_it(
    driftscale: Driftscale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_modules: None
) -> None:
    configs = ship(tmp_path / "package", monkeypatch, arm=[{"name": "a", "selector": "my_parts:Mine"}])
    (configs / "my_parts.py").write_text("raise RuntimeError('imported')")
    (configs / "devices.csv").touch()
    ended = driftscale("check", "small")
    assert "error: small (shipped): arm.a.selector = 'my_parts:Mine': " in ended.err
    assert str(configs) not in ended.err
    here = ("--set", "arm.a.selector=random", "--set", "devices.profile=devices.csv")
    ended = driftscale("check", "small", *here)
    assert "not found; looked for devices.csv;" in ended.err
