"""The workload read-log: reading the log of a run back, with all its checks, as every report does.

The reference parses the JSON of each line and keeps nothing. Ours also checks every value, unpacks arrays and
makes the records.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.figures import Figure, Reference, figure
from benchmarks.measure import Say, interleaved, timed
from emulator.messages import NamedNumbers, Trigger
from emulator.storage.runlog import RoundRecord, RunLog, read_log

SEED = 0
CLUSTERS = 4
BARE = "json.loads of each line"


@dataclass(frozen=True)
class LogSizes:
    """Numbers of rounds of the log, of clients, and of participants of a round."""

    rounds: int = 3000
    clients: int = 200
    participants: int = 26


def measure_read_log(repeats: int, say: Say) -> list[Figure]:
    return read_log_figures(LogSizes(), repeats, say)


def read_log_figures(sizes: LogSizes, repeats: int, say: Say) -> list[Figure]:
    """Microseconds to read a round."""
    with tempfile.TemporaryDirectory() as folder:
        say(f"writing a log of {sizes.rounds:,} rounds")
        path = Path(folder) / "log.jsonl"
        with RunLog(path, {"arm": "bench", "seed": SEED, "num_clients": sizes.clients}) as log:
            for record in made_up_rounds(sizes):
                log.append(record)
        seconds = interleaved(
            {"ours": timed(lambda: read_log(path)), "bare": timed(lambda: parse(path))}, repeats, say=say
        )
    us = {name: 1e6 * samples / sizes.rounds for name, samples in seconds.items()}
    return [
        figure(
            "read-log",
            f"a round of a log of {sizes.rounds:,}, {sizes.participants} participants each",
            us["ours"],
            "us",
            better="lower",
            against=Reference(us["bare"], BARE),
        )
    ]


def parse(path: Path) -> None:
    """The reference."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            json.loads(line)


def made_up_rounds(sizes: LogSizes) -> Iterator[RoundRecord]:
    """Rounds of a run that clusters: evaluated every second one, a trigger every fifth, moves every tenth."""
    generator = np.random.default_rng(SEED)
    for number in range(sizes.rounds):
        participants = generator.permutation(sizes.clients)[: sizes.participants].tolist()
        measured = generator.random(7).tolist() if number % 2 == 0 else [None] * 7
        yield RoundRecord(
            round=number,
            step=number // 10,
            opened_s=10.0 * number,
            dispatched_s=10.0 * number + 1.5,
            closed_s=10.0 * number + 10,
            participants=participants,
            completed=participants[4:],
            dropped=participants[:2],
            changed=7,
            reported=3,
            moved=1,
            reclustered=False,
            clusters=list(range(CLUSTERS)),
            members=generator.integers(0, CLUSTERS, sizes.clients) if number % 10 == 0 else None,
            train_loss=float(generator.random()),
            accuracy=measured[0],
            accuracy_std=measured[1],
            loss=measured[2],
            mean_client_distance=measured[3],
            unclustered_distance=measured[4],
            scored_clients=None if number % 2 else sizes.clients,
            drift_cells=None,
            accuracy_omitting_drift=measured[5],
            serving=None,
            download_bytes=1e6 * number,
            upload_bytes=1e6 * number,
            control_bytes=1e3 * number,
            models_sent=2.0 * number,
            kmeans_clients=None,
            silhouette_clients=None,
            rejected=[],
            crashed=[],
            client_accuracy=None,
            trigger=_trigger(number, generator) if number % 5 == 0 else None,
            silhouettes=None,
        )


def _trigger(number: int, generator: np.random.Generator) -> Trigger | NamedNumbers:
    if number % 10 == 0:
        return Trigger(float(generator.random()), 1.0, 0.5, CLUSTERS, False)
    by_cluster = generator.random(CLUSTERS).tolist()
    return NamedNumbers({"spread": float(generator.random()), "by_cluster": by_cluster}, CLUSTERS, False)
