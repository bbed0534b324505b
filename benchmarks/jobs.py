"""The workloads runs-2-jobs and runs-8-of-30s: runs in parallel, against the same runs in sequence.

A turn is one `driftscale run` into a fresh folder and in a fresh process, from its start to its end. CPU time
and peak memory are those of the runs, from their `timing.json`; the peak of a turn is that of its largest
run.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Measured, Say, interleaved
from benchmarks.memory import BYTES_PER_MB, in_a_process, output_of
from experiments.results.reading.run_directory import RunDirectory

JOBS = 2
ONE_AFTER_ANOTHER = "the same command with --jobs 1"
MOST_REPEATS = 5
"""Most repeats of a figure whose turn takes long."""

FROZEN_DIGITS = Path(__file__).with_name("digits_15_runs.toml")
"""The bench's own configuration of 15 runs."""

LONG_RUNS = ("--arms", "global,fielding", "--seeds", "0..3", "--set", "round.rounds=4250")
"""Options of a command that plays eight runs of about 30 s each."""


@dataclass(frozen=True)
class Turn:
    """Costs of a whole command: wall seconds, CPU seconds of all runs, and peak memory of the largest run."""

    wall_s: float
    cpu_s: float
    peak_bytes: float


@dataclass(frozen=True)
class Contest:
    """Commands that play the same runs and differ only in `--jobs`.

    `options` are those that all commands have; `turns` are the turns so far, by number of jobs.
    """

    options: Sequence[str] = ()
    turns: dict[int, list[Turn]] = field(default_factory=dict)

    def command(self, jobs: int) -> Measured:
        """A function that plays a command with `jobs` jobs and returns its wall seconds.

        Each call appends the turn to `turns`.
        """

        def measured() -> float:
            turn = play(jobs, self.options)
            self.turns.setdefault(jobs, []).append(turn)
            return turn.wall_s

        return measured

    def play(self, repeats: int, say: Say) -> None:
        """Play commands with one job and with `JOBS` jobs in turns."""
        contenders = {str(jobs): self.command(jobs) for jobs in (JOBS, 1)}
        interleaved(contenders, repeats, warm_up=False, say=say)


def measure_runs(repeats: int, say: Say) -> list[Figure]:
    contest = Contest()
    contest.play(min(repeats, MOST_REPEATS), say)
    return [
        *command_figures("runs-2-jobs", contest, Target("ratio", 1.4, 1.65)),
        start_figure(repeats),
    ]


def measure_long_runs(repeats: int, say: Say) -> list[Figure]:
    contest = Contest(LONG_RUNS)
    contest.play(min(repeats, MOST_REPEATS), say)
    return command_figures("runs-8-of-30s", contest, Target("ratio", 1.7))


def command_figures(name: str, contest: Contest, target: Target | None) -> list[Figure]:
    """Wall time, CPU time and memory of the turns with `JOBS` jobs, against those with one."""
    serial, parallel = contest.turns[1], contest.turns[JOBS]
    runs = f"{name} with --jobs {JOBS}"
    return [
        figure(
            name,
            f"{runs}, from the start of the command to its end",
            np.array([turn.wall_s for turn in parallel]),
            "s",
            better="lower",
            threads=JOBS,
            against=Reference(np.array([turn.wall_s for turn in serial]), ONE_AFTER_ANOTHER),
            target=target,
        ),
        figure(
            f"{name}-cpu",
            f"{runs}: CPU time of all runs, as a multiple of that of the same runs one after another",
            np.array([turn.cpu_s / alone.cpu_s for turn, alone in zip(parallel, serial, strict=True)]),
            "x",
            better="lower",
            threads=JOBS,
            target=Target("value", 1.15),
        ),
        figure(
            f"{name}-memory",
            f"{runs}: peak resident memory of the largest worker over that of the serial process",
            np.array(
                [turn.peak_bytes - alone.peak_bytes for turn, alone in zip(parallel, serial, strict=True)]
            )
            / BYTES_PER_MB,
            "MB",
            better="lower",
            threads=JOBS,
            target=Target("value", 80.0),
        ),
    ]


def start_figure(repeats: int) -> Figure:
    """Wall seconds until two workers are ready for runs."""
    samples = interleaved({"start": seconds_until_met}, repeats, warm_up=False)
    return figure(
        "runs-2-jobs-start",
        "from the start of the command until two workers have its plans and are ready for runs",
        samples["start"],
        "s",
        better="lower",
        threads=JOBS,
        target=Target("value", 3.0),
    )


def seconds_until_met() -> float:
    """Wall seconds from the start of a fresh process until all its workers are ready."""
    start_s = time.monotonic()
    met_s: float = in_a_process("start", str(JOBS))
    return met_s - start_s


def play(jobs: int, options: Sequence[str]) -> Turn:
    """Play the bench's own configuration by one command with `jobs` jobs, in a fresh process.

    Returns the turn. Raises RunError, with the last line of the command's standard error, if it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = ("run", str(FROZEN_DIGITS), "--out", str(out), "--jobs", str(jobs), "--format", "json")
        start_s = time.perf_counter()
        output_of(f"the command with --jobs {jobs}", "experiments.cli", *command, *options)
        wall_s = time.perf_counter() - start_s
        directory = RunDirectory(out)
        timings = [directory.read_timing(arm, seed) for arm, seed in directory.reported_pairs()]
    return Turn(
        wall_s,
        sum(timing.cpu_s for timing in timings if timing.cpu_s is not None),
        max(timing.peak_memory_bytes for timing in timings if timing.peak_memory_bytes is not None),
    )
