"""`python -m benchmarks.probes.memory WHAT CLIENTS`: prints the resident bytes that WHAT takes.

The output is JSON: bytes by stage, each with those of the stages before it. WHAT is built on a small scale
first, so that libraries, their caches and our own code do not count. Freed memory is given back before it is
read: how much of it the C library keeps differs from one process to the next.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.digits import digits_online
from benchmarks.population import InstantExecutor, Population
from benchmarks.rivals.rounds_by_scan import registry
from executor.malloc import give_back_freed_memory
from experiments.build import build_emulation, build_world
from experiments.locating import locator
from experiments.stopwatch import Stopwatch
from traces.trace import TraceStream

Built = Iterator[tuple[str, object]]
"""An iterator that builds one stage after another, and yields its name and the objects to keep alive."""


class SilentLog:
    """A log that drops every record."""

    def append_visits(self, rows: object) -> None: ...

    def append(self, record: object) -> None:
        pass


def build_fleet(clients: int) -> Built:
    """Build devices, availability and trace stream of the digits; then play the Fielding arm on them.

    The stages are "fleet" and "run".
    """
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
    del stream  # the run has a stream of its own
    arm = experiment.find_arm("fielding-last-global")
    emulation = build_emulation(experiment, arm, world, InstantExecutor(), SilentLog(), (), Stopwatch())
    emulation.run()
    yield "run", (world, emulation)


def build_objects(clients: int) -> Built:
    """Stage "objects": one object per client, and one list of ten label counts per client."""
    yield "objects", (registry(Population.of(clients)), [[0] * 10 for _ in range(clients)])


BUILD: dict[str, Callable[[int], Built]] = {"fleet": build_fleet, "objects": build_objects}


def main(what: str, clients: int) -> None:
    """Build `what` on a small scale, then for `clients`; print the bytes added by the end of each stage."""
    for _ in BUILD[what](1000):
        pass
    gc.collect()
    give_back_freed_memory()
    before = resident_bytes()
    added = {}
    for name, _alive in BUILD[what](clients):
        gc.collect()
        give_back_freed_memory()
        added[name] = resident_bytes() - before
    print(json.dumps(added))


def resident_bytes() -> int:
    """The resident memory of this process, in bytes."""
    statm = Path("/proc/self/statm")
    if statm.is_file():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    ended = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return int(ended.stdout) * 1024


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
