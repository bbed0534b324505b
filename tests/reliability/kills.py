"""Runs in processes of their own that are killed at moments drawn from a seed, until one comes to its end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.001


class Killing:
    """`driftscale run CONFIG --out OUT`, again and again, with a checkpoint after every round if so wanted.

    `stderr` is what the attempts have said, `kills` how many were killed at work.
    """

    def __init__(self, config: Path, out: Path, *options: str, every_round: bool = True) -> None:
        settings = ["--set", "checkpoint.every_rounds=1"] if every_round else []
        self._arguments = ["run", str(config), "--out", str(out), *settings, *options]
        self._out = out
        self.stderr: list[str] = []
        self.kills = 0

    def start(
        self, largest_file_bytes: int | None = None, memory_bytes: int | None = None
    ) -> subprocess.Popen[str]:
        """A process that may write no larger file, and take no more memory."""
        limits = [
            f"resource.setrlimit(resource.{name}, ({value}, {value}));"
            for name, value in (("RLIMIT_FSIZE", largest_file_bytes), ("RLIMIT_AS", memory_bytes))
            if value is not None
        ]
        code = f"import resource; {' '.join(limits)} from experiments.cli import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *self._arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kill_at_random(self, times: int, whole_lines: int, draw: np.random.Generator) -> None:
        """Kill as many attempts, then let one come to its end.

        Each is killed after a drawn share of the lines that are still to be logged and a moment more, so that
        it may be in the middle of anything; every fourth at a drawn moment from its start, whatever it does.
        """
        for number in range(times):
            if number % 4 == 3:
                self._kill_when(0, float(draw.uniform(0.5, 4.0)), at_work=False)
            else:
                before = self.lines()
                share = int(draw.integers(0, max(1, (whole_lines - before) // 2)))
                self._kill_when(before + share, float(draw.uniform(0, 0.03)), at_work=True)
        self.finish()

    def finish(self) -> None:
        with self.start() as process:
            _, said = process.communicate(timeout=120)
        self.stderr.append(said)
        assert process.returncode == 0, said

    def lines(self) -> int:
        """Of all logs."""
        return sum(path.read_bytes().count(b"\n") for path in self._out.glob("*/seed-*/log.jsonl"))

    def _kill_when(self, at_lines: int, more_s: float, *, at_work: bool) -> None:
        with self.start() as process:
            deadline = time.monotonic() + 60
            # The log of an earlier attempt has lines, too: only one that was touched is at work.
            touched = self._touched()
            while (
                at_work and process.poll() is None and (self.lines() < at_lines or self._touched() == touched)
            ):
                assert time.monotonic() < deadline
                time.sleep(POLL_S)
            time.sleep(more_s)
            self.kills += process.poll() is None
            process.kill()
            _, said = process.communicate()
        self.stderr.append(said)
        assert process.returncode in (-signal.SIGKILL, 0), said

    def _touched(self) -> Sequence[int]:
        """When each log was written last."""
        return sorted(path.stat().st_mtime_ns for path in self._out.glob("*/seed-*/log.jsonl"))


def results(out: Path) -> dict[str, Any]:
    """All that two run directories must have in common, but for what was measured on a wall clock."""
    summary = json.loads((out / "summary.json").read_text())
    for arm in summary["arms"].values():
        del arm["wall_s"]
    return {
        "summary": summary,
        "rounds": (out / "rounds.parquet").read_bytes(),
        **{str(log.relative_to(out)): log.read_bytes() for log in sorted(out.glob("*/seed-*/log.jsonl"))},
        "files": sorted(str(file.relative_to(out)) for file in out.rglob("*") if file.is_file()),
    }
