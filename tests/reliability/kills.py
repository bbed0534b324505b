"""Runs in processes of their own that are killed at moments drawn from a seed, until one finishes.

A process stops or kills itself when it has reached a certain point of the run: a test that watches it from
outside could miss the moment on a busy machine.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from tests.processes import forked

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 300
LEAST_S = 1e-6  # a timer of 0 s would be disarmed


def stop_in_round(number: int) -> None:
    """Make this process stop itself (SIGSTOP) when it has logged `number` rounds."""
    _in_round(number, _stop)


def stop_before_drawing() -> None:
    """Make this process stop itself (SIGSTOP) before it draws the clients."""
    from experiments.running import runner

    build_world = vars(runner)["build_world"]

    def stopping(*arguments: Any, **named: Any) -> Any:
        _stop()
        return build_world(*arguments, **named)

    vars(runner)["build_world"] = stopping


def kill_after_round(number: int, more_s: float) -> None:
    """Make this process die `more_s` CPU seconds after it has logged `number` rounds.

    It dies at the latest when it has logged one round more: all rounds of a small run may fit into `more_s`.
    """
    # SIGPROF has no handler: it ends the process as SIGKILL does, at any instruction.
    _in_round(number, lambda: signal.setitimer(signal.ITIMER_PROF, max(more_s, LEAST_S)))
    _in_round(number + 1, lambda: os.kill(os.getpid(), signal.SIGKILL))


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _in_round(number: int, act: Callable[[], object]) -> None:
    from emulator.storage.runlog import RoundRecord, RunLog

    append, logged = RunLog.append, 0

    def acting(self: RunLog, record: RoundRecord) -> None:
        nonlocal logged
        append(self, record)
        logged += 1
        if logged == number:
            act()

    RunLog.append = acting  # type: ignore[method-assign]


class Killing:
    """Repeated attempts at `driftscale run CONFIG --out OUT`, by default with a checkpoint after every round.

    `stderr` holds the standard error of each attempt, `kills` is the number of attempts that were killed.
    """

    def __init__(self, config: Path, out: Path, *options: str, every_round: bool = True) -> None:
        settings = ["--set", "checkpoint.every_rounds=1"] if every_round else []
        self._arguments = ["run", str(config), "--out", str(out), *settings, *options]
        self._out = out
        self.stderr: list[str] = []
        self.kills = 0

    def start(
        self,
        prepare: str = "",
        *,
        largest_file_bytes: int | None = None,
        memory_bytes: int | None = None,
        is_real: bool = False,
    ) -> subprocess.Popen[str]:
        """Start a process with limits on the size of its files and on its address space.

        It first evaluates `prepare`, a call of a function of this module such as `stop_in_round(3)`. Unless
        `is_real`, it is forked.
        """
        limits = [
            f"resource.setrlimit(resource.{name}, ({value}, {value}))"
            for name, value in (("RLIMIT_FSIZE", largest_file_bytes), ("RLIMIT_AS", memory_bytes))
            if value is not None
        ]
        prepared = [f"from tests.reliability import kills; kills.{prepare}"] if prepare else []
        main = "from experiments.cli import main; main()"
        start = subprocess.Popen if is_real else forked.Forked
        return start(
            [
                sys.executable,
                "-c",
                "; ".join(["import resource", *limits, *prepared, main]),
                *self._arguments,
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kill_at_random(self, times: int, num_whole_lines: int, draw: np.random.Generator) -> None:
        """Kill `times` attempts, then let one finish.

        An attempt is killed shortly after it has logged a drawn number of rounds, up to half of the missing
        ones, in the middle of any operation. Every fourth is killed at a drawn time after its start instead.
        """
        for number in range(times):
            if number % 4 == 3:
                with self.start() as process:
                    time.sleep(float(draw.uniform(0.5, 4.0)))
                    process.kill()
                    self._wait(process)
            else:
                share = int(draw.integers(0, max(1, (num_whole_lines - self.num_log_lines()) // 2)))
                with self.start(f"kill_after_round({share + 1}, {draw.uniform(0, 0.03)})") as process:
                    self._wait(process)
        self.finish()

    def signal_when_stopped(
        self, prepare: str, *numbers: signal.Signals, is_real: bool = False
    ) -> tuple[int, str]:
        """Send the signals, all at once, to a process that has stopped itself by `prepare`.

        Returns its exit code and its standard error.
        """
        with self.start(prepare, is_real=is_real) as process:
            self.wait_until_stopped(process)
            for number in (*numbers, signal.SIGCONT):
                process.send_signal(number)
            _, stderr = process.communicate(timeout=PATIENCE_S)
        return process.returncode, stderr

    def wait_until_stopped(self, process: subprocess.Popen[str]) -> None:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"it ended before it was stopped: {status}"

    def run_in_process(self) -> tuple[int, str]:
        """Run the command in the process of the test; returns its exit code and its standard error."""
        # Imported here: the started processes import this module too.
        import pytest

        from experiments.cli import main

        stderr = io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["driftscale", *self._arguments])
            with redirect_stdout(io.StringIO()), redirect_stderr(stderr), pytest.raises(SystemExit) as ended:
                main()
        code = ended.value.code
        assert isinstance(code, int)
        return code, stderr.getvalue()

    def finish(self) -> None:
        """Run the command once more, undisturbed, and check that it succeeds."""
        code, stderr = self.run_in_process()
        self.stderr.append(stderr)
        assert code == 0, stderr

    def num_log_lines(self) -> int:
        """The number of lines in all logs."""
        return sum(path.read_bytes().count(b"\n") for path in self._out.glob("*/seed-*/log.jsonl"))

    def _wait(self, process: subprocess.Popen[str]) -> None:
        _, stderr = process.communicate(timeout=PATIENCE_S)
        self.stderr.append(stderr)
        assert process.returncode in (-signal.SIGPROF, -signal.SIGKILL, 0), stderr
        self.kills += process.returncode != 0


def results(out: Path) -> dict[str, Any]:
    """The contents on which two directories of the same runs must agree: all but wall times."""
    summary = json.loads((out / "summary.json").read_text())
    for arm in summary["arms"].values():
        del arm["wall_s"], arm["clustering_wall_s"]
    return {
        "summary": summary,
        "rounds": (out / "rounds.parquet").read_bytes(),
        **{
            str(file.relative_to(out)): file.read_bytes()
            for name in ("log.jsonl", "models.safetensors")
            for file in sorted(out.glob(f"*/seed-*/{name}"))
        },
        "files": sorted(str(file.relative_to(out)) for file in out.rglob("*") if file.is_file()),
    }
