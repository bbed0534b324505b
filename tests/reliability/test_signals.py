"""Signals to a process: it stores its run, prints how to resume it, and ends with 130."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from experiments.locating import locator
from experiments.reading import load_experiment
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from tests.experiments.small import Story, write_small
from tests.reliability.kills import PATIENCE_S, Killing, results

LONG: dict[str, Any] = {"round": {"rounds": 40}, "arm": [{"name": "fielding", "clusterer": "fielding"}]}


@pytest.fixture
def killing(tmp_path: Path) -> Killing:
    return Killing(write_small(tmp_path, **LONG), tmp_path / "out", every_round=False)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.sweep)])
def test_a_signal_stores_the_run_and_the_same_command_resumes_it(
    number: signal.Signals, killing: Killing, tmp_path: Path
) -> None:
    code, stderr = killing.signal_when_stopped("stop_in_round(10)", number, is_real=True)
    assert code == 130, stderr
    assert "Traceback" not in stderr
    assert "stopping after this step, with a checkpoint; a second signal stops at once" in stderr
    assert stderr.splitlines()[-1].startswith("interrupted; finished runs are kept; the same command resumes")
    directory = RunDirectory(tmp_path / "out")
    [file] = directory.checkpoints("fielding", 0).files()  # no interval had passed: the stop wrote it
    stored = int(file.name.split("-")[1])
    assert stored in (10, 11)  # the step that was finished may have logged one more round
    killing.finish()
    assert f"fielding, seed 0: resuming from round {stored}" in killing.stderr[-1]
    plan = plan_run(
        load_experiment(tmp_path / "small.toml"), tmp_path / "whole", None, locator(None, None), fresh=False
    )
    run_plan(plan, Story())
    assert (
        directory.run_file("fielding", 0, "log.jsonl").read_bytes()
        == plan.directory.run_file("fielding", 0, "log.jsonl").read_bytes()
    )


@pytest.mark.slow
def test_two_signals_at_once_end_at_once_and_lose_no_checkpoint(tmp_path: Path) -> None:
    killing = Killing(write_small(tmp_path, **LONG), tmp_path / "out")
    code, stderr = killing.signal_when_stopped("stop_in_round(10)", signal.SIGINT, signal.SIGTERM)
    assert code == 130, stderr
    assert "Traceback" not in stderr
    assert "interrupted; finished runs are kept" in stderr
    killing.finish()
    assert "resuming from round" in killing.stderr[-1]
    assert "cannot resume" not in killing.stderr[-1]


@pytest.mark.slow
def test_a_second_process_in_the_directory_ends_with_2_and_the_first_one_continues(
    killing: Killing, tmp_path: Path
) -> None:
    with killing.start("stop_in_round(1)") as first:
        killing.wait_until_stopped(first)
        code, stderr = killing.run_in_process()
        first.send_signal(signal.SIGCONT)
        _, stderr_of_first = first.communicate(timeout=PATIENCE_S)
    assert code == 2
    [line] = stderr.splitlines()
    assert f"{tmp_path / 'out'}: another process (process {first.pid}) is running into this directory" in line
    assert first.returncode == 0, stderr_of_first
    assert results(tmp_path / "out")["summary"]["arms"]["fielding"]["seeds"] == 1


@pytest.mark.slow
def test_a_signal_while_the_clients_are_drawn_ends_soon_and_tells_how_to_resume(tmp_path: Path) -> None:
    killing = Killing(write_small(tmp_path, **LONG), tmp_path / "out")
    code, stderr = killing.signal_when_stopped("stop_before_drawing()", signal.SIGTERM)
    assert code == 130, stderr
    assert stderr.splitlines() == [stderr.strip()]
    assert stderr.startswith("interrupted; finished runs are kept; the same command resumes")
    assert not (tmp_path / "out" / "global").exists()
