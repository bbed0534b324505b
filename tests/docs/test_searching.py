"""The recipe of docs/searching.md, as it stands there, with a tiny configuration and three trials."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

from experiments.reading import load_experiment
from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.cli.conftest import Driftscale, driftscale  # noqa: F401  (a fixture)
from tests.experiments.small import write_small

ROOT = Path(__file__).resolve().parents[2]
CONFIG = Path("experiments/configs/digits.toml")


def recipe() -> str:
    text = (ROOT / "docs" / "searching.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return str(code)


def searched(folder: Path, commands: list[list[str]], trials: int = 3) -> Any:
    """Run the recipe with this number of trials; returns its study, and adds its commands to `commands`."""
    code, documented = recipe(), "n_trials=30"
    assert code.count(documented) == 1
    (folder / "search.py").write_text(code.replace(documented, f"n_trials={trials}"), encoding="utf-8")
    before = len(commands)
    study = runpy.run_path(str(folder / "search.py"))["study"]
    assert len(commands) - before == len(study.trials) == trials
    return study


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, driftscale: Driftscale) -> list[list[str]]:  # noqa: F811
    """The commands of the recipe, played in this process, as another one takes seconds to start."""
    given: list[list[str]] = []
    start_process = subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        program, *arguments = command
        if program != "driftscale":  # driftscale itself asks git for a commit
            return start_process(command, **options)
        assert options == {"check": True, "stdout": subprocess.DEVNULL}
        given.append(arguments)
        ended = driftscale(*arguments)
        if ended.code != 0:
            raise subprocess.CalledProcessError(ended.code, command, ended.out, ended.err)
        return subprocess.CompletedProcess(command, ended.code)

    monkeypatch.setattr(subprocess, "run", run)
    return given


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / CONFIG).parent.mkdir(parents=True)
    return write_small(tmp_path).rename(tmp_path / CONFIG)


def logs(folder: Path) -> dict[Path, tuple[bytes, int]]:
    """Content and time of modification of each log below `folder`."""
    return {
        path.relative_to(folder): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("log.jsonl")
    }


def test_the_recipe_plays_each_trial_with_its_settings_and_finds_the_best(
    tmp_path: Path, config: Path, commands: list[list[str]]
) -> None:
    study = searched(tmp_path, commands)
    for trial in study.trials:
        out = tmp_path / "runs" / "search" / f"trial-{trial.number}"
        summary = json.loads((out / "summary.json").read_text())
        assert trial.value == summary["arms"]["fielding"]["gain_pp"]["mean"]
        experiment = RunDirectory(out).experiment()
        reference, fielding = experiment["arm"]
        assert (
            fielding["clusterer"]["trigger"]["threshold"]
            == trial.params["arm.fielding.clusterer.trigger.threshold"]
        )
        assert fielding["training"]["learning_rate"] == trial.params["arm.fielding.training.learning_rate"]
        assert reference["training"]["learning_rate"] == experiment["training"]["learning_rate"]
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 3
    assert study.best_value == max(trial.value for trial in study.trials)


def test_the_recipe_started_again_makes_the_same_trials_and_plays_nothing_twice(
    tmp_path: Path, config: Path, commands: list[list[str]]
) -> None:
    first = searched(tmp_path, commands)
    before = logs(tmp_path)
    again = searched(tmp_path, commands)
    assert [(trial.params, trial.value) for trial in again.trials] == [
        (trial.params, trial.value) for trial in first.trials
    ]
    assert logs(tmp_path) == before
    assert len(before) == 3 * 2 * 3  # trials x arms x seeds


def test_the_recipe_fits_the_shipped_configuration_and_searches_on_seeds_that_it_does_not_report(
    tmp_path: Path, config: Path, commands: list[list[str]]
) -> None:
    searched(tmp_path, commands, trials=1)
    reported = load_experiment(ROOT / CONFIG).seeds
    for _, path, *options in commands:
        assert path == str(CONFIG)
        settings = [option.removeprefix("--set=") for option in options if option.startswith("--set=")]
        experiment = load_experiment(ROOT / CONFIG, settings)
        assert {"global", "fielding"} <= {arm.name for arm in experiment.arm}
    for trial in (tmp_path / "runs" / "search").iterdir():
        assert not {*RunDirectory(trial).seeds()} & {*reported}
