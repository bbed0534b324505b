"""The memory of a fleet, and the growth of a run's memory from round to round.

Each repeat is a process of its own, `probes/memory.py` or `probes/growth.py`. A fleet's bytes are the
resident bytes beyond those of the loaded libraries; its reference is one Python object per client, with its
device, and its histogram as a list.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import ROOT, Say, interleaved
from emulator.errors import RunError

OBJECTS = "one Python object per client, with its histogram as a list"
BYTES_PER_MB = 1e6
MOST_REPEATS = 3
"""Most repeats of a figure, which differs by only a percent from process to process."""


def measure_memory(repeats: int, say: Say) -> list[Figure]:
    return memory_figures(1_000_000, min(repeats, MOST_REPEATS), say)


def memory_figures(clients: int, repeats: int, say: Say) -> list[Figure]:
    """Resident megabytes of a fleet, and of a fleet with a run, beyond those of the loaded libraries."""
    after_rounds: list[float] = []

    def ours() -> float:
        bytes_ = probe("fleet", clients)
        after_rounds.append(bytes_["run"])
        return bytes_["fleet"]

    contenders = {"fleet": ours, "objects": lambda: probe("objects", clients)["objects"]}
    samples = interleaved(contenders, repeats, warm_up=False, say=say)
    objects = Reference(samples["objects"] / BYTES_PER_MB, OBJECTS)
    return [
        figure(
            "memory-fleet",
            f"{clients:,} devices with availability and the label histograms of a trace",
            samples["fleet"] / BYTES_PER_MB,
            "MB",
            better="lower",
            against=objects,
            target=Target("value", 250.0, 150.0),
        ),
        figure(
            "memory-run",
            "the same after two rounds of Fielding with faked training: with reports, clusters and records",
            np.array(after_rounds) / BYTES_PER_MB,
            "MB",
            better="lower",
            against=objects,
            target=Target("value", 210.0),
        ),
    ]


def measure_growth(repeats: int, say: Say) -> list[Figure]:
    return growth_figures(2000, min(repeats, MOST_REPEATS), say)


def growth_figures(rounds: int, repeats: int, say: Say) -> list[Figure]:
    """Growth of a run's resident memory after its first quarter: per round, and in total."""
    run = f"resident memory of a run of {rounds:,} rounds of Fielding, after its first quarter"
    total_bytes: list[float] = []

    def measured() -> float:
        resident = in_a_process("growth", str(rounds))
        later = after_first_quarter(resident)
        total_bytes.append(later[-1][1] - later[0][1])
        return slope(later)

    samples = interleaved({"growth": measured}, repeats, say=say, warm_up=False)
    return [
        figure(
            "memory-growth",
            f"{run}: growth per round",
            samples["growth"],
            "B/round",
            better="lower",
            target=Target("value", 100.0, 20.0),
        ),
        figure("memory-grown", f"{run}: growth in total", np.array(total_bytes) / 1e3, "kB", better="lower"),
    ]


def after_first_quarter(resident: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """The pairs (round, resident bytes) after the first quarter of the rounds, which is warm-up."""
    return [pair for pair in resident if pair[0] > resident[-1][0] / 4]


def slope(resident: Sequence[tuple[int, int]]) -> float:
    """Bytes per round: the median slope between all pairs (round, resident bytes), after Theil and Sen.

    The C library takes memory from the system in steps; a median does not count a single step as growth.
    """
    from scipy.stats import theilslopes

    rounds, bytes_ = np.array(resident, dtype=np.float64).T
    return float(theilslopes(bytes_, rounds).slope)


def probe(what: str, clients: int) -> dict[str, float]:
    """Resident bytes after each stage of `probes.memory`, less those at its start, by stage.

    `what` is "fleet" or "objects". Raises RunError if the process fails.
    """
    added: dict[str, float] = in_a_process("memory", what, str(clients))
    return added


def in_a_process(module: str, *arguments: str) -> Any:
    """The output of a module of `probes` in its own process, read as JSON; RunError if it fails."""
    what = f"the process that measures {' '.join((module, *arguments))!r}"
    return json.loads(output_of(what, f"benchmarks.probes.{module}", *arguments))


def output_of(what: str, module: str, *arguments: str) -> str:
    """The output of a module of ours in its own process; RunError, with its last line, if `what` fails."""
    ended = subprocess.run(
        [sys.executable, "-P", "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        last = ended.stderr.strip().splitlines()[-1:]
        raise RunError(f"bench: {what} failed: {' '.join(last)}")
    return ended.stdout
