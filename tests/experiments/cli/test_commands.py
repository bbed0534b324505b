"""The output of the commands: tables, JSON, progress and help."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from coordinator.clusterers.fielding import Fielding
from coordinator.view import View
from emulator.storage.runlog import read_log
from experiments.cli import tables
from experiments.results.reading.json_files import Command
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.summary import Summary
from experiments.results.tables.summary import summarise, write_summary
from experiments.running.locking import locked
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import write_idx_folder, write_label_trace, write_replay, write_small
from tests.experiments.synthetic_runs import a_directory, a_drifting_run, a_run, store, tables_of


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_small(tmp_path, seeds=[0, 1])


# -- run and report -----------------------------------------------------------------------------------------


def test_a_run_that_stops_until_a_round_says_so_wherever_it_is_reported(
    driftscale: Driftscale, config: Path
) -> None:
    for until in (3, 2):  # the second one has nothing to play
        ended = driftscale("run", config, "--until", until)
        assert ended.code == 0
        stopped = ended.err.splitlines()[-1]
        assert stopped.startswith("[4/4] fielding, seed 1: stopped at 3 of 4 rounds")
        assert ended.out.startswith(
            "Warning: until 3 of 4 rounds, where --until stopped runs of global; fielding."
        )
        assert "\nsmall: 4 until 3 of 4 rounds\n" in ended.out
    assert stopped.endswith("earlier, kept")
    assert " · until 3 of 4 rounds · " in Path("runs/small/report.html").read_text()
    assert driftscale("run", config).out.startswith("Warning: evaluations lie")


def test_a_run_prints_one_table_then_what_was_found_and_the_path_of_the_report(
    driftscale: Driftscale, config: Path
) -> None:
    ended = driftscale("run", config)
    assert ended.code == 0
    lines = ended.out.splitlines()
    table = lines.index("small: up to 3.96 s of virtual time")
    assert lines[:table] == [
        "Warning: evaluations lie up to 0.99 s apart: times are no finer than that.",
        "With under three seeds there is no interval, and what is shown may be due to chance.",
        "",
    ]
    assert lines[table + 2].split() == ["arm", "accuracy", "gain", "accuracy", "re-clustered"]
    assert [line.split()[0] for line in lines[table + 4 : table + 6]] == ["global", "fielding"]
    gain, final = lines[table + 7 : -1]
    assert re.fullmatch(
        r"fielding has a mean accuracy of \S+ %, \S+ pp \(no interval: under three seeds\) above global "
        r"\(2 seeds, up to 3.96 s of virtual time\)\.",
        gain,
    )
    assert re.fullmatch(
        r"Accuracy at the horizon: fielding \S+ %, global \S+ %; \+\S+ pp over global\.", final
    )
    assert lines[-1] == "report: runs/small/report.html"
    assert Path("runs/small/report.html").exists()
    assert Path("runs/small/rounds.parquet").exists()


def test_with_explain_a_run_prints_all_tables_and_notes_before_what_was_found(
    driftscale: Driftscale, config: Path
) -> None:
    short = driftscale("run", config).out.splitlines()
    ended = driftscale("run", config, "--explain")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0].startswith("Compared up to ")
    table = lines.index("small: accuracy over virtual time, against global")
    assert lines[table + 1].split() == ["final"]
    headings = ["arm", "mean", "accuracy", "gain", "accuracy", "final", "gain", "re-clustered"]
    assert lines[table + 2].split() == headings
    assert [line.split()[0] for line in lines[table + 4 : table + 7 : 2]] == ["global", "fielding"]
    assert "No target accuracy is set." in ended.out
    assert lines[-3:] == short[-3:]  # two findings and the path
    assert driftscale("report", "runs/small", "--explain").out == ended.out


def test_a_run_in_json_prints_the_summary_and_nothing_else(driftscale: Driftscale, config: Path) -> None:
    ended = driftscale("run", config, "--format", "json", "--out", "elsewhere")
    summary = json.loads(ended.out)
    assert summary == json.loads(Path("elsewhere/summary.json").read_text())
    assert (summary["version"], summary["name"]) == (6, "small")
    assert list(summary["arms"]) == ["global", "fielding"]
    for arm in summary["arms"].values():
        assert arm["seeds"] == len(arm["final_accuracy"]["per_seed"]) == 2


def test_targets_baselines_and_the_headline_are_set_without_running_anything_again(
    driftscale: Driftscale, config: Path
) -> None:
    driftscale("run", config)
    logs = {path: path.stat().st_mtime_ns for path in Path("runs/small").glob("*/*/log.jsonl")}
    assert "headline" not in (recorded := Path("runs/small/experiment.toml")).read_text()
    sets = ('report.targets=[0.2, "reference"]', "arm.global.baseline=true", "report.headline=fielding")
    words = [word for text in sets for word in ("--set", text)]
    ended = driftscale("run", config, *words, "--explain")
    assert "small: time to 20.0 %, against global" in ended.out
    assert "small: time to global's accuracy at the horizon (" in ended.out
    assert "small: gains over arms without clusters" in ended.out
    assert " Samples trained per client count models uploaded " in " ".join(ended.out.split())
    assert {path: path.stat().st_mtime_ns for path in logs} == logs
    assert "baseline = true" in recorded.read_text()
    page = Path("runs/small/report.html").read_text()
    assert '<p class="headline">fielding has a mean accuracy of' in page
    assert "over global</span>" in page
    again = driftscale("report", "runs/small", "--explain")
    assert "small: time to 20.0 %, against global" in again.out


def test_a_longer_run_has_the_same_figures_up_to_the_same_horizon(
    driftscale: Driftscale, config: Path
) -> None:
    results = []
    for rounds in (6, 9):
        options = ("--set", f"round.rounds={rounds}", "--set", "report.targets=[0.3]", "--out", f"o{rounds}")
        ended = driftscale("run", config, "--set", "report.horizon_s=4.5", *options, "--format", "json")
        summary = json.loads(ended.out)
        assert summary["horizon"]["horizon_s"] == 4.5
        for arm in summary["arms"].values():
            del arm["wall_s"], arm["clustering_wall_s"], arm["virtual_time_s"]  # of whole runs
        results.append((summary["arms"], summary["targets"]))
    assert results[0] == results[1]


def test_a_report_prints_the_same_as_the_run_before(driftscale: Driftscale, config: Path) -> None:
    ran = driftscale("run", config)
    Path("runs/small/summary.json").unlink()
    Path("runs/small/report.html").unlink()
    again = driftscale("report", "runs/small")
    assert (again.code, again.out, again.err) == (0, ran.out, "")
    assert Path("runs/small/report.html").exists()
    as_json = driftscale("report", "runs/small", "--format", "json")
    assert json.loads(as_json.out) == json.loads(Path("runs/small/summary.json").read_text())


def test_a_report_can_be_made_while_a_process_runs_into_the_directory(
    driftscale: Driftscale, config: Path
) -> None:
    driftscale("run", config, "--seeds", "0", "--arms", "global")
    with locked(Path("runs/small")):
        assert driftscale("report", "runs/small").code == 0
        refused = driftscale("run", config)
    assert refused.code == 2
    assert "runs/small: another call in this process is running into this directory" in refused.err


def test_progress_is_plain_lines_on_stderr_where_there_is_no_terminal(
    driftscale: Driftscale, config: Path
) -> None:
    ended = driftscale("run", config, "--seeds", "1", "--set", "round.rounds=8")
    lines = ended.err.splitlines()
    assert "\x1b" not in ended.err + ended.out
    assert len(lines) == 2 * (4 + 1)
    assert lines[0].startswith("global, seed 1: round 2/8, virtual ")
    assert ", accuracy " in lines[0]
    assert lines[4].startswith("[1/2] global, seed 1: done in ")
    assert lines[9].startswith("[2/2] fielding, seed 1: done in ")
    again = driftscale("run", config, "--seeds", "1", "--set", "round.rounds=8")
    assert again.err.splitlines() == [
        "[1/2] global, seed 1: finished earlier, kept",
        "[2/2] fielding, seed 1: finished earlier, kept",
    ]


def test_options_choose_folder_arms_seeds_and_settings(driftscale: Driftscale, config: Path) -> None:
    ended = driftscale(
        "run", config, "--out", "o", "--arms", "global", "--seeds", "3..4", "--set", "round.rounds=2"
    )
    assert ended.code == 0
    finished = sorted(str(path.parent.relative_to("o")) for path in Path("o").glob("*/*/DONE"))
    assert finished == ["global/seed-3", "global/seed-4"]
    assert len(Path("o/global/seed-3/log.jsonl").read_text().splitlines()) == 1 + 2


# -- what the manifest records of a command -----------------------------------------------------------------


def recorded_commands(path: Path = Path("runs/small")) -> list[Command]:
    manifest = RunDirectory(path).manifest()
    assert manifest is not None
    return manifest.commands


def a_commit_for(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Give every folder a commit; returns the folders that are asked for one, as they come."""
    folders: list[Path] = []

    def commit(folder: Path) -> str:
        folders.append(folder)
        return "0a" * 20

    monkeypatch.setattr("experiments.running.command_facts.git_commit", commit)
    return folders


def test_commands_that_play_runs_are_recorded_and_others_are_not(
    driftscale: Driftscale, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders, before = a_commit_for(monkeypatch), datetime.now(UTC).replace(microsecond=0)
    driftscale("run", config, "--seeds", "0..1")
    [first] = recorded_commands()
    assert first.arguments == ["driftscale", "run", str(config), "--seeds", "0..1"]
    assert before <= datetime.fromisoformat(first.started) <= datetime.now(UTC)
    assert first.git_commit == "0a" * 20
    for again in (["run", config], ["report", "runs/small"], ["check", config]):
        assert driftscale(*again).code == 0
        assert recorded_commands() == [first]
    assert folders == [config.parent]
    driftscale("run", config, "--seeds", "0..2")
    assert [command.arguments[4:] for command in recorded_commands()] == [["0..1"], ["0..2"]]
    assert str(config.parent) in Path("runs/small/report.html").read_text(encoding="utf-8")
    driftscale("run", config, "--fresh")
    assert [command.arguments[3:] for command in recorded_commands()] == [["--fresh"]]


def test_a_run_that_is_resumed_has_the_commands_of_all_its_attempts(
    driftscale: Driftscale, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(self: Fielding, view: View) -> Any:
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(Fielding, "on_data", wrong)
        assert driftscale("run", config, "--seeds", "0").code == 3
    assert driftscale("run", config, "--seeds", "0", "--data", ".").code == 0
    assert [command.arguments[5:] for command in recorded_commands()] == [[], ["--data", "."]]


def test_git_is_not_run_for_a_mistake(
    driftscale: Driftscale, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = a_commit_for(monkeypatch)
    driftscale("run", config, "--seeds", "0", "--arms", "global")
    assert len(folders) == 1
    for mistake in (
        "round.roundz=1",
        "trace.samples_per_step=0",
        "devices.profile=nothing",
        "round.rounds=9",
    ):
        assert driftscale("run", config, "--set", mistake).code == 2
    assert len(folders) == 1


# -- the table at different widths --------------------------------------------------------------------------


def printed(summary: Summary, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    monkeypatch.setattr(tables, "wide_console", lambda: console)
    tables.print_summary(summary)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.fixture
def summary() -> Summary:
    runs = [a_run("global", seed, [0.1, 0.25 + seed / 100, 0.5, 0.5]) for seed in range(3)]
    runs += [a_run("fielding", seed, [0.2, 0.5 + seed / 50, 0.7, 0.75]) for seed in range(3)]
    settings = {"targets": [0.5, 0.7], "event_rounds": [2]}
    return summarise(runs, name="x", window=1, reference_arm="global", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [50, 80, 100, 140])
def test_the_one_table_has_a_line_per_arm_or_its_intervals_below_where_the_terminal_is_narrow(
    width: int, summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    monkeypatch.setattr(tables, "wide_console", lambda: console)
    tables.print_short(summary, ["global", "fielding"], {})
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert sum(line.startswith("arm ") for line in lines) == 1
    [arm] = [index for index, line in enumerate(lines) if line.startswith("fielding ")]
    if width < 80:
        assert lines[arm].split() == ["fielding", "47.3", "%", "+18.7", "pp", "75.0", "%"]
        assert lines[arm + 1].split() == ["[+17.8,", "+19.5]"]
    else:
        assert " ".join(lines[arm].split()) == "fielding 47.3 % +18.7 pp [+17.8, +19.5] 75.0 %"
        assert lines[arm - 1].split() == ["global", "28.7", "%", "reference", "50.0", "%"]


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_tables_break_no_word_and_no_interval_at_any_usual_width(
    width: int, summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(summary, width, monkeypatch)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    for whole in (
        "[+17.8, +19.5]",
        "[+10.0, +10.0]",
        ">= 20.0 s",
        "[2.00, inf)",
        ">= 2.00x",
        "3/3",
        "1.60 kB",
    ):
        assert whole in text, whole
    for word in ("accuracy", "speed-up", "re-clusterings", "fielding", "reference"):
        assert word in text


def test_the_tables_mark_the_arms_in_which_offline_clients_are_heard(
    summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def marks(hear: str) -> list[str]:
        runs = [
            replace(a_run(arm, 0, [0.1, 0.2], changed=changed), header={"hear": hear})
            for arm, changed in (("global", 0), ("moves", 2), ("fielding", 2))
        ]
        heard = summarise(runs, name="x", window=1, reference_arm="global")
        return [line for line in printed(heard, 140, monkeypatch) if "Offline" in line]

    assert marks("check_in") == []
    [mark] = marks("everyone")
    assert mark.startswith('Offline clients heard: moves, fielding. With round.hear = "everyone" clients')


def test_matrices_of_several_experiments_are_marked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = []
    for name, hear in (("first", "online"), ("second", "everyone")):
        directory = a_directory(tmp_path / name, ["fielding"], [0], name=name, trace={"source": name})
        run = a_drifting_run("fielding", 0, [0.5, 0.75], [[0, 0], [0, 0]])
        records = [replace(record, changed=1) for record in run.records]
        store(directory, replace(run, header={**run.header, "hear": hear}, records=records))
        write_summary(directory, directory.reported_runs())
        directories.append(directory)
    console = Console(width=140, file=io.StringIO(), color_system=None)
    monkeypatch.setattr(tables, "wide_console", lambda: console)
    tables.print_sections(*tables_of("both", directories))
    assert isinstance(console.file, io.StringIO)
    [mark] = [line for line in console.file.getvalue().splitlines() if "Offline" in line]
    assert mark.startswith("second: Offline clients heard: in rows of fielding. ")


def test_a_table_that_is_too_wide_is_cut_between_columns(
    summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tables_at(width: int) -> int:
        return sum(line.startswith("arm ") for line in printed(summary, width, monkeypatch))

    assert tables_at(140) == 6  # accuracy, before and after the drift, two targets, who takes part, cost
    assert tables_at(80) > 5


def test_comparisons_in_the_row_of_the_reference_arm_read_reference(
    summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [line.split() for line in printed(summary, 140, monkeypatch) if line.startswith("global ")]
    assert [row.count("reference") for row in rows] == [3, 1, 2, 2, 0, 0]


# -- mistakes -----------------------------------------------------------------------------------------------


def test_a_mistake_in_a_part_prints_its_traceback_ends_with_3_and_the_run_can_be_resumed(
    driftscale: Driftscale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_small(tmp_path, checkpoint={"every_rounds": 1})
    plain = Fielding.on_data

    def wrong(self: Fielding, view: View) -> Any:
        if view.round == 3:
            raise ZeroDivisionError("a plug-in divides by 0")
        return plain(self, view)

    with monkeypatch.context() as mistaken:
        mistaken.setattr(Fielding, "on_data", wrong)
        ended = driftscale("run", config, "--out", "out")
    assert ended.code == 3
    assert "Traceback (most recent call last)" in ended.err
    assert "in wrong" in ended.err
    last = ended.err.splitlines()[-1]
    assert last.startswith("error: ZeroDivisionError: a plug-in divides by 0: a mistake in driftscale")
    assert "global" in ended.out  # finished runs are reported
    again = driftscale("run", config, "--out", "out")
    assert again.code == 0
    assert "fielding, seed 0: resuming from round 3" in again.err


# -- check --------------------------------------------------------------------------------------------------


def test_a_check_prints_the_facts_of_the_configuration_and_writes_nothing(
    driftscale: Driftscale, config: Path
) -> None:
    ended = driftscale("check", config, "--format", "json")
    assert ended.code == 0
    assert json.loads(ended.out) == {
        "name": "small",
        "arms": "global, fielding",
        "seeds": "0, 1",
        "clients": 12,
        "labels": 10,
        "samples in the trace": 12 * 3 * (6 + 4),
        "last data step": 1,
        "device profile": "uniform",
        "model factor": 1.0,
        "client updates in all": 3 * 4 * 2 * 2,
        "fleet: speeds": "uniform, drawn",
        "fleet: hours": "always",
        # Eight samples at 3 x 41 ms, and 650 parameters each way at 6079 Kibit/s.
        "fleet: seconds of download": "0.003341 in the median, 0.003341 to 0.003341 for 10 to 90 %",
        "fleet: seconds of compute": "0.984 in the median, 0.984 to 0.984 for 10 to 90 %",
        "fleet: seconds of upload": "0.003341 in the median, 0.003341 to 0.003341 for 10 to 90 %",
        "fleet: seconds of a visit": "0.9907 in the median, 0.9907 to 0.9907 for 10 to 90 %",
        "fleet: online at the start": 12,
        "fleet: online from": "the first at 0 s, a tenth of all by 0 s; a run ends at about 3.96273 s, "
        "round.max_wait_days = 30",
    }
    table = driftscale("check", config, "--seeds", "0..9")
    assert table.out.splitlines()[0].strip() == "ok"
    assert "0, 1, 2, 3, 4, 5, 6, 7, 8, 9" in table.out
    assert [path.name for path in Path().iterdir()] == ["small.toml"]


def test_a_check_warns_of_rounds_in_which_nobody_can_come_back_and_a_run_of_them_ends_with_3(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    """Sync rounds of less than 0.7 ms, of which 270 s are hundreds of thousands."""
    columns = "device_id,seconds_per_sample,download_bytes_per_s,upload_bytes_per_s,latency_s"
    (tmp_path / "fast.csv").write_text(f"{columns}\nd,1e-9,1e12,1e12,0.0003\n", encoding="utf-8")
    config = write_small(
        tmp_path,
        devices={"profile": "fast.csv"},
        faults={"crash": 1},
        round={"rounds": 27, "seconds_per_round": 10},
        arm=[{"name": "global"}],
    )
    checked = driftscale("check", config, "--format", "json")
    facts = json.loads(checked.out)
    assert checked.code == 0
    assert facts["fleet: rounds of a run"] == "about 450,000, if every visit takes the median"
    warning = (
        "small: if every visit takes the least, a run has up to 449,990 rounds, over 100,000; raise "
        "devices.model_factor or shorten the run"
    )
    assert facts["warnings"] == warning
    assert warning in checked.err.splitlines()
    ended = driftscale("run", config, "--out", "out")
    assert ended.code == 3
    # A round sends out four visits: over-commitment is 1.3.
    assert (
        "round 101: no visit was absorbed since the run began (404 visits opened, of which 0 completed, "
        "404 dropped, 0 abandoned and 0 out): it is given up"
    ) in ended.err
    _, records = read_log(Path("out/global/seed-0/log.jsonl"))
    assert [record.round for record in records] == list(range(101))


def test_a_check_shows_the_labels_that_a_table_calls_the_classes(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    write_idx_folder(tmp_path / "images")
    write_label_trace(tmp_path / "labels.csv", kinds=("wild", "\x1b[31mred", "y" * 1000))
    facts = json.loads(driftscale("check", write_replay(tmp_path), "--format", "json").out)
    assert facts["labels"] == 3
    assert facts["labels seen"] == f"'{'y' * 50}…', '\\x1b[31mred', 'wild'"
    (tmp_path / "labels.csv").write_text("place,day,kind,seen\nhere,2021-01-01,x,1\nhere,2021-01-02,,1\n")
    refused = driftscale("check", write_replay(tmp_path))
    assert (refused.code, "labels.csv, row 2: kind is missing" in refused.error) == (2, True)


def test_a_check_of_a_folder_has_a_row_for_each_configuration_and_names_a_gpu_build_once(
    driftscale: Driftscale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / "configs" / name).mkdir(parents=True)
        write_small(tmp_path / "configs" / name, name=name).rename(tmp_path / "configs" / f"{name}.toml")
    checks = json.loads(driftscale("check", "configs", "--format", "json").out)
    assert [facts["name"] for facts in checks] == ["one", "two"]
    assert checks[0] == json.loads(driftscale("check", "configs/one.toml", "--format", "json").out)
    monkeypatch.setattr("torch.version.cuda", "12.8")
    ended = driftscale("check", "configs", "--seeds", "0..2")
    assert ended.err.count("torch is built for CUDA 12.8") == 1
    rows = ended.out.splitlines()
    assert [row.split()[1:6:2] for row in rows if "one" in row or "two" in row] == [
        ["one", "2", "3"],
        ["two", "2", "3"],
    ]


# -- parts and profiles -------------------------------------------------------------------------------------


def test_parts_in_json_have_a_kind_a_name_a_description_and_their_settings(driftscale: Driftscale) -> None:
    parts = json.loads(driftscale("parts", "--format", "json").out)
    keys = {"kind", "name", "about", "notes", "source", "parameters", "example"}
    assert all(set(part) == keys for part in parts)
    assert all(part["about"] for part in parts)
    names = {(part["kind"], part["name"]) for part in parts}
    assert names >= {
        ("clusterer", "single"),
        ("clusterer", "static"),
        ("clusterer", "fielding"),
        ("detector", "changed"),
        ("selector", "random"),
        ("aggregator", "fedavg"),
        ("pacing", "sync"),
        ("solver", "sgd"),
        ("solver", "fedprox"),
        ("model", "linear"),
        ("model", "mlp"),
        ("model", "cnn"),
        ("model", "resnet"),
        ("source", "digits"),
        ("source", "idx"),
        ("source", "label_replay"),
        ("source", "synthetic"),
        ("drift", "label_mix"),
        ("drift", "none"),
        ("availability", "diurnal"),
        ("schedule", "adaptive_lr"),
        ("concepts", "sine"),
    }
    [fielding] = [part for part in parts if part["name"] == "fielding"]
    assert fielding["parameters"]["trigger"]["default"] == '"centre_shift"'
    [shift] = [part for part in parts if (part["kind"], part["name"]) == ("trigger", "centre_shift")]
    assert shift["parameters"]["shift_from"]["default"] == '"previous"'
    [replay] = [part for part in parts if part["name"] == "label_replay"]
    assert replay["parameters"]["table"]["default"] == "required"


def test_parts_of_one_kind_are_all_of_that_kind(driftscale: Driftscale) -> None:
    parts = json.loads(driftscale("parts", "solver", "--format", "json").out)
    assert [part["name"] for part in parts] == [
        "adam",
        "apfl",
        "aso_memory",
        "clip",
        "ditto",
        "early_stopping",
        "feddc",
        "feddyn",
        "fedprox",
        "personal_layers",
        "scaffold",
        "sgd",
    ]
    table = driftscale("parts", "solver").out
    assert "momentum" in table
    assert "clusterer" not in table


def test_one_part_has_its_docstring_its_source_its_settings_and_an_example(driftscale: Driftscale) -> None:
    shown = driftscale("parts", "pacing", "fixed").out
    for text in (
        "pacing fixed: Closes each round `duration_s` after dispatch",
        "A round does not end earlier",
        "Source: ours.",
        "above 0, at most 1,000,000,000,000",
        '    pacing = { kind = "fixed", duration_s = 600 }',
    ):
        assert text in shown
    assert ">>>" not in shown
    part = json.loads(driftscale("parts", "pacing", "fixed", "--format", "json").out)
    assert (part["name"], part["source"]) == ("fixed", "ours.")


def test_a_part_of_ones_own_is_shown_by_its_module_and_class(
    driftscale: Driftscale, own_modules: None, tmp_path: Path
) -> None:
    (tmp_path / "my_parts.py").write_text(
        "from coordinator.selectors import Selector\n"
        "class Mine(Selector):\n"
        "    'The first ones.'\n"
        "    def select(self, candidates, wanted, view): ...\n"
    )
    shown = driftscale("parts", "selector", "my_parts:Mine").out
    assert shown.startswith("selector my_parts:Mine: The first ones.")
    assert 'selector = "my_parts:Mine"' in shown
    assert "my_parts" in driftscale("parts", "clusterer", "my_parts:Mine").error


def test_an_unknown_part_is_one_line_with_the_nearest_name_and_the_choices(driftscale: Driftscale) -> None:
    error = driftscale("parts", "selector", "ort").error
    assert "unknown selector 'ort'; choices: distance, fewest_updates, oort, power_of_choice, random" in error
    assert error.endswith("did you mean 'oort'?")


def test_profiles_are_reached_through_the_entry_point(driftscale: Driftscale) -> None:
    listed = json.loads(driftscale("profiles", "list", "--format", "json").out)
    assert {row["name"] for row in listed} >= {"smartphones", "iot", "datacenter", "uniform"}
    assert set(listed[0]) == {"name", "reference_model", "reference_flops", "source", "medians"}
    shown = json.loads(driftscale("profiles", "show", "iot", "--format", "json").out)
    assert set(shown) >= {"name", "reference_model", "source", "clients", "quantiles"}


# -- help ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "fragments"),
    [
        (
            (),
            (
                "run ",
                "report ",
                "check ",
                "detection ",
                "atlas ",
                "parts ",
                "profiles ",
                "traces ",
                "Exit codes: 0 done, 2 bad input, 3 a run",
            ),
        ),
        (("run",), ("--set", "round.rounds=100", "--seeds", "0..9", "--arms", "--data", "DRIFTSCALE_DATA")),
        (("run",), ("--out", "runs/<name>", "runs/<folder>", "--fresh", "--format", "kept")),
        (("run",), ("--explain", "Print all tables, with notes", "what was found in three lines")),
        (("report",), ("DIR", "--explain", "--format")),
        (("run",), ("--sweep", "round.participants=5,10", "--yes", "10,000 cells", "[sweep]")),
        (("check",), ("CONFIG", "--set", "--sweep", "--yes", "--data", "train nothing")),
        (("parts",), ("--format", "clusterer")),
        (("profiles",), ("list", "show", "check", "import-fedscale")),
        (("traces",), ("list", "inspect", "check")),
        (
            ("traces", "inspect"),
            ("DIR|CONFIG", "--html", "--set", "--data", "--seed", "--min-samples", "trains nothing"),
        ),
        (("cluster",), ("scheduler", "worker", "keys")),
        (("cluster", "worker"), ("ADDRESS", "--keys", "--insecure-cluster", "stored first")),
        (("profiles", "show"), ("the path of a table or a .toml",)),
        (("profiles", "import-fedscale"), ("--out", "client_device_capacity")),
    ],
)
def test_help_lists_arguments_and_options(
    driftscale: Driftscale, command: tuple[str, ...], fragments: tuple[str, ...]
) -> None:
    ended = driftscale(*command, "--help")
    assert ended.code == 0
    text = " ".join(ended.out.split())
    assert text.startswith(" ".join(("Usage: driftscale", *command)))
    for fragment in fragments:
        assert fragment.strip() in text
    assert "..." not in text.replace("[ARGS]...", "")  # no description is cut off


def test_no_command_shows_the_help_and_an_unknown_one_is_refused(driftscale: Driftscale) -> None:
    ended = driftscale()
    assert ended.code == 2
    assert "Usage: driftscale" in ended.out + ended.err
    ended = driftscale("rnu")
    assert ended.code == 2
    assert "No such command 'rnu'" in ended.err
