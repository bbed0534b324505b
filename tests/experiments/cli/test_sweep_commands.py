"""`run` and `check` with --sweep and with a table [sweep]."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from emulator.errors import InputError
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.machine import allow_open_files
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import write_drifting, write_small

THRESHOLD = "arm.fielding.clusterer.trigger.threshold"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_small(tmp_path)


def test_a_sweep_is_run_into_one_table_with_a_run_directory_for_each_cell(
    driftscale: Driftscale, config: Path
) -> None:
    command = ("run", config, "--sweep", f"{THRESHOLD}=0.1,0.25", "--sweep", "round.participants=2,3")
    ended = driftscale(*command)
    assert ended.code == 0, ended.err
    cells = [f"small,threshold={low},participants={number}" for low in (0.1, 0.25) for number in (2, 3)]
    assert sorted(path.name for path in Path("runs/small-sweep").iterdir()) == [
        "plotly.min.js",
        *cells,
        "table.html",
        "table.json",
    ]
    assert all((Path("runs/small-sweep") / cell / "report.html").exists() for cell in cells)
    assert json.loads(Path("runs/small-sweep/table.json").read_text())["name"] == "small"
    _, table, found = ended.out.split("\n\n")
    assert table.splitlines()[0] == "small: mean accuracy over virtual time, and gains"
    columns = ["arm", "participants", "threshold", "accuracy", "gain", "re-clustered"]
    assert table.splitlines()[2].split() == columns
    rows = [(line.split()[0], line[-19:].strip()) for line in table.splitlines()[4:]]
    fired = [("global", "-"), ("fielding", "1/1 (2 % or more)"), ("fielding", "0/1 (up to 98 %)")]
    assert rows == fired * 2
    best, largest, smallest, path = found.splitlines()
    assert best.endswith("the best other arm (best of 4 and of 2 cells, chosen on these seeds).")
    assert (largest.split(":")[0], smallest.split(":")[0]) == (
        "Largest gain over global",
        "Smallest gain over global",
    )
    assert path == "table: runs/small-sweep/table.html"
    lines = [line for line in ended.err.splitlines() if line.startswith("[")]
    assert [line.partition(": done")[0] for line in lines] == [
        "[1/6] threshold=0.1,participants=2: global, seed 0",
        "[2/6] threshold=0.1,participants=2: fielding, seed 0",
        "[3/6] threshold=0.1,participants=3: global, seed 0",
        "[4/6] threshold=0.1,participants=3: fielding, seed 0",
        "[5/6] threshold=0.25,participants=2: fielding, seed 0",
        "[6/6] threshold=0.25,participants=3: fielding, seed 0",
    ]
    again = driftscale(*command)
    assert again.err.count("finished earlier, kept") == 6


def test_a_table_in_the_file_is_run_and_checked(driftscale: Driftscale, tmp_path: Path) -> None:
    config = write_small(tmp_path, sweep={"round.participants": [2, 3]})
    ended = driftscale("run", config, "--out", "out", "--arms", "global")
    assert ended.code == 0, ended.err
    assert sorted(path.parent.name for path in Path("out").glob("*/experiment.toml")) == [
        "small,participants=2",
        "small,participants=3",
    ]
    assert [path.parent.parent.name for path in Path("out").glob("*/*/*/DONE")] == ["global", "global"]
    facts = json.loads(driftscale("check", config, "--format", "json").out)
    assert [fact["client updates in all"] for fact in facts] == [16, 24]
    assert [fact["name"] for fact in facts] == ["small,participants=2", "small,participants=3"]


def test_the_table_of_check_shows_the_values_of_cells(driftscale: Driftscale, config: Path) -> None:
    ended = driftscale("check", config, "--sweep", f"{THRESHOLD}=0.1,never")
    assert ended.code == 0, ended.err
    assert "small: ok" in ended.out
    rows = [[cell.strip() for cell in line.split("│")[1:3]] for line in ended.out.splitlines() if "│" in line]
    assert [row[0] for row in rows] == ["0.1", "never"]


def test_a_cell_that_does_not_fit_its_world_is_named_before_anything_is_touched(
    driftscale: Driftscale, config: Path
) -> None:
    for command in ("run", "check"):
        ended = driftscale(command, config, "--sweep", "round.participants=3,13")
        assert (ended.code, ended.error) == (
            2,
            f"{config} (small,participants=13): round.participants = 13: more than the 12 clients of the "
            f"trace",
        )
    assert [*Path("runs").glob("*/*")] == []


def test_a_sweep_and_one_experiment_do_not_share_a_folder(driftscale: Driftscale, config: Path) -> None:
    assert driftscale("run", config, "--out", "one").code == 0
    ended = driftscale("run", config, "--out", "one", "--sweep", "round.participants=2,3")
    assert ended.error.startswith("one is the run directory of one experiment; take another --out for a ")
    assert driftscale("run", config, "--out", "many", "--sweep", "round.participants=2,3").code == 0
    before = sorted(Path("many").iterdir())
    ended = driftscale("run", config, "--out", "many")
    assert ended.error.startswith("many holds several run directories, as of a sweep; take another --out")
    assert sorted(Path("many").iterdir()) == before


def test_bad_sweeps_are_refused_in_one_line(driftscale: Driftscale, config: Path) -> None:
    ended = driftscale("run", config, "--sweep", "report.window=3,5")
    assert (ended.code, ended.error) == (
        2,
        "--sweep report.window=3,5: no arm reads report.window, so it makes no difference to any run; leave "
        "it out, or set it with --set",
    )
    many = ",".join(map(str, range(1, 102)))
    sweep = ("--sweep", f"round.rounds={many}", "--sweep", f"round.max_wait_days={many}")
    ended = driftscale("check", config, *sweep)
    assert ended.code == 2
    assert ended.error.startswith("10,201 cells (101 x 101), and a sweep has at most 10,000; sweep fewer")
    ended = driftscale("run", config, *sweep[:2], "--sweep", f"round.nope={many}", "--yes")
    assert "round: unknown key 'nope'" in ended.error


def test_a_sweep_is_not_played_under_torchrun(
    driftscale: Driftscale, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    ended = driftscale("run", config, "--sweep", "round.participants=2,3")
    assert ended.error == f"{config}: is a sweep; under torchrun, run one configuration at a time"


def test_a_folder_is_swept_configuration_by_configuration(driftscale: Driftscale, tmp_path: Path) -> None:
    folder = tmp_path / "drifts"
    write_drifting(folder, name="beta", seeds=[0])
    write_drifting(folder, name="alpha", seeds=[0], trace={"concepts": "circle"})
    ended = driftscale("run", folder, "--sweep", "round.participants=2,3")
    assert ended.code == 0, ended.err
    assert sorted(path.parent.name for path in Path("runs/drifts").glob("*/summary.json")) == [
        *("alpha,participants=2", "alpha,participants=3"),
        *("beta,participants=2", "beta,participants=3"),
    ]


def test_a_command_may_open_as_many_files_as_it_has_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (100, 1000))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limit: limits.append(limit))
    allow_open_files(700, "run directories")
    assert limits == [(956, 1000)]
    with pytest.raises(InputError) as error:
        allow_open_files(1000, "run directories")
    assert str(error.value) == (
        "1,000 run directories need 1,256 open files at once, and this system allows a process 1,000 (ulimit "
        "-Hn); raise that limit, or take fewer at a time"
    )


def test_a_cell_that_adopts_all_its_runs_has_the_command_in_its_manifest(
    driftscale: Driftscale, config: Path
) -> None:
    rate, threshold = "arm.global.training.learning_rate", "arm.fielding.clusterer.trigger.threshold"
    driftscale("run", config, "--sweep", f"{rate}=0.1", "--sweep", f"{threshold}=0.1,0.2")
    driftscale("run", config, "--sweep", f"{rate}=0.1,0.2", "--sweep", f"{threshold}=0.1")
    ended = driftscale("run", config, "--sweep", f"{rate}=0.1,0.2", "--sweep", f"{threshold}=0.1,0.2")
    assert ended.code == 0
    cell = RunDirectory(Path("runs/small-sweep/small,threshold=0.2,learning_rate=0.2"))
    manifest = cell.manifest()
    assert manifest is not None
    assert [command.arguments[-1] for command in manifest.commands] == [f"{threshold}=0.1,0.2"]
    assert len(cell.reported_pairs()) == 2
