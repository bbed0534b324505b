"""What a fleet keeps in memory, and by how much a run's memory grows from round to round.

Each repeat is a process of its own, `probes/memory.py` or `probes/growth.py`. A fleet's bytes are those that
are resident beyond those of the loaded libraries; its reference is one Python object per client, with its
device and its histogram as a list.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from emulator.errors import RunError
from experiments.bench.figures import Figure, Reference, Target, figure
from experiments.bench.measure import Say, interleaved

OBJECTS = "one Python object per client, with its histogram as a list"
BYTES_PER_MB = 1e6
MOST_REPEATS = 3
"""Of a figure that differs by a percent from process to process."""


def measure_memory(repeats: int, say: Say) -> list[Figure]:
    return memory_figures(1_000_000, min(repeats, MOST_REPEATS), say)


def memory_figures(clients: int, repeats: int, say: Say) -> list[Figure]:
    """Megabytes over the loaded libraries."""
    after_rounds: list[float] = []

    def ours() -> float:
        bytes_ = probe("fleet", clients)
        after_rounds.append(bytes_["run"])
        return bytes_["fleet"]

    contenders = {"fleet": ours, "objects": lambda: probe("objects", clients)["objects"]}
    found = interleaved(contenders, repeats, warm_up=False, say=say)
    objects = Reference(found["objects"] / BYTES_PER_MB, OBJECTS)
    return [
        figure(
            "memory-fleet",
            f"{clients:,} devices with availability and the label histograms of a trace",
            found["fleet"] / BYTES_PER_MB,
            "MB",
            better="lower",
            against=objects,
            target=Target("value", 250.0, 150.0),
        ),
        figure(
            "memory-run",
            "the same after two rounds of Fielding, training faked: with reports, clusters and records",
            np.array(after_rounds) / BYTES_PER_MB,
            "MB",
            better="lower",
            against=objects,
        ),
    ]


def measure_growth(repeats: int, say: Say) -> list[Figure]:
    return growth_figures(2000, min(repeats, MOST_REPEATS), say)


def growth_figures(rounds: int, repeats: int, say: Say) -> list[Figure]:
    """How resident memory of a run goes on once its first quarter is over: by round, and in all."""
    run = f"resident memory of a run of {rounds:,} rounds of Fielding, after its first quarter"
    in_all: list[float] = []

    def measured() -> float:
        seen = in_a_process("growth", str(rounds))
        later = after_first_quarter(seen)
        in_all.append(later[-1][1] - later[0][1])
        return slope(later)

    found = interleaved({"growth": measured}, repeats, say=say, warm_up=False)
    return [
        figure(
            "memory-growth",
            f"{run}: growth per round",
            found["growth"],
            "B/round",
            better="lower",
            target=Target("value", 100.0, 20.0),
        ),
        figure("memory-grown", f"{run}: growth in all", np.array(in_all) / 1e3, "kB", better="lower"),
    ]


def after_first_quarter(seen: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Those pairs (round, resident bytes) that are no warm-up any more."""
    return [pair for pair in seen if pair[0] > seen[-1][0] / 4]


def slope(seen: Sequence[tuple[int, int]]) -> float:
    """Bytes over rounds: the median slope of all pairs (Theil and Sen), since the C library takes memory from
    the system in steps, and one of them is no growth."""
    from scipy.stats import theilslopes

    rounds, resident = np.array(seen, dtype=np.float64).T
    return float(theilslopes(resident, rounds).slope)


def probe(what: str, clients: int) -> dict[str, float]:
    """Resident bytes that a fresh process adds; RunError with its last line when it fails."""
    found: dict[str, float] = in_a_process("memory", what, str(clients))
    return found


def in_a_process(module: str, *arguments: str) -> Any:
    """What a module of `probes` prints in a process of its own, read as JSON."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-P", "-m", f"experiments.bench.probes.{module}", *arguments],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:]
        what = " ".join((module, *arguments))
        raise RunError(f"bench: the process that measures {what!r} failed: {' '.join(last)}")
    return json.loads(done.stdout)
