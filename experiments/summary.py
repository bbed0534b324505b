"""`summary.json`: what every arm comes to, and how it compares with the reference arm.

    version, name, reference_arm, window
    finished                          figures of every finished run, see drift_figures.py
    arms.<arm>
        seeds, reached                    how many, and how many of them reached the target
        seed_ids, censored_seeds          in the order of every `per_seed`; those that did not reach it
        <figure> {mean, ci95, per_seed}   ci95 [low, high] is null for one seed, mean where none was measured
        reclustering_rounds               a list of rounds for each seed

Figures are in the units of their names; accuracies and distances have none, `_pp` is percentage points.
`accuracy_omitting_drift` and `accuracy_including_drift` are test-then-train: means over clients and data
steps, by the last evaluation of each step, without the cells that drift and with them; null where the trace
does not know its concepts. `models_sent` counts whole models either way, `relative_models_sent` against those
of the reference arm. `crashed_visits` are among the `dropouts`; `rejected_updates` counts the clients whose
update was not finite, over all rounds. Version 2 added the four above, version 3 `finished`; figures may be
added within a version, as the last two were.
In `arms` an arm is measured on the seeds that the reference arm has finished too, so that all comparisons are
paired; arms that share no seed with it are left out, which are all while it has finished none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emulator.checkpoints import write_durably
from emulator.errors import InputError
from emulator.runlog import RoundRecord
from experiments.drift_accuracy import accuracy_including_drift, accuracy_omitting_drift
from experiments.drift_figures import drift_figures
from experiments.intervals import (
    Estimate,
    amount_estimate,
    difference_estimate,
    mean_estimate,
    ratio_estimate,
)
from experiments.run_directory import FinishedRun, RunDirectory
from experiments.time_to_accuracy import AccuracyCurve, accuracy_curve

SUMMARY_VERSION = 3

Summary = dict[str, Any]

TOTALS: dict[str, Callable[[FinishedRun], float | None]] = {
    "global_reclusterings": lambda run: sum(record.reclustered for record in run.records),
    "mean_client_distance": lambda run: _mean_client_distance(run.records),
    "virtual_time_s": lambda run: run.records[-1].closed_s,
    "wall_s": lambda run: run.timing["wall_s"],
    "download_bytes": lambda run: run.records[-1].download_bytes,
    "upload_bytes": lambda run: run.records[-1].upload_bytes,
    "control_bytes": lambda run: run.records[-1].control_bytes,
    "models_sent": lambda run: run.records[-1].models_sent,
    "moves": lambda run: sum(record.moved for record in run.records),
    "dropouts": lambda run: sum(len(record.dropped) for record in run.records),
    "abandoned": lambda run: sum(record.abandoned for record in run.records),
    "crashed_visits": lambda run: sum(len(record.crashed) for record in run.records),
    "rejected_updates": lambda run: sum(len(record.rejected) for record in run.records),
}
"""Figures that need one run alone."""


def summarise(
    runs: Sequence[FinishedRun],
    *,
    name: str,
    window: int,
    reference_arm: str,
    target: float | None = None,
) -> Summary:
    """The summary of finished runs; arms stand in the order of their first run.

    The target is `target` or, seed by seed, the final smoothed accuracy of `reference_arm`. InputError when
    there is no run, or one was never evaluated.
    """
    if not runs:
        raise InputError(f"{name}: there is no finished run to summarise")
    arms: dict[str, dict[int, FinishedRun]] = {}
    for run in runs:
        arms.setdefault(run.arm, {})[run.seed] = run
    curves = {(run.arm, run.seed): accuracy_curve(run, window) for run in runs}
    reference = {seed: curve for (arm, seed), curve in curves.items() if arm == reference_arm}
    summaries = {}
    for arm, by_seed in arms.items():
        shared = [run for seed, run in by_seed.items() if seed in reference]
        if shared:
            bases = [arms[reference_arm][run.seed] for run in shared]
            summaries[arm] = _summarise_arm(
                shared,
                bases,
                [curves[arm, run.seed] for run in shared],
                [reference[run.seed] for run in shared],
                target,
            )
    return {
        "version": SUMMARY_VERSION,
        "name": name,
        "reference_arm": reference_arm,
        "window": window,
        "arms": summaries,
        "finished": drift_figures(arms, reference_arm),
    }


def write_summary(directory: RunDirectory, runs: Sequence[FinishedRun]) -> Summary:
    """Summarise `runs` as the directory's configuration says, and write `summary.json`."""
    summary = summarise_directory(directory, runs)
    write_durably(directory.summary_path, json.dumps(summary, allow_nan=False, indent=2) + "\n")
    return summary


def summarise_directory(directory: RunDirectory, runs: Sequence[FinishedRun]) -> Summary:
    """Summarise `runs` with the window and the target of the directory's configuration."""
    experiment = directory.experiment()
    report = experiment["report"]
    return summarise(
        runs,
        name=experiment["name"],
        window=report["window"],
        reference_arm=directory.arms()[0],
        target=report.get("target"),
    )


def _summarise_arm(
    runs: Sequence[FinishedRun],
    bases: Sequence[FinishedRun],
    curves: Sequence[AccuracyCurve],
    reference: Sequence[AccuracyCurve],
    target: float | None,
) -> dict[str, Any]:
    """One arm; `bases` are the reference arm's runs for the seed of each run, `reference` their curves."""
    targets = [_final(base) if target is None else target for base in reference]
    times = [curve.time_to(goal) for curve, goal in zip(curves, targets, strict=True)]
    reference_times = [base.time_to(goal) for base, goal in zip(reference, targets, strict=True)]
    final = [_final(curve) for curve in curves]
    means = [float(np.mean(curve.accuracy)) for curve in curves]
    figures: dict[str, Estimate] = {
        "target_accuracy": mean_estimate(targets),
        "final_accuracy": mean_estimate(final),
        "gain_pp": difference_estimate(final, [_final(base) for base in reference], scale=100.0),
        "mean_accuracy": mean_estimate(means),
        "mean_gain_pp": difference_estimate(
            means, [float(np.mean(base.accuracy)) for base in reference], scale=100.0
        ),
        "accuracy_omitting_drift": mean_estimate([accuracy_omitting_drift(run.records) for run in runs]),
        "accuracy_including_drift": mean_estimate([accuracy_including_drift(run.records) for run in runs]),
        "tta_s": amount_estimate([time_s for time_s, _ in times]),
        "speedup": ratio_estimate([time_s for time_s, _ in reference_times], [time_s for time_s, _ in times]),
        **{figure: amount_estimate([total(run) for run in runs]) for figure, total in TOTALS.items()},
        "relative_models_sent": ratio_estimate(
            [run.records[-1].models_sent for run in runs], [base.records[-1].models_sent for base in bases]
        ),
    }
    return {
        "seeds": len(runs),
        "reached": sum(reached for _, reached in times),
        "seed_ids": [run.seed for run in runs],
        "censored_seeds": [run.seed for run, (_, reached) in zip(runs, times, strict=True) if not reached],
        **{figure: estimate.as_json() for figure, estimate in figures.items()},
        "reclustering_rounds": [
            [record.round for record in run.records if record.reclustered] for run in runs
        ],
    }


def _final(curve: AccuracyCurve) -> float:
    final = curve.final()
    assert final is not None
    return final


def _mean_client_distance(records: Sequence[RoundRecord]) -> float | None:
    """The mean over the rounds where it was measured; None where it never was."""
    measured = [r.mean_client_distance for r in records if r.mean_client_distance is not None]
    return float(np.mean(measured)) if measured else None
