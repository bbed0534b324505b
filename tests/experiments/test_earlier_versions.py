"""Run directories and configurations of earlier versions: worker processes, settings with other defaults."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import CheckpointError, ConfigurationError
from experiments.config import Experiment, parse_experiment
from experiments.reading import load_experiment
from experiments.results.pages import write_results
from experiments.results.reading.deciding import run_identities
from experiments.results.reading.recorded import up_to_date
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import check, plan_run
from experiments.running.runner import run_plan
from tests.experiments.small import Story, small, small_table, write_drifting

RECORDED = Path(__file__).parent / "fixtures" / "by-a-worker"
"""`small`, trained by a worker process: the arm global is finished, fielding has a checkpoint of round 2."""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    shutil.copytree(RECORDED, tmp_path / "out")
    return tmp_path / "out"


def numbers(log: bytes) -> Iterator[Any]:
    """All values of the lines; numbers approximately, since processors round differently.

    Without the header's `onsets`, which recorded logs do not have yet.
    """
    for line in log.splitlines():
        yield from _leaves({key: item for key, item in json.loads(line).items() if key != "onsets"})


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, list):
        yield len(value)
        for item in value:
            yield from _leaves(item)
    else:
        yield pytest.approx(value, rel=1e-5) if isinstance(value, float) else value


def test_a_recorded_configuration_has_retired_settings(recorded: Path) -> None:
    text = (recorded / "experiment.toml").read_text()
    assert "workers = 1\n" in text
    assert 'backend = "gloo"\n' in text
    table = RunDirectory(recorded).experiment()
    assert "workers" not in table["executor"]
    assert parse_experiment(table, "recorded").executor.worker_timeout_s == 60


def test_a_recorded_run_is_reported(recorded: Path) -> None:
    summary = write_results(RunDirectory(recorded))
    assert [row.arm for row in summary.rows] == ["global"]
    assert (recorded / "report.html").is_file()


def test_retired_keys_of_earlier_manifests_are_ignored(recorded: Path) -> None:
    path = recorded / "manifest.json"
    today = RunDirectory(recorded).manifest()
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_factor": 1.0, "trace_sha256": {}}))
    assert RunDirectory(recorded).manifest() == today


def test_an_unfinished_run_with_a_checkpoint_of_an_earlier_format_is_refused_and_kept(recorded: Path) -> None:
    run = recorded / "fielding" / "seed-0"
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    refused = r"fielding, seed 0: .*round-000002-.*: its format is 2, this version .* has 11; --fresh"
    with pytest.raises(CheckpointError, match=refused):
        run_plan(plan_run(small(), recorded, None, Path, fresh=False), Story())
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_a_recorded_run_that_begins_anew_writes_the_log_of_today_beside_one_that_is_kept(
    recorded: Path, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in recorded.rglob("log.jsonl")}
    shutil.rmtree(recorded / "fielding" / "seed-0" / "checkpoint")
    story = Story()
    run_plan(plan_run(small(), recorded, None, Path, fresh=False), story)
    assert ("skipped", "global", 0) in story.told
    run_plan(plan_run(small(), tmp_path / "today", None, Path, fresh=False), Story())
    for path, begun in before.items():
        today = (tmp_path / "today" / path.relative_to(recorded)).read_bytes()
        # Another processor may have rounded the recorded rounds differently.
        assert list(numbers(today))[: len(list(numbers(begun)))] == list(numbers(begun))
        assert path.read_bytes() in (begun, today)


def test_a_recorded_configuration_is_checked_and_run_again(recorded: Path) -> None:
    experiment = load_experiment(recorded / "experiment.toml")
    assert experiment == small(executor={"worker_timeout_s": 60.0})
    check(experiment, Path, scratch=recorded)


def with_executor(**executor: Any) -> Experiment:
    return parse_experiment(small_table(executor=executor), "mine.toml")


@pytest.mark.parametrize(
    ("executor", "named"),
    [
        ({"workers": 2}, "workers = 2"),
        ({"workers": "two"}, "workers = 'two'"),
        ({"backend": "gloo"}, "backend = 'gloo'"),
        ({"backend": "nccl", "workers": 0}, "backend = 'nccl'"),
    ],
)
def test_an_error_about_worker_processes_names_their_replacements(
    executor: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        with_executor(**executor)
    message = str(caught.value)
    assert message.startswith(f"mine.toml: executor: {named} is a setting of worker processes")
    assert all(name in message for name in ("--jobs", "executor.threads", "torchrun"))


def test_a_configuration_with_zero_worker_processes_is_accepted(tmp_path: Path) -> None:
    experiment = with_executor(workers=0)
    assert experiment == small()
    assert "workers" not in experiment.resolved()["executor"]


def test_a_retired_setting_is_refused_over_a_recorded_configuration_too(recorded: Path) -> None:
    with pytest.raises(ConfigurationError, match="workers = 2 is a setting of worker processes"):
        load_experiment(recorded / "experiment.toml", ["executor.workers=2"])


@pytest.mark.parametrize(
    ("recorded", "today"),
    [
        ({"kind": "label_subsets", "folder": "mnist"}, {"reuse": True}),
        ({"kind": "label_subsets", "folder": "mnist", "reuse": False}, {"reuse": False}),
        ({"kind": "sea", "feddrift_files": False}, {"noise": 0.1, "thresholds": [9.0, 8.0, 7.0, 9.5]}),
    ],
)
def test_recorded_concepts_keep_their_samples(
    recorded: dict[str, Any], today: dict[str, Any], tmp_path: Path
) -> None:
    path = write_drifting(tmp_path, name="experiment", trace={"concepts": recorded})
    concepts = load_experiment(path).resolved()["trace"]["concepts"]
    assert {key: concepts[key] for key in today} == today


def test_a_recorded_threshold_of_fielding_is_one_of_its_trigger(recorded: Path) -> None:
    assert "threshold = 0.3333333333333333\n" in (recorded / "experiment.toml").read_text()
    for table in (
        RunDirectory(recorded).experiment(),
        load_experiment(recorded / "experiment.toml").resolved(),
    ):
        [_, fielding] = table["arm"]
        trigger = {"kind": "centre_shift", "threshold": 1 / 3, "shift_from": "previous"}
        assert fielding["clusterer"]["trigger"] == trigger
        assert not {"threshold", "shift_from"} & set(fielding["clusterer"])


def test_a_configuration_recorded_without_test_on_has_the_runs_of_one_with_present() -> None:
    today = small().resolved()
    before = {**today, "trace": {key: value for key, value in today["trace"].items() if key != "test_on"}}
    assert before != today
    assert run_identities(up_to_date(before)) == run_identities(today)
    upcoming = small(trace={"test_on": "next"}).resolved()
    assert run_identities(up_to_date(upcoming)) != run_identities(today)


def test_recorded_samples_that_no_setting_gives_any_more_are_refused(tmp_path: Path) -> None:
    concepts = {"kind": "sea", "feddrift_files": True}
    path = write_drifting(tmp_path, name="experiment", trace={"concepts": concepts})
    with pytest.raises(ConfigurationError, match="unknown key 'feddrift_files'; choices: noise, thresholds"):
        load_experiment(path)
