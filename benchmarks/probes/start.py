"""`python -m benchmarks.probes.start JOBS`: prints the time at which JOBS workers are ready.

It starts workers as `driftscale run --jobs` does. The time is that of the monotonic clock, which all
processes share.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.jobs.pool import WorkerPool

LOOK_S = 0.05


def main(jobs: int) -> None:
    # NOTE: imported here, since workers import the main module; that of the command imports nothing either.
    from benchmarks.jobs import FROZEN_DIGITS
    from experiments.locating import locator
    from experiments.playing.scale import Scale, scaled_out
    from experiments.reading import load_experiment
    from experiments.running.locking import locked
    from experiments.running.plan import plan_run

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        with locked(folder):
            experiment, locate = load_experiment(FROZEN_DIGITS), locator(None, FROZEN_DIGITS)
            plan = plan_run(experiment, folder, None, locate, fresh=False)
            with scaled_out(Scale(jobs=jobs), [plan], None) as (pool, _):
                assert pool is not None
                meet(pool, jobs)
                print(json.dumps(time.monotonic()))


def meet(pool: WorkerPool, jobs: int) -> None:
    """Wait until `jobs` workers are ready: each was sent the plans, and has responded."""
    from experiments.jobs.pool import Met

    contacted: set[str] = set()
    met = 0
    while met < jobs:
        for address in set(pool.addresses()) - contacted:
            contacted.add(address)
            pool.meet(address)
        event = pool.next_event(LOOK_S)
        met += isinstance(event, Met) and event.facts is not None


if __name__ == "__main__":
    main(int(sys.argv[1]))
