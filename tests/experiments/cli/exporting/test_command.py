"""`driftscale export`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from experiments.results.reading.not_recorded import DETECTION, LOG_MODELS, LOG_VISITS, NotRecordedError
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.synthetic_runs import a_directory, a_run, store


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run directory with two finished runs of two rounds, and one that is not finished."""
    directory = a_directory(tmp_path / "runs", ["global", "fielding"], [0])
    for arm in ("global", "fielding"):
        store(directory, a_run(arm, 0, [0.5, 0.75]))
    return directory.path


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trackers count as installed."""
    monkeypatch.setattr("experiments.tracking.registry.find_spec", lambda name: name)


@pytest.fixture
def _frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of which the visits were not recorded."""

    class ResultFrames:
        @classmethod
        def read(cls, path: Path) -> ResultFrames:
            return cls()

        def frame(self, name: str) -> pd.DataFrame:
            options = {
                "detection": ("decisions of detectors", DETECTION),
                "model_accuracy": ("accuracies of models by concept", LOG_MODELS),
                "visits": ("visits", LOG_VISITS),
            }
            if name in options:
                raise NotRecordedError("runs", *options[name])
            return pd.DataFrame({"arm": ["global"], name: [0.1]})

    fake = ModuleType("experiments.results.frames.result_frames")
    vars(fake).update(
        FRAMES=("summary", "rounds", "clients", "visits", "triggers", "detection", "model_accuracy"),
        ResultFrames=ResultFrames,
    )
    monkeypatch.setitem(sys.modules, "experiments.results.frames", ModuleType("frames"))
    monkeypatch.setitem(sys.modules, "experiments.results.frames.result_frames", fake)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.usefixtures("_frames")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_recorded_frames_are_written_and_nothing_else_changes(
    driftscale: Driftscale, runs: Path, kind: str
) -> None:
    before = contents(runs)
    ended = driftscale("export", runs, "--to", kind)
    assert ended.code == 0
    assert "left out: visits: runs: its runs recorded no visits; with round.log_visits = true" in ended.out
    after = contents(runs)
    written = {f"export/{name}.{kind}" for name in ("summary", "rounds", "clients", "triggers")}
    assert set(after) - set(before) == written
    assert {name: after[name] for name in before} == before
    driftscale("export", runs, "--to", kind)
    assert contents(runs) == after


@pytest.mark.usefixtures("_frames")
def test_named_frames_alone_are_written_into_out(driftscale: Driftscale, runs: Path, tmp_path: Path) -> None:
    ended = driftscale(
        "export", runs, "--to", "csv", "--frames", "rounds, summary", "--out", "there", "--format", "json"
    )
    assert json.loads(ended.out) == {"files": ["there/rounds.csv", "there/summary.csv"], "left_out": {}}
    assert contents(tmp_path / "there")["rounds.csv"] == b"arm,rounds\nglobal,0.1\n"
    assert not (runs / "export").exists()


@pytest.mark.usefixtures("_frames")
def test_frames_that_most_runs_lack_are_missed_only_if_they_are_named(
    driftscale: Driftscale, runs: Path
) -> None:
    ended = driftscale("export", runs, "--to", "csv", "--format", "json")
    assert set(json.loads(ended.out)["left_out"]) == {"visits"}
    named = driftscale("export", runs, "--to", "csv", "--frames", "model_accuracy")
    assert named.code == 2
    assert named.error.startswith("runs: its runs recorded no accuracies of models by concept; with round.")
    named = driftscale("export", runs, "--to", "csv", "--frames", "detection")
    assert named.code == 2
    assert named.error.startswith(
        "runs: its runs recorded no decisions of detectors; with a table [detection]"
    )


@pytest.mark.usefixtures("_frames")
def test_a_named_frame_that_was_not_recorded_is_an_error(driftscale: Driftscale, runs: Path) -> None:
    ended = driftscale("export", runs, "--to", "csv", "--frames", "rounds,visits")
    assert ended.code == 2
    assert ended.error.startswith("runs: its runs recorded no visits; with round.log_visits = true, runs")
    assert not (runs / "export").exists()


@pytest.mark.usefixtures("_frames")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["runs", "--to", "xml"], "--to: unknown format 'xml'; choices: csv, mlflow, parquet, tensorboard"),
        (["runs", "--to", "csv", "--frames", "round"], "--frames: unknown frame 'round'"),
        (["nowhere", "--to", "csv"], "nowhere: no such run directory"),
        (
            ["runs", "--to", "csv", "--out", "runs"],
            "runs: is a run directory; give another folder with --out",
        ),
        (["runs", "--to", "csv", "--out", "runs/experiment.toml"], "is a file; a folder is needed"),
    ],
)
def test_bad_input_is_one_line(
    driftscale: Driftscale, runs: Path, arguments: list[str], problem: str
) -> None:
    before = contents(runs)
    ended = driftscale("export", *arguments)
    assert ended.code == 2
    assert problem in ended.error
    assert contents(runs) == before


@pytest.mark.parametrize("name", ["tensorboard", "mlflow"])
def test_a_tracker_that_is_not_installed_is_one_line(
    driftscale: Driftscale, runs: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("experiments.tracking.registry.find_spec", lambda name: None)
    for command, option in ((["export", "runs", "--to"], "--to"), (["run", "x.toml", "--track"], "--track")):
        ended = driftscale(*command, name)
        assert (ended.code, ended.error) == (
            2,
            f"{option} {name}: {name} is not installed; the extra `{name}` installs it: "
            f"pip install 'driftscale[{name}]'",
        )


def test_frames_are_not_for_trackers(driftscale: Driftscale, runs: Path, installed: None) -> None:
    ended = driftscale("export", runs, "--to", "mlflow", "--frames", "rounds")
    assert (ended.code, ended.error) == (
        2,
        "--frames: mlflow gets the rounds of each run; frames are for csv and parquet",
    )


def test_a_tracker_that_fails_names_the_run(
    driftscale: Driftscale, runs: Path, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        def begun(self, facts: object) -> None:
            raise ValueError("the server\nis gone")

    monkeypatch.setattr("experiments.cli.exporting.command.make_tracker", lambda *names: Failing())
    ended = driftscale("export", "runs", "--to", "tensorboard")
    assert (ended.code, ended.error) == (
        3,
        "runs: global, seed 0: tensorboard failed: ValueError: the server is gone",
    )
