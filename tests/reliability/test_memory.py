"""Out of memory in a task group: the run stops and can be resumed, or trains the group in halves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from emulator.errors import ResumableError
from executor.training.dense import DenseStrategy
from experiments.config import Experiment
from experiments.locating import locator
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from tests.experiments.small import Story, small, write_small
from tests.reliability.kills import PATIENCE_S, ROOT

ROUNDS = 6


def experiment(policy: str) -> Experiment:
    return small(
        round={"rounds": ROUNDS, "participants": 8, "over_commit": 1},
        checkpoint={"every_rounds": 1},
        executor={"strategy": "dense", "on_out_of_memory": policy},
        arm=[{"name": "global"}, {"name": "other"}],
    )


def play(policy: str, out: Path) -> Story:
    story = Story()
    run_plan(plan_run(experiment(policy), out, None, locator(None, None), fresh=False), story)
    return story


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From the third task group on, groups of more than three clients run out of memory.

    Returns the sizes of all groups tried.
    """
    tried: list[int] = []
    train = DenseStrategy.train

    def train_if_it_fits(self: DenseStrategy, group: Any) -> Any:
        tried.append(len(group))
        if len(tried) > 2 and len(group) > 3:
            raise torch.OutOfMemoryError("no room")
        return train(self, group)

    monkeypatch.setattr(DenseStrategy, "train", train_if_it_fits)
    return tried


def test_without_leave_to_halve_the_run_stops_and_is_resumed_when_there_is_memory(
    tmp_path: Path, little_memory: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ResumableError) as stopped:
        play("stop", tmp_path / "out")
    message = str(stopped.value)
    assert message.startswith(
        "global, seed 0 stopped in round 2: out of memory while training 8 clients side by side"
    )
    assert "executor.chunk = 25" in message
    assert 'executor.on_out_of_memory = "halve"' in message
    assert message.endswith("It resumes from its last checkpoint, round 2, when the command is given again")
    assert RunDirectory(tmp_path / "out").failure("global", 0) is None
    monkeypatch.undo()
    story = play("stop", tmp_path / "out")
    assert story.told[:2] == [("run", "global", 0), ("going on", "global", 0, 2)]
    play("stop", tmp_path / "whole")
    logs = [
        RunDirectory(tmp_path / out).run_file("global", 0, "log.jsonl").read_bytes()
        for out in ("out", "whole")
    ]
    assert logs[0] == logs[1]


def test_a_run_that_stopped_for_memory_may_be_resumed_in_halves_which_is_noted_and_counted(
    tmp_path: Path, little_memory: list[int]
) -> None:
    with pytest.raises(ResumableError):
        play("stop", tmp_path / "out")
    story = play("halve", tmp_path / "out")
    assert little_memory[3:10] == [8, 4, 2, 2, 4, 2, 2]
    directory = RunDirectory(tmp_path / "out")
    assert directory.read_timing("global", 0).halved_cohorts == 3 * (ROUNDS - 2)
    assert directory.read_timing("other", 0).halved_cohorts == 3 * ROUNDS
    assert (
        "note",
        f"global, seed 0: {3 * (ROUNDS - 2)} task groups were trained in halves for lack of memory, which "
        f"may have changed results by rounding",
    ) in story.told


def test_memory_that_runs_out_anywhere_else_stops_the_run_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("experiments.running.attempt.Attempt.append", fail)
    with pytest.raises(ResumableError, match=r"stopped in round 0: out of memory\. It begins again when"):
        play("stop", tmp_path / "out")


LIMITED = """
import resource, sys
from pathlib import Path
from experiments.cli import main

def run(*arguments):
    sys.argv = ["driftscale", "run", *arguments]
    try:
        main()
    except SystemExit as ended:
        print("ended with", ended.code, file=sys.stderr)

small, large = sys.argv[1:]
run(small, "--out", small + "-out")
address_space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = address_space + 200 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for policy in ("stop", "halve"):
    run(large, "--out", large + "-out", "--set", f"executor.on_out_of_memory={policy}")
"""
"""A small run comes first: the address space that is mapped after it is that of the libraries."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited, and measured, on Linux")
def test_a_process_with_too_little_memory_for_a_cohort_does_as_it_is_told(tmp_path: Path) -> None:
    # The batches of 15 clients take 1.5 GB, those of two clients 0.2 GB.
    large = write_small(
        tmp_path,
        name="large",
        trace={"clients": 20, "samples_per_step": 500},
        training={"model": "linear", "local_steps": 800, "batch_size": 500},
        round={"rounds": 1, "participants": 15, "over_commit": 1},
        arm=[{"name": "global"}],
    ).rename(tmp_path / "large.toml")
    process = subprocess.run(
        [sys.executable, "-c", LIMITED, str(write_small(tmp_path)), str(large)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert "Traceback" not in process.stderr
    _, stopped, halved, end = process.stderr.split("ended with")
    assert stopped.splitlines()[0] == " 0"
    last = stopped.splitlines()[-1]
    assert last.startswith(
        "error: global, seed 0 stopped in round 0: out of memory while training 15 clients"
    )
    assert "executor.chunk = 25" in last
    assert last.endswith("It begins again when the command is given again")
    assert halved.splitlines()[0] == " 3"
    assert "task groups were trained in halves for lack of memory" in halved
    assert end == " 0\n"
