"""What a fleet keeps in memory: resident bytes of a fresh process, beyond those of the loaded libraries.

Each repeat is a process of its own, `memory_probe`. The reference is one Python object per client with its
device and its histogram as a list.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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


def probe(what: str, clients: int) -> dict[str, float]:
    """Resident bytes that a fresh process adds; RunError with its last line when it fails."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "experiments.bench.memory_probe", what, str(clients)],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:]
        raise RunError(f"bench memory: the process that measures {what!r} failed: {' '.join(last)}")
    found: dict[str, float] = json.loads(done.stdout)
    return found
