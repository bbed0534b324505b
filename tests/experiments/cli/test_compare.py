"""`compare`, and the table of many runs that `report` makes of a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.experiments.cli.conftest import Driftscale
from tests.experiments.results.many_runs.test_sections import ONE, OTHER, a_measured
from tests.experiments.synthetic_runs import a_directory, a_run, store


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three run directories in `runs`; the configurations differ in the number of participants."""
    for name, number, accuracies in (("ten", 10, OTHER), ("five", 5, ONE), ("twenty", 20, ONE)):
        a_measured(
            tmp_path / "runs" / name, {"global": ONE, "fielding": accuracies}, round={"participants": number}
        )
    return tmp_path / "runs"


def test_two_run_directories_make_one_table(driftscale: Driftscale, runs: Path) -> None:
    ended = driftscale("compare", "runs/five", "runs/ten", "--explain")
    assert ended.code == 0
    row = next(
        line for line in ended.out.splitlines() if line.startswith("fielding") and "10" in line.split()
    )
    assert row.split()[:9] == ["fielding", "4", "10", "64.0", "%", "+4.0", "pp", "+4.0", "pp"]
    assert "Difference is from the same arm of the first run directory, runs/five," in " ".join(
        ended.out.split()
    )
    assert not (runs / "table.html").exists()


def test_without_explain_the_same_table_has_no_notes_below_it(driftscale: Driftscale, runs: Path) -> None:
    explained = driftscale("compare", "runs/five", "runs/ten", "--explain").out
    ended = driftscale("compare", "runs/five", "runs/ten")
    assert ended.code == 0
    table = explained[explained.index("2 run directories\n") : explained.index("Mean over ")]
    assert ended.out.startswith("Compared up to ")
    assert table in ended.out
    found = explained[
        explained.rindex("fielding in runs/ten has the highest mean accuracy, 64.0 %, 4.0 pp above ") :
    ]
    assert ended.out.endswith(f"{table}{found}")


def test_a_folder_is_in_the_order_of_its_keys(driftscale: Driftscale, runs: Path) -> None:
    (section,) = json.loads(driftscale("compare", "runs", "--format", "json").out)["sections"]
    assert section["directories"] == ["runs/five", "runs/ten", "runs/twenty"]
    assert section["keys"] == ["round.participants"]


def test_directories_are_in_the_order_given_and_count_once(driftscale: Driftscale, runs: Path) -> None:
    ended = driftscale("compare", "runs/twenty", "runs", "runs/../runs/ten", "--format", "json")
    (section,) = json.loads(ended.out)["sections"]
    assert section["directories"] == ["runs/twenty", "runs/five", "runs/ten"]


@pytest.mark.parametrize("arguments", [["runs/five"], ["runs/five", "runs/../runs/five"]])
def test_one_run_directory_is_refused(driftscale: Driftscale, runs: Path, arguments: list[str]) -> None:
    ended = driftscale("compare", *arguments)
    assert ended.code == 2
    assert "compare needs two or more, or a folder of them" in ended.error


def test_a_folder_without_run_directories_is_refused(driftscale: Driftscale, runs: Path) -> None:
    ended = driftscale("compare", "runs/five", ".")
    assert (ended.code, ended.error) == (2, ".: not a run directory, it has no experiment.toml")


def test_unfinished_runs_are_named(driftscale: Driftscale, runs: Path) -> None:
    directory = a_directory(runs / "late", ["global", "fielding"], [0, 1, 2])
    for arm in directory.arms():
        store(directory, a_run(arm, 0, [0.5]))
    ended = driftscale("compare", "runs/five", "runs/late")
    assert ended.code == 2
    assert ended.error.startswith(
        "runs/late: not finished: global, seed 1; global, seed 2; fielding, seed 1 and 1 more; "
    )


def test_arms_of_which_no_run_was_begun_are_named_and_left_out(driftscale: Driftscale, runs: Path) -> None:
    directory = a_directory(runs / "some", ["global", "static"], [0], round={"participants": 7})
    store(directory, a_run("global", 0, [0.5] * 3))
    ended = driftscale("compare", "runs/five", "runs/some")
    assert ended.code == 0
    assert "Warning: no run was begun of static." in ended.out
    command = {"arguments": ["driftscale", "run", "x", "--arms", "global"], "started": "2026-01-31T12:00:00Z"}
    directory.manifest_path.write_text(json.dumps({"commands": [command]}))
    assert "Warning: not asked for: static." in driftscale("compare", "runs/five", "runs/some").out


def test_other_traces_and_horizons_that_do_not_overlap_are_refused(
    driftscale: Driftscale, runs: Path
) -> None:
    a_measured(runs / "other", {"global": ONE}, trace={"source": "mnist"})
    ended = driftscale("compare", "runs/five", "runs/other")
    assert ended.code == 2
    assert "runs/five and runs/other have other traces (trace.source 'digits' and 'mnist'" in ended.error

    a_measured(runs / "later", {"global": {0: [None] * 5 + [0.5]}})  # type: ignore[list-item]
    ended = driftscale("compare", "runs/five", "runs/later")
    assert ended.code == 2
    assert "horizons do not overlap: runs/later is evaluated from 60.0 s" in ended.error


def test_a_folder_is_reported_as_one_table_on_the_terminal_and_the_page(
    driftscale: Driftscale, runs: Path
) -> None:
    ended = driftscale("report", "runs")
    assert ended.code == 0
    assert "models sent" not in ended.out
    assert "published" not in ended.out
    assert ended.out.splitlines()[-1] == "table: runs/table.html"
    page = (runs / "table.html").read_text()
    assert "<h2>five, ten, twenty</h2>" in page
    assert "Models sent" not in page
    assert '<a href="five/report.html">five</a>' in page
    assert json.loads((runs / "table.json").read_text())["sections"][0]["keys"] == ["round.participants"]


def test_a_folder_with_unfinished_runs_shows_what_is_finished(driftscale: Driftscale, runs: Path) -> None:
    a_directory(runs / "late", ["global"], [0])
    ended = driftscale("report", "runs")
    assert ended.code == 0
    assert "late: 1 not run" in ended.out


def test_a_foreign_configuration_cannot_steer_the_terminal(driftscale: Driftscale, runs: Path) -> None:
    for name, value in (("x", "plain"), ("y", "\x1b[2J")):
        a_measured(runs / name, {"global": ONE}, round={"key\x1b]0;": value, "when": 1.0})
    ended = driftscale("compare", "runs/x", "runs/y")
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert "\\x1b[2J" in ended.out


def test_values_that_json_lacks_are_texts(driftscale: Driftscale, runs: Path) -> None:
    for name, value in (("x", "nan"), ("y", "2026-11-22")):
        a_measured(runs / name, {"global": ONE}, round={"value": 0})
        config = runs / name / "experiment.toml"
        config.write_text(config.read_text().replace("value = 0", f"value = {value}"))
    (section,) = json.loads(driftscale("compare", "runs/x", "runs/y", "--format", "json").out)["sections"]
    assert [row["keys"] for row in section["rows"]] == [
        {"round.value": "nan"},
        {"round.value": "2026-11-22"},
    ]
