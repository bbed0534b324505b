"""`run` and `report` on a folder of configurations, and of run directories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import write_drifting


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "drifts"
    write_drifting(folder, name="beta")
    write_drifting(folder, name="alpha", trace={"concepts": "circle"})
    return folder


def test_a_folder_is_run_into_one_table_with_reports_beside_it(driftscale: Driftscale, folder: Path) -> None:
    ended = driftscale("run", folder, "--explain")
    assert ended.code == 0
    assert sorted(path.name for path in Path("runs/drifts").iterdir()) == [
        "alpha",
        "beta",
        "plotly.min.js",
        "table.html",
        "table.json",
    ]
    assert Path("runs/drifts/alpha/report.html").exists()
    lines = ended.out.splitlines()
    assert lines[0] == "drifts: Accuracy (%), omitting drift cells"
    assert lines[1].split() == ["arm", "alpha", "beta"]
    assert [line.split()[0] for line in lines[3:7:2]] == ["oblivious", "oracle"]
    assert lines[4].split()[:3] == ["(52.00", "±", "1.50,"]
    assert lines[4].rstrip().endswith(")")
    assert lines[-1] == "table: runs/drifts/table.html"


def test_without_explain_a_folder_prints_one_table_then_what_was_found_and_the_path(
    driftscale: Driftscale, folder: Path
) -> None:
    driftscale("run", folder)
    ended = driftscale("report", "runs/drifts")
    assert (ended.code, ended.err) == (0, "")
    warnings, table, found = ended.out.split("\n\n")
    assert warnings.startswith("Warning: alpha, beta: the horizon is ")
    title, headings, _, *rows = table.splitlines()
    assert title.startswith("drifts: accuracy (%) omitting drift, mean ± standard deviation over seeds; in ")
    assert headings.split() == ["arm", "alpha", "beta"]
    assert [row.split()[0] for row in rows] == ["oblivious", "oracle"]
    assert rows[0].split()[4:7] == ["(52.00", "±", "1.50,"]
    best, agreement, most_accurate, what_signs_are, path = found.splitlines()
    assert best.startswith("Highest accuracy omitting drift: alpha ")
    assert agreement.startswith("Within two published standard deviations of it: alpha ")
    assert most_accurate.startswith("alpha: ")
    assert " has a mean accuracy of " in most_accurate
    assert what_signs_are == "± is the sample standard deviation over seeds."
    assert path == "table: runs/drifts/table.html"


def test_every_experiment_of_a_folder_has_the_command_in_its_manifest(
    driftscale: Driftscale, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[Path] = []
    monkeypatch.setattr("experiments.running.command_facts.git_commit", folders.append)
    driftscale("run", folder)
    manifests = [RunDirectory(Path("runs/drifts", name)).manifest() for name in ("alpha", "beta")]
    alpha, beta = [[] if manifest is None else manifest.commands for manifest in manifests]
    assert alpha == beta
    assert [command.arguments for command in alpha] == [["driftscale", "run", str(folder)]]
    assert folders == [folder]


def test_progress_names_the_experiment_and_the_share_of_all_that_is_done(
    driftscale: Driftscale, folder: Path
) -> None:
    lines = driftscale("run", folder, "--seeds", "0").err.splitlines()
    done = [line for line in lines if line.startswith("[")]
    assert [line.split(": done")[0] for line in done] == [
        "[1/4] alpha: oblivious, seed 0",
        "[2/4] alpha: oracle, seed 0",
        "[3/4] beta: oblivious, seed 0",
        "[4/4] beta: oracle, seed 0",
    ]
    assert [line.split("; ")[1].split(",")[0] for line in done] == [
        "25% of all",
        "50% of all",
        "75% of all",
        "100% of all",
    ]
    assert all(line.endswith(" left") for line in done[:3])


def test_in_json_the_table_is_printed_and_nothing_else(driftscale: Driftscale, folder: Path) -> None:
    ended = driftscale("run", folder, "--out", "elsewhere", "--seeds", "0", "--format", "json")
    table = json.loads(ended.out)
    assert table == json.loads(Path("elsewhere/table.json").read_text())
    assert table["arms"] == ["oblivious", "oracle"]
    assert [experiment["name"] for experiment in table["experiments"]] == ["alpha", "beta"]
    cell = table["figures"]["accuracy_omitting_drift"]["oblivious"]["beta"]
    assert cell["published"] == {"mean": 52.0, "std": 1.5}
    assert cell["seeds"] == 1


def test_a_report_on_the_folder_makes_everything_again(driftscale: Driftscale, folder: Path) -> None:
    ran = driftscale("run", folder)
    made = [
        *Path("runs/drifts").glob("table.*"),
        *Path("runs/drifts").glob("*/report.html"),
        Path("runs/drifts/plotly.min.js"),
    ]
    before = {path: path.read_bytes() for path in made}
    assert len(before) == 5
    for path in made:
        path.unlink()
    again = driftscale("report", "runs/drifts")
    assert (again.code, again.out, again.err) == (0, ran.out, "")
    assert {path: path.read_bytes() for path in made} == before


def test_reports_of_a_folder_share_one_plotly_and_one_made_by_itself_stands_alone(
    driftscale: Driftscale, folder: Path
) -> None:
    assert driftscale("run", folder, "--seeds", "0").code == 0
    alpha, beta = (Path("runs/drifts", name, "report.html") for name in ("alpha", "beta"))
    shared = beta.read_bytes()
    assert len(alpha.read_bytes()) + len(shared) < 10**6
    assert driftscale("report", beta.parent).code == 0
    assert beta.stat().st_size > 4 * 10**6
    assert driftscale("report", "runs/drifts").code == 0
    assert beta.read_bytes() == shared
    driftscale("run", folder / "beta.toml", "--seeds", "0", "--out", "alone")
    assert Path("alone/report.html").stat().st_size > 4 * 10**6
    assert not Path("plotly.min.js").exists()


def test_a_bad_file_ends_with_2_before_anything_is_run(driftscale: Driftscale, folder: Path) -> None:
    write_drifting(folder, name="gamma", round={"rounds": 0})
    ended = driftscale("run", folder)
    assert ended.code == 2
    assert "gamma.toml: round.rounds = 0" in ended.error
    assert not Path("runs").exists()


def test_an_experiment_that_fails_ends_with_3_after_the_others_and_their_table(
    driftscale: Driftscale, folder: Path
) -> None:
    write_drifting(folder, name="aardvark", training={"learning_rate": 1e38})
    ended = driftscale("run", folder, "--seeds", "0")
    assert ended.code == 3
    assert ended.err.splitlines()[-1] == "error: 1 of 3 experiments failed: aardvark"
    assert "aardvark: 2 failed" in ended.out
    assert sum("diverged" in line for line in ended.err.splitlines()) == 2  # each failure once
    assert Path("runs/drifts/beta/report.html").exists()


def test_settings_hold_for_every_configuration(driftscale: Driftscale, folder: Path) -> None:
    settings = ["trace.rounds_per_step=1", "round.rounds=2", "round.evaluate_every=1"]
    options = [option for setting in settings for option in ("--set", setting)]
    driftscale("run", folder, *options, "--seeds", "0", "--arms", "oblivious")
    logs = list(Path("runs/drifts").glob("*/oblivious/seed-0/log.jsonl"))
    assert [len(log.read_text().splitlines()) for log in logs] == [1 + 2, 1 + 2]


def test_one_experiment_whose_trace_knows_its_concepts_shows_the_same_before_its_times(
    driftscale: Driftscale, folder: Path
) -> None:
    lines = driftscale("run", folder / "beta.toml", "--seeds", "0", "--explain").out.splitlines()
    titles = [line for line in lines if line.startswith("beta: ")]
    assert titles == [
        "beta: Accuracy (%), omitting drift cells",
        "beta: Accuracy (%), including drift cells",
        "beta: models sent",
        "beta: accuracy over virtual time, against oblivious",
        "beta: who takes part",
        "beta: cost, mean over seeds",
    ]
    assert lines[-1] == "report: runs/beta/report.html"


def test_the_figures_that_need_no_reference_arm_are_there_without_it(
    driftscale: Driftscale, folder: Path
) -> None:
    ended = driftscale("run", folder, "--arms", "oracle", "--seeds", "0", "--out", "other", "--explain")
    assert ended.code == 0
    table = json.loads(Path("other/table.json").read_text())
    for figure in ("accuracy_omitting_drift", "accuracy_including_drift", "models_sent"):
        assert list(table["figures"][figure]["oracle"]) == ["alpha", "beta"]
    assert table["figures"]["relative_models_sent"] == {}
    assert sum(line.startswith("oracle") for line in ended.out.splitlines()) == 3
    command = ("run", folder / "beta.toml", "--arms", "oracle", "--seeds", "0")
    alone = driftscale(*command, "--explain").out.splitlines()
    assert alone[0] == "beta: Accuracy (%), omitting drift cells"
    assert alone[3].split()[0] == "oracle"
    short = driftscale(*command).out.splitlines()
    assert short[0] == "beta: accuracy by data step, mean ± standard deviation over seeds"
    assert short[5].split()[0] == "oracle"
    assert short[-2].startswith("oracle has the highest accuracy omitting drift, ")
    assert short[-1] == "No run of the reference arm 'oblivious' is finished: nothing is compared."


def test_the_table_is_the_same_wherever_it_is_written(driftscale: Driftscale, folder: Path) -> None:
    for out in ("here", "there"):
        driftscale("run", folder, "--seeds", "0", "--arms", "oracle", "--out", out)
    assert Path("here/table.json").read_bytes() == Path("there/table.json").read_bytes()
    driftscale("report", "there")
    assert Path("here/table.json").read_bytes() == Path("there/table.json").read_bytes()
    command = ("run", folder / "beta.toml", "--seeds", "0", "--out", "elsewhere", "--explain")
    lines = driftscale(*command).out.splitlines()
    assert lines[1].split() == ["arm", "beta"]


def test_a_run_shorter_than_its_trace_states_how_many_data_steps_are_scored(
    driftscale: Driftscale, folder: Path
) -> None:
    command = ("run", folder / "beta.toml", "--seeds", "0", "--set", "trace.pattern=['000','010','010']")
    short = driftscale(*command, "--set", "round.rounds=2")
    assert "mean ± standard deviation over seeds; 1 of 2 data steps were scored\n" in short.out
    assert "beta: scored are 1 of 2 data steps" in driftscale("report", "runs/beta", "--explain").out
    whole = driftscale(*command, "--out", "whole")
    assert "scored" not in whole.out
    assert "scored are" not in driftscale("report", "whole", "--explain").out


def test_arms_that_have_not_run_have_no_row_in_the_printed_table(
    driftscale: Driftscale, folder: Path
) -> None:
    assert "oracle" not in driftscale("run", folder, "--arms", "oblivious", "--seeds", "0").out
    assert "oracle" in driftscale("run", folder, "--seeds", "0").out


def test_a_folder_is_refused_under_torchrun_by_rank_0_alone(
    driftscale: Driftscale, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    ended = driftscale("run", folder)
    assert ended.code == 2
    assert ended.error == f"{folder}: is a folder; under torchrun, run one configuration at a time"
    monkeypatch.setenv("RANK", "1")
    ended = driftscale("run", folder)
    assert (ended.code, ended.err) == (2, "")
