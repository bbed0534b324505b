"""`python -m experiments.bench.probes.memory WHAT CLIENTS`: builds it and prints the resident bytes it added.

What was loaded and used once before, on a small scale, does not count: libraries, their caches, our own code.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from experiments.bench.digits import digits_online
from experiments.bench.population import InstantExecutor, Population
from experiments.bench.rivals.rounds_by_scan import registry
from experiments.build import build_emulation, build_world
from experiments.config import locator
from experiments.stopwatch import Stopwatch
from traces.trace import TraceStream

Built = Iterator[tuple[str, object]]
"""Names of what is there now, each with what has to stay alive for it."""


class SilentLog:
    """A log that keeps nothing."""

    def append(self, record: object) -> None:
        pass


def build_fleet(clients: int) -> Built:
    """Devices, availability and the cursor of the digits' trace; then a run of the Fielding arm over them."""
    experiment = digits_online(
        f"trace.clients={clients}",
        "trace.samples_per_step=10",
        "trace.test_samples_per_step=1",
        "trace.retain_rounds=5",
        "round.rounds=2",
        "trace.drift.events=[]",
    )
    world = build_world(experiment, 0, locator(None, None))
    stream = TraceStream(world.trace)
    stream.advance_to_round(0)
    yield "fleet", (world, stream)
    del stream  # the run has its own
    arm = experiment.find_arm("fielding")
    emulation = build_emulation(experiment, arm, world, InstantExecutor(), SilentLog(), (), Stopwatch())
    emulation.run()
    yield "run", (world, emulation)


def build_objects(clients: int) -> Built:
    """One object per client, and a list of ten label counts for each."""
    yield "objects", (registry(Population.of(clients)), [[0] * 10 for _ in range(clients)])


BUILD: dict[str, Callable[[int], Built]] = {"fleet": build_fleet, "objects": build_objects}


def main(what: str, clients: int) -> None:
    """Build it small, then as asked, and print the difference."""
    for _ in BUILD[what](1000):
        pass
    gc.collect()
    before = resident_bytes()
    found = {}
    for name, _kept in BUILD[what](clients):
        gc.collect()
        found[name] = resident_bytes() - before
    print(json.dumps(found))


def resident_bytes() -> int:
    """Bytes of this process that are in memory now."""
    statm = Path("/proc/self/statm")
    if statm.is_file():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    told = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return int(told.stdout) * 1024


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
