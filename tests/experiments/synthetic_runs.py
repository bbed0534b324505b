"""Run directories with made-up rounds, for which nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from emulator.storage.runlog import RoundRecord, RunLog
from experiments.results.many_runs.directories import read_folder
from experiments.results.many_runs.folder_table import build_table
from experiments.results.many_runs.sections import Section, sections
from experiments.results.reading.json_files import Timing
from experiments.results.reading.run_directory import ReportedRun, RunDirectory

TIMING = Timing(wall_s=2.0, train_s=1.0, evaluate_s=0.5, cluster_s=0.1, peak_memory_bytes=1e8)


def a_record(number: int, **changes: Any) -> RoundRecord:
    """Round `number`, of ten seconds: four participants, three completed, one dropped; with `changes`."""
    fields: dict[str, Any] = {
        "round": number,
        "step": number // 10,
        "opened_s": 10.0 * number,
        "dispatched_s": 10.0 * number + 1,
        "closed_s": 10.0 * (number + 1),
        "participants": [0, 1, 2, 3],
        "completed": [0, 1, 2],
        "dropped": [3],
        "changed": 0,
        "reported": 0,
        "moved": 0,
        "reclustered": False,
        "clusters": [0],
        "members": np.zeros(4, dtype=np.int64) if number == 0 else None,
        "train_loss": 1.0,
        "accuracy": 0.5,
        "accuracy_std": 0.1,
        "loss": 1.0,
        "mean_client_distance": 0.4,
        "unclustered_distance": 0.8,
        "scored_clients": 4,
        "drift_cells": None,
        "accuracy_omitting_drift": None,
        "serving": None,
        "download_bytes": 400.0 * (number + 1),
        "upload_bytes": 300.0 * (number + 1),
        "control_bytes": 16.0 * (number + 1),
        "models_sent": 7.0 * (number + 1),
        "kmeans_clients": None,
        "silhouette_clients": None,
        "rejected": [],
        "crashed": [],
        "client_accuracy": None,
        "trigger": None,
        "silhouettes": None,
    }
    return RoundRecord(**{**fields, **changes})


def a_run(arm: str, seed: int, accuracies: Sequence[float | None], **changes: Any) -> ReportedRun:
    """A run of ten-second rounds, each evaluated at its end unless its accuracy is None."""
    records = [a_record(number, accuracy=value, **changes) for number, value in enumerate(accuracies)]
    return ReportedRun(arm, seed, {}, records, TIMING)


def a_moving_run(seed: int, steps: list[int], rounds_per_step: int = 2, rounds: int = 6) -> ReportedRun:
    """A run of ten-second rounds in which two of three clients have an onset at each of `steps`."""
    run = a_run("global", seed, [0.5] * rounds)
    records = [replace(record, step=record.round // rounds_per_step) for record in run.records]
    onsets = {"steps": steps, "counts": [2] * len(steps), "clients": [[0, 2]] * len(steps)}
    return replace(run, header={"num_clients": 3, "onsets": onsets}, records=records)


CONCEPTS = [[0, 0], [0, 1], [1, 1]]
"""Concepts of two clients in two data steps and in the last test samples: each step has one drift cell."""


def a_drifting_run(
    arm: str,
    seed: int,
    omitting: Sequence[float],
    serving: Sequence[Sequence[int]],
    models_sent: float = 10.0,
) -> ReportedRun:
    """A run over `CONCEPTS`: each data step is a round, evaluated at its end.

    The client that drifts is always wrong; the accuracy of the other one is that in `omitting`.
    """
    records = [
        a_record(
            step,
            step=step,
            participants=[0, 1],
            completed=[0, 1],
            dropped=[],
            members=np.zeros(2, dtype=np.int64) if step == 0 else None,
            accuracy=accuracy / 2,
            accuracy_omitting_drift=accuracy,
            scored_clients=2,
            drift_cells=1,
            serving=np.array(served),
            models_sent=models_sent * (step + 1) / 2,
        )
        for step, (accuracy, served) in enumerate(zip(omitting, serving, strict=True))
    ]
    return ReportedRun(arm, seed, {"concepts": CONCEPTS}, records, TIMING)


def a_detecting_run(
    arm: str,
    seed: int,
    decided: Mapping[int, Sequence[int]],
    flagged: Mapping[int, Sequence[int]],
    drifts: Sequence[tuple[int, int, str, int, int]],
    *,
    watched: str = "training",
    steps: Sequence[int] = range(10),
) -> ReportedRun:
    """A run of ten-second rounds with a detector `watch`, which has clipped seven numbers by the end.

    Args:
        arm: Its arm.
        seed: Its seed.
        decided: By round, the clients that were decided about.
        flagged: By round, those that were flagged.
        drifts: Each as (data step, client, kind, concept before, concept after), in any order.
        watched: What the detector watches.
        steps: The data step of each round.
    """
    kinds = sorted({kind for _, _, kind, _, _ in drifts})
    rows = [(step, client, kinds.index(kind), *concepts) for step, client, kind, *concepts in sorted(drifts)]
    names = ("step", "client", "kind", "before", "after")
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    table = {name: np.array(column, dtype=int) for name, column in zip(names, columns, strict=True)}
    records = [
        a_record(
            number,
            step=step,
            decided={watched: list(decided.get(number, []))},
            flagged={"watch": list(flagged.get(number, []))},
            clipped={"watch": min(number, 7)},
        )
        for number, step in enumerate(steps)
    ]
    header = {"detectors": {"watch": watched}, "drifts": {"kinds": kinds, **table}}
    return ReportedRun(arm, seed, header, records, TIMING)


PARTS: Mapping[str, Mapping[str, Any]] = {
    "global": {"kind": "single"},
    "static": {"kind": "static"},
    # At every drift: nothing is left to its trigger, so that its estimates have t intervals.
    "fielding": {
        "kind": "fielding",
        "trigger": {"kind": "centre_shift", "threshold": 0},
    },
    "triggered": {
        "kind": "fielding",
        "trigger": {"kind": "centre_shift", "threshold": 0.3333},
    },
}
"""Clusterers of arms by name; others have one model."""


def a_directory(path: Path, arms: Sequence[str], seeds: Sequence[int], **changes: Any) -> RunDirectory:
    """A run directory without runs; `changes` override top-level keys of its configuration."""
    experiment = {
        "name": "synthetic",
        "seeds": list(seeds),
        "trace": {
            "source": "digits",
            "clients": 200,
            "rounds_per_step": 10,
            "retain_rounds": 50,
            "drift": {"kind": "label_mix", "events": [{"round": 75, "share": 0.8, "mixes": 4}]},
        },
        "devices": {"profile": "smartphones", "availability": "diurnal", "model_factor": 1},
        "training": {"model": "mlp", "local_steps": 20, "batch_size": 20, "learning_rate": 0.05},
        "round": {"participants": 20, "over_commit": 1.3, "rounds": 150},
        "report": {"window": 5},
        "arm": [
            {"name": arm, "clusterer": PARTS.get(arm, PARTS["global"]), "selector": {"kind": "random"}}
            for arm in arms
        ],
        **changes,
    }
    path.mkdir(parents=True, exist_ok=True)
    directory = RunDirectory(path)
    directory.experiment_path.write_text(tomli_w.dumps(experiment), encoding="utf-8")
    return directory


def store(directory: RunDirectory, run: ReportedRun) -> None:
    """Write a run as a real one is written, up to its DONE."""
    directory.start(run.arm, run.seed)
    header = {**run.header, "arm": run.arm, "seed": run.seed}
    with RunLog(directory.run_file(run.arm, run.seed, "log.jsonl"), header) as log:
        for record in run.records:
            log.append(record)
    directory.mark_done(run.arm, run.seed, run.timing.model_dump(exclude_unset=True))


def realistic_directory(
    path: Path, *, seeds: int = 5, rounds: int = 150, clients: int = 200, name: str = "synthetic"
) -> RunDirectory:
    """Three arms under slow label drift with a mass event half-way, like the result of a real experiment."""
    parts = {"global": "global", "static": "static", "fielding": "triggered"}
    arms = [
        {"name": arm, "clusterer": PARTS[part], "selector": {"kind": "random"}} for arm, part in parts.items()
    ]
    directory = a_directory(path, [], range(seeds), name=name, arm=arms)
    directory.manifest_path.write_text('{"versions": {"driftscale": "0.1.0", "python": "3.11"}}')
    for arm in directory.arms():
        for seed in directory.seeds():
            store(directory, _drifting_run(arm, seed, rounds, clients))
    return directory


def _drifting_run(arm: str, seed: int, rounds: int, clients: int) -> ReportedRun:
    # The world depends on the seed alone, so that the arms of a seed see the same drift.
    world = np.random.default_rng(seed)
    noise = np.random.default_rng([seed, len(arm)])
    mix = world.integers(0, 5, clients)  # the current label mix of each client
    labels, centre_of = mix % 4, np.arange(10) % 4  # fielding's clusters, and the cluster nearest to each mix
    static_labels = labels.copy()
    event = rounds // 2 + seed
    now_s, records, skill = 0.0, [], 0.25
    moves: dict[int, np.ndarray] = {}  # by data step, who drifts
    for number in range(rounds):
        drifted, reclustered, moved = np.zeros(clients, dtype=bool), False, 0
        if number and number % 10 == 0:
            drifted = world.random(clients) < 0.12
            mix = np.where(drifted, world.integers(0, 5, clients) + 5 * (number > event), mix)
        if number == event:
            drifted = world.random(clients) < 0.85
            mix = np.where(drifted, world.integers(5, 10, clients), mix)
            skill -= 0.14 if arm == "fielding" else 0.2
        if drifted.any():
            moves[number // 10] = moves.get(number // 10, False) | drifted
        before = labels
        if arm == "fielding" and number == event + 1:
            reclustered, centre_of = True, np.array([0, 1, 2, 3, 0, 5, 1, 3, 4, 2])
            labels = centre_of[mix]
        elif arm == "fielding" and drifted.any() and number != event:
            labels = np.where(drifted, centre_of[mix], labels)
            moved = int((labels != before).sum())
        members = {"global": np.zeros(clients, dtype=int), "static": static_labels, "fielding": labels}[arm]
        ceiling = {"global": 0.72, "static": 0.75, "fielding": 0.83}[arm]
        skill += (ceiling - skill) * 0.055
        opened_s = now_s
        dispatched_s = opened_s + (8.0 if drifted.any() else 0.0)
        tail_s = noise.lognormal(4.6, 0.35) * (1.12 if arm != "global" else 1.0)
        now_s = dispatched_s + tail_s * (1.4 + np.sin(now_s / 13_000))
        participants = noise.permutation(clients)[:26]
        dropped = int(noise.binomial(6, 0.3 if arm != "global" else 0.25))
        purity = {"global": 0.0, "static": 0.75 if number < event else 0.15, "fielding": 0.8}[arm]
        if arm == "fielding" and number == event:
            purity = 0.3
        unclustered = 1.05 + 0.08 * np.sin(number / 23) + 0.01 * seed
        evaluated = number % 2 == 0
        records.append(
            a_record(
                number,
                opened_s=opened_s,
                dispatched_s=dispatched_s,
                closed_s=now_s,
                participants=participants.tolist(),
                completed=participants[:20].tolist(),
                dropped=participants[20 : 20 + dropped].tolist(),
                changed=int(drifted.sum()),
                reported=int(drifted.sum()),
                moved=moved,
                reclustered=reclustered,
                clusters=np.unique(members).tolist(),
                members=members if number == 0 or (members != before).any() else None,
                accuracy=float(skill + noise.normal(0, 0.012)) if evaluated else None,
                mean_client_distance=float(unclustered * (1 - 0.55 * purity)) if evaluated else None,
                unclustered_distance=float(unclustered) if evaluated else None,
                download_bytes=26 * 40_000.0 * (number + 1),
                upload_bytes=20 * 40_000.0 * (number + 1),
                control_bytes=4_000.0 * (number // 10) if arm == "fielding" else 0.0,
            )
        )
    clients_by_step = [np.flatnonzero(drifted).tolist() for drifted in moves.values()]
    onsets = {"steps": list(moves), "counts": list(map(len, clients_by_step)), "clients": clients_by_step}
    header = {"num_clients": clients, "onsets": onsets}
    return ReportedRun(
        arm, seed, header, records, TIMING.model_copy(update={"wall_s": 4.0 + seed / 10 + len(arm) / 5})
    )


def tables_of(name: str, directories: Sequence[RunDirectory]) -> tuple[dict[str, Any], list[Section]]:
    """The table of several run directories, and its sections."""
    measured = read_folder(directories)
    return build_table(name, {item.directory: item.finished for item in measured}), sections(measured)
