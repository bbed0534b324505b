"""`driftscale atlas`, of folders of made-up run directories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.experiments.atlas_runs import CHOSEN, a_column
from tests.experiments.cli.conftest import Driftscale


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    a_column(tmp_path / "runs" / "mass")
    a_column(tmp_path / "runs" / "swap", finished={"ifca": [0]})
    return tmp_path / "runs"


def test_the_atlas_is_printed_and_written_beside_the_run_directories(
    driftscale: Driftscale, runs: Path
) -> None:
    ended = driftscale("atlas", "runs")
    assert ended.code == 0
    assert "runs: mean accuracy of the best use (%), beside the rival" in ended.out
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["ifca", "53.0", "-"] in rows
    assert ["ahead"] in rows
    assert ["oracle", "90.0", "90.0"] in rows
    assert "Missing in swap: ifca is not finished in every seed." in ended.out
    assert "nothing is tested" not in ended.out
    assert ended.out.rstrip().endswith("atlas: runs/atlas.html")
    assert sorted(path.name for path in runs.glob("atlas.*")) == ["atlas.html", "atlas.json", "atlas.md"]
    assert "no test" not in driftscale("report", "runs").out
    assert 'href="mass/report.html"' not in (runs / "atlas.html").read_text()
    driftscale("atlas", "runs")
    assert 'href="mass/report.html"' in (runs / "atlas.html").read_text()


def test_with_explain_all_notes_are_printed(driftscale: Driftscale, runs: Path) -> None:
    shown = " ".join(driftscale("atlas", "runs", "--explain").out.split())
    assert "nothing is tested over them" in shown
    assert "Regret is points below the best cell of the column" in shown


def test_as_json_it_is_the_file(driftscale: Driftscale, runs: Path) -> None:
    shown = driftscale("atlas", "runs", "--format", "json").out
    assert json.loads(shown) == json.loads((runs / "atlas.json").read_text())
    assert json.loads(shown)["cells"]["ifca"]["mass"]["word"] == "ahead"


def test_a_file_without_a_rival_is_one_line_and_nothing_is_written(
    driftscale: Driftscale, runs: Path
) -> None:
    a_column(runs / "none", atlas={"seeds": CHOSEN["seeds"]})
    ended = driftscale("atlas", "runs")
    assert ended.code == 2
    assert ended.error.startswith("runs/none/experiment.toml: has no [atlas] with the rival")
    assert ended.error.endswith("driftscale tune FOLDER chooses one")
    assert [*runs.glob("atlas.*")] == []


def test_a_link_in_the_place_of_a_file_is_refused_before_anything_is_written(
    driftscale: Driftscale, runs: Path
) -> None:
    (runs / "atlas.md").symlink_to("elsewhere")
    ended = driftscale("atlas", "runs")
    assert ended.code == 2
    assert "atlas.md" in ended.error
    assert not (runs / "atlas.json").exists()
