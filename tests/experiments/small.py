"""Experiments that run in a moment, and the small files that they can read."""

from __future__ import annotations

import copy
import struct
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import tomli_w

from experiments.config import Experiment, parse_experiment
from experiments.running.plan import PlannedRun, Reached

SMALL: dict[str, Any] = {
    "name": "small",
    "seeds": [0],
    "trace": {
        "source": "digits",
        "clients": 12,
        "rounds_per_step": 2,
        "retain_rounds": 4,
        "samples_per_step": 6,
        "test_samples_per_step": 4,
    },
    "devices": {"profile": "uniform", "availability": "always", "model_factor": 1},
    "training": {"model": "linear", "local_steps": 2, "batch_size": 4},
    "round": {"rounds": 4, "participants": 3},
    "arm": [{"name": "global"}, {"name": "fielding", "clusterer": {"kind": "fielding", "max_clusters": 3}}],
}

DRIFTING: dict[str, Any] = {
    "name": "drifting",
    "seeds": [0, 1],
    "trace": {
        "source": "concepts",
        "concepts": "sine",
        "pattern": ["000", "010", "011"],
        "samples_per_step": 20,
        "rounds_per_step": 2,
    },
    "devices": {"profile": "uniform", "availability": "always", "model_factor": 1},
    "training": {"model": {"kind": "mlp", "hidden": [4]}, "local_steps": 2, "batch_size": 5},
    "round": {"rounds": 4, "participants": 3, "over_commit": 1, "evaluate_every": 2},
    "report": {"window": 1, "published": {"accuracy_omitting_drift": {"oblivious": [52.0, 1.5]}}},
    "arm": [
        {"name": "oblivious"},
        {"name": "oracle", "clusterer": "oracle", "memory": "claimed"},
    ],
}
"""Three clients; two of them change concept, one after each of the two data steps."""

MINIMAL: dict[str, Any] = {
    "name": "m",
    "trace": "digits",
    "round": {"rounds": 1, "participants": 1},
    "arm": [{"name": "a"}],
}
"""Nothing but what a configuration must have."""

DEVICES = """\
device_id,seconds_per_sample,download_bytes_per_s,upload_bytes_per_s,latency_s
a,0.01,100000,50000,0.02
b,0.02,200000,80000,0.01
c,0.05,90000,40000,0
d,0.10,300000,30000,0.05
e,0.15,50000,20000,0.03
"""

WINDOWS = """\
device_id,start_s,end_s,period_s
a,0,50,60
b,0,20,60
b,30,60,60
c,10,55,60
d,0,60,60
e,5,45,60
"""

NEVER_AGAIN = """\
device_id,start_s,end_s
a,0,0.5
b,0,0.5
"""


def merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`table` with `changes`; nested tables are merged, and all other values are replaced."""
    result = copy.deepcopy(dict(table))
    for key, value in changes.items():
        inner = result.get(key)
        are_tables = isinstance(inner, dict) and isinstance(value, Mapping)
        result[key] = merged(inner, value) if are_tables else copy.deepcopy(value)
    return result


def small_table(**changes: Any) -> dict[str, Any]:
    return merged(SMALL, changes)


def small(**changes: Any) -> Experiment:
    return parse_experiment(small_table(**changes), "small")


def write_small(folder: Path, **changes: Any) -> Path:
    """Write the small configuration as a file."""
    path = folder / "small.toml"
    path.write_text(tomli_w.dumps(small_table(**changes)), encoding="utf-8")
    return path


def drifting(**changes: Any) -> Experiment:
    return parse_experiment(merged(DRIFTING, changes), "drifting")


def write_drifting(folder: Path, **changes: Any) -> Path:
    """Write the drifting configuration as a file named after it."""
    table = merged(DRIFTING, changes)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{table['name']}.toml"
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path


def shuffled_rows(text: str) -> str:
    """A CSV with its rows in reverse order."""
    header, *rows = text.splitlines()
    return "\n".join([header, *reversed(rows)]) + "\n"


def write_idx_folder(folder: Path, labels: int = 3, train: int = 30, test: int = 12) -> Path:
    """Write an image set of 4x4 images; the brightest row of an image is its label, modulo 4."""
    folder.mkdir(parents=True, exist_ok=True)
    for prefix, number in (("train", train), ("t10k", test)):
        label = np.arange(number) % labels
        pixels = np.random.default_rng(number).integers(0, 60, (number, 4, 4))
        pixels[np.arange(number), label % 4] += 150
        images = folder / f"{prefix}-images-idx3-ubyte"
        images.write_bytes(struct.pack(">IIII", 0x803, number, 4, 4) + pixels.astype(np.uint8).tobytes())
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, number) + label.astype(np.uint8).tobytes()
        )
    return folder


REPLAY: dict[str, Any] = {
    "source": "label_replay",
    "table": "labels.csv",
    "images": "images",
    "group": "place",
    "time": "day",
    "label": "kind",
    "count": "seen",
    "clients_per_group": 3,
    "rounds_per_step": 2,
    "retain_rounds": 4,
    "samples_per_step": 6,
    "test_samples_per_step": 4,
}
"""A trace of the table that `write_label_trace` writes."""


def replay(**changes: Any) -> dict[str, Any]:
    """The small configuration with that trace: nine clients in three places."""
    table = small_table(**changes)
    return {**table, "trace": merged(REPLAY, changes.get("trace", {}))}


def write_replay(folder: Path, **changes: Any) -> Path:
    path = folder / "replay.toml"
    path.write_text(tomli_w.dumps(replay(**changes)), encoding="utf-8")
    return path


def write_label_trace(path: Path, kinds: Sequence[str] = ("x", "y", "z"), days: int = 4) -> Path:
    """Write counts of each kind in three places, day by day; every place drifts from one kind to another."""
    rows = ["place,day,kind,seen"]
    for index, group in enumerate(("here", "there", "yonder")):
        for day in range(days):
            for offset, kind in enumerate(kinds):
                seen = 1 + 7 * ((index + day) % len(kinds) == offset) + offset
                rows.append(f"{group},{date(2021, 1, 1) + timedelta(days=day)},{kind},{seen}")
    path.write_text("\n".join(rows) + "\n")
    return path


def as_parquet(csv: Path) -> Path:
    """Write the same table as Parquet, beside the CSV."""
    path = csv.with_suffix(".parquet")
    pa.parquet.write_table(pyarrow.csv.read_csv(csv), path)
    return path


class Story:
    """A `Progress` that records its calls.

    Runs that were done or left are in `ends`, rounds in `reached`, all other calls in `told`.
    """

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.ends: list[tuple[object, ...]] = []
        self.reached: list[Reached] = []

    @property
    def rounds(self) -> int:
        """The number of rounds done, over all runs."""
        return len(self.reached)

    def drawing(self, run: PlannedRun) -> None: ...

    def begun(self, run: PlannedRun) -> None:
        self.told.append(("run", run.arm, run.seed))

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        self.told.append(("going on", run.arm, run.seed, rounds))

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        self.reached.append(reached)

    def done(self, run: PlannedRun, until: object = None) -> None:
        self.ends.append(("done", run.arm, run.seed))

    def left(self, run: PlannedRun) -> None:
        self.ends.append(("left", run.arm, run.seed))

    def skipped(self, run: PlannedRun, until: object = None) -> None:
        self.told.append(("skipped", run.arm, run.seed))

    def failed(self, run: PlannedRun, reason: str) -> None:
        self.told.append(("failed", run.arm, run.seed, reason))

    def note(self, text: str) -> None:
        self.told.append(("note", text))
