from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments import shipped_facts
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.shipping import ABOUT, ship


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ships small, few/alpha and few/beta; the minutes of one are known."""
    (tmp_path / "minutes.toml").write_text('"few/beta" = 2.5\n')
    monkeypatch.setattr(shipped_facts, "MINUTES", tmp_path / "minutes.toml")
    return ship(tmp_path / "package", monkeypatch)


def test_each_is_listed_with_its_needs_runs_and_minutes(driftscale: Driftscale, configs: Path) -> None:
    lines = driftscale("configs").out.splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert rows == [
        ["small", "A small one.", "nothing", "2", "-"],
        ["few/alpha", "A small one.", "nothing", "2", "-"],
        ["few/beta", "A small one.", "nothing", "2", "2.5"],
    ]


def test_one_that_extends_another_is_listed_as_what_it_amounts_to(
    driftscale: Driftscale, configs: Path
) -> None:
    text = '# Less.\nextends = "small"\nname = "gamma"\nseeds = [0, 1, 2]\narms = "global"\n'
    (configs / "few" / "gamma.toml").write_text(text)
    facts = json.loads(driftscale("configs", "few/gamma", "--format", "json").out)
    assert (facts["arms"], facts["seeds"], facts["runs"], facts["text"]) == (1, 3, 3, text)


def test_the_files_that_are_needed_are_listed_by_their_folders(driftscale: Driftscale) -> None:
    assert "│ devices/, label_traces/, mnist/ │" in driftscale("configs").out


def test_as_json_the_whole_comment_and_each_file_is_there(driftscale: Driftscale, configs: Path) -> None:
    facts = json.loads(driftscale("configs", "few", "--format", "json").out)
    assert [fact["name"] for fact in facts] == ["few/alpha", "few/beta"]
    assert facts[1] == {
        "name": "few/beta",
        "path": str(configs / "few" / "beta.toml"),
        "about": "A small one. Of twelve clients.",
        "summary": "A small one.",
        "data": [],
        "arms": 2,
        "seeds": 1,
        "cells": 1,
        "runs": 2,
        "minutes": 2.5,
    }


def test_with_its_name_the_text_is_printed_and_nothing_else(driftscale: Driftscale, configs: Path) -> None:
    text = (configs / "few" / "alpha.toml").read_text()
    assert text.startswith(ABOUT)
    for name in ("few/alpha", "few/alpha.toml"):
        assert driftscale("configs", name).out == text
    assert json.loads(driftscale("configs", "few/alpha", "--format", "json").out)["text"] == text


def test_an_unknown_name_is_refused_with_the_nearest(driftscale: Driftscale, configs: Path) -> None:
    ended = driftscale("configs", "smal")
    assert (ended.code, ended.error) == (
        2,
        "smal: no shipped configuration has that name; the nearest shipped ones: small (driftscale configs)",
    )
