"""Sweeps: the same bytes one after another, in parallel, and despite kills; no leftovers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.running.played import logs
from tests.experiments.small import write_small
from tests.reliability.commands import Command, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")]

SWEEP = ("--sweep", "arm.fielding.clusterer.trigger.threshold=0.1,0.25", "--sweep", "round.participants=2,3")
CELLS = [f"small,threshold={low},participants={number}" for low in (0.1, 0.25) for number in (2, 3)]
ROUNDS = 30


class Sweeping:
    """Commands that run the same sweep, two seeds of each cell, and what they leave."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._config = write_small(
            folder, seeds=[0, 1], round={"rounds": ROUNDS}, checkpoint={"every_rounds": 5}
        )
        self.started: list[Command] = []

    def start(self, name: str, *options: str) -> Command:
        arguments = ["run", self._config, "--out", self._folder / name, *SWEEP, *options]
        number = len(self.started)
        command = Command(*arguments, temporary=self._folder / f"temporary-{number}")
        self.started.append(command)
        return command

    def run(self, name: str, *options: str) -> dict[str, bytes]:
        """Run the sweep to its end; the bytes of all logs, by cell and log."""
        command = self.start(name, *options)
        assert command.wait() == 0, command.stderr
        return self.logs(name)

    def logs(self, name: str) -> dict[str, bytes]:
        out = self._folder / name
        assert sorted(path.name for path in out.iterdir() if path.is_dir()) == CELLS
        return {f"{cell}/{log}": content for cell in CELLS for log, content in logs(out / cell).items()}

    def num_log_lines(self, name: str) -> int:
        return sum(log.read_bytes().count(b"\n") for log in (self._folder / name).glob("*/*/*/log.jsonl"))

    def has_log_lines(self, name: str, number: int) -> bool:
        return self.num_log_lines(name) >= number

    def wait(self, command: Command, condition: Callable[[], bool]) -> None:
        """Wait for `condition`; fails if the command ends before."""

        def holds() -> bool:
            has_ended = command.process.poll() is not None
            assert condition() or not has_ended, command.stderr
            return condition()

        wait_until(holds)

    def files(self, name: str) -> list[str]:
        out = self._folder / name
        return sorted(str(file.relative_to(out)) for file in out.rglob("*") if file.is_file())


def has_lines(command: Command, number: int) -> bool:
    return len(command.lines) >= number


@pytest.fixture
def sweeping(tmp_path: Path) -> Iterator[Sweeping]:
    sweeping = Sweeping(tmp_path)
    yield sweeping
    for command in sweeping.started:
        command.kill_all()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], list[str]]:
    """The logs and the names of the files of a sweep that nothing disturbs, one run after another."""
    sweeping = Sweeping(tmp_path_factory.mktemp("whole"))
    return sweeping.run("whole"), sweeping.files("whole")


@pytest.mark.parametrize(("jobs", "times"), [(1, 1), pytest.param(2, 4, marks=pytest.mark.sweep)])
def test_a_sweep_that_is_killed_ends_as_if_it_never_had_been(
    jobs: int, times: int, sweeping: Sweeping, whole: tuple[dict[str, bytes], list[str]]
) -> None:
    of_all, files = whole
    lines, draw = sum(log.count(b"\n") for log in of_all.values()), np.random.default_rng(jobs)
    assert len(of_all) == len(CELLS) * 2 * 2
    for _ in range(times):
        command = sweeping.start("killed", "--jobs", str(jobs))
        enough = sweeping.num_log_lines("killed") + draw.integers(lines // 10, lines // 5)
        sweeping.wait(command, partial(sweeping.has_log_lines, "killed", enough))
        command.kill_all()
        assert "Traceback" not in command.stderr
    assert sweeping.run("killed", "--jobs", str(jobs)) == of_all
    assert sweeping.files("killed") == files


def test_a_sweep_in_parallel_shares_its_runs_and_comes_to_the_same_bytes(
    sweeping: Sweeping, whole: tuple[dict[str, bytes], list[str]]
) -> None:
    command = sweeping.start("parallel", "--jobs", "2")
    assert command.wait() == 0, command.stderr
    ends = [line for line in command.lines if line.startswith("[")]
    assert len(ends) == (4 + 2) * 2  # of the 16 runs: fielding in each cell, global once per number
    assert ends[-1].startswith("[12/12]")
    assert sum(": global, seed 0: done" in line for line in ends) == 2
    assert (sweeping.logs("parallel"), sweeping.files("parallel")) == whole


@pytest.mark.sweep
def test_a_sweep_that_is_interrupted_between_any_two_lines_resumes(
    sweeping: Sweeping, whole: tuple[dict[str, bytes], list[str]]
) -> None:
    for number in range(6):
        command = sweeping.start("stopped", "--jobs", str(1 + number % 2))
        sweeping.wait(command, partial(has_lines, command, 4 + number))
        command.process.terminate()
        assert command.wait() in (130, 0), command.stderr
    assert sweeping.run("stopped") == whole[0]
