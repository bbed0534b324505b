"""Resident memory in the course of a run: `python -m benchmarks.probes.growth ROUNDS`.

Prints JSON: pairs of a round and the resident bytes after it, for every (ROUNDS // 100)-th round, or for each
round if ROUNDS is below 200. The run is as a user plays it: with its log, and with checkpoints.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.digits import Silence, digits_online
from benchmarks.probes.memory import resident_bytes
from experiments.locating import locator
from experiments.running.plan import PlannedRun, Reached, plan_run
from experiments.running.runner import run_plan

ARM = "fielding-last-global"
CLIENTS = 60
SAMPLES = 100
"""The number of times that resident memory is read, about."""


class Watching(Silence):
    """Reads resident memory about SAMPLES times; `resident` holds pairs (round, bytes)."""

    def __init__(self, rounds: int) -> None:
        self.resident: list[tuple[int, int]] = []
        self._every = max(1, rounds // SAMPLES)

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        if reached.rounds % self._every == 0:
            gc.collect()
            self.resident.append((reached.rounds, resident_bytes()))


def main(rounds: int) -> None:
    """Play the digits experiment for `rounds` rounds, and print the resident bytes.

    It has few clients, since its whole trace is in memory.
    """
    experiment = digits_online(
        f"round.rounds={rounds}",
        "trace.drift.events=[]",
        f"trace.clients={CLIENTS}",
        f"checkpoint.every_rounds={max(1, rounds // 20)}",
    )
    watching = Watching(rounds)
    with tempfile.TemporaryDirectory() as folder:
        run_plan(
            plan_run(experiment, Path(folder) / "run", [ARM], locator(None, None), fresh=False), watching
        )
    print(json.dumps(watching.resident))


if __name__ == "__main__":
    main(int(sys.argv[1]))
