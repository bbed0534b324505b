"""`summary.json`: what every arm comes to, and how it compares with the reference arm.

    version, name, reference_arm, window
    horizon        the stretch of virtual time that counts: `start_s`, `horizon_s`, `asked_s`, `set_by`
                   {arm, seed} (null where it is the one asked for), `longest_s`, `event_rounds`, `steps` by
                   arm, `widest_gap_s`, `warnings`
    arms.<arm>     seeds, seed_ids (in the order of every `per_seed`), and the figures of `AccuracyRow` and
                   `CostRow`, each {mean, ci95, per_seed}
    targets        a list of {target, accuracy, arms}, where arms.<arm> has the figures of `TargetRow`, each
                   {median, interval, level, per_seed}
    finished       figures of every finished run, see drift_figures.py

A mean's `ci95` is Student's t over seeds; a gain has `ci95_joint` too, which holds for all arms at once. A
median, and each of its seeds, is {low, high, status}: a number that is known has status "=" and low = high;
one after the horizon has no upper bound (null, ">="), one before the first evaluation lies above 0 ("<=").
`level` is the true level of `interval`. Under three seeds there are no intervals. A comparison with the
reference arm is null for that arm itself; `gain_after_drift_pp` and `below_after_drift` are null unless a
mass event is before the horizon in every run; and a figure is null where it was not measured.

Figures are in the units of their names; accuracies, shares and distances have none, `_pp` is percentage
points. Nothing after the horizon counts, but for `virtual_time_s` and `wall_s`, which are of whole runs, and
`finished`, which is by data step. `crashed_visits` are among the `dropouts`; `rejected_updates` counts the
clients whose update was not finite. An arm is measured on the seeds that the reference arm has finished too,
so that all comparisons are paired; arms that share no seed with it are left out, which are all while it has
finished none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from emulator.errors import InputError
from emulator.storage.checkpoints import write_durably
from emulator.storage.runlog import RoundRecord
from experiments.results.accuracy_tables import (
    AccuracyRow,
    Comparison,
    MeasuredRun,
    TargetRow,
    TargetTable,
    accuracy_rows,
    comparisons,
    target_table,
)
from experiments.results.drift_figures import drift_figures
from experiments.results.horizon import Horizon, common_horizon, event_rounds
from experiments.results.intervals import Estimate, amount_estimate
from experiments.results.json_files import Finished
from experiments.results.medians import MedianEstimate
from experiments.results.recorded import Target, recorded_targets
from experiments.results.run_directory import FinishedRun, RunDirectory
from experiments.results.time_to_accuracy import accuracy_curve

SUMMARY_VERSION = 4


@dataclass(frozen=True)
class CostRow:
    """What an arm cost by the horizon, per run."""

    arm: str
    rounds: Estimate
    global_reclusterings: Estimate
    mean_client_distance: Estimate
    download_bytes: Estimate
    upload_bytes: Estimate
    control_bytes: Estimate
    models_sent: Estimate
    moves: Estimate
    dropouts: Estimate
    abandoned: Estimate
    crashed_visits: Estimate
    rejected_updates: Estimate
    virtual_time_s: Estimate
    wall_s: Estimate
    reclustering_rounds: list[list[int]]


@dataclass(frozen=True)
class Summary:
    """Rows stand in the order of the arms; there are none where the reference arm has no finished run."""

    name: str
    reference_arm: str
    window: int
    horizon: Horizon
    compared: list[Comparison]
    accuracy: list[AccuracyRow]
    targets: list[TargetTable]
    costs: list[CostRow]
    finished: Finished

    def as_json(self) -> dict[str, object]:
        """As `summary.json` has it."""
        return {
            "version": SUMMARY_VERSION,
            "name": self.name,
            "reference_arm": self.reference_arm,
            "window": self.window,
            "horizon": self.horizon.as_json(),
            "arms": {
                arm.arm: {
                    "seeds": len(arm.runs),
                    "seed_ids": arm.seed_ids,
                    **_figures(row),
                    **_figures(cost),
                }
                for arm, row, cost in zip(self.compared, self.accuracy, self.costs, strict=True)
            },
            "targets": [
                {
                    "target": table.target,
                    "accuracy": table.accuracy.as_json(),
                    "arms": {row.arm: _figures(row) for row in table.rows},
                }
                for table in self.targets
            ],
            "finished": self.finished.model_dump(),
        }


def summarise(
    runs: Sequence[FinishedRun],
    *,
    name: str,
    window: int,
    reference_arm: str,
    targets: Sequence[Target] = (),
    horizon_s: float | None = None,
    event_rounds: Sequence[int] = (),
) -> Summary:
    """The summary of finished runs; arms stand in the order of their first run.

    `horizon_s` is the one asked for, `event_rounds` those of the mass events, in order. InputError when
    there is no run, or one was never evaluated.
    """
    if not runs:
        raise InputError(f"{name}: there is no finished run to summarise")
    curves = [accuracy_curve(run, window) for run in runs]
    horizon = common_horizon(runs, curves, asked_s=horizon_s, event_rounds=event_rounds)
    measured = [
        MeasuredRun(run, curve, horizon.event_s(run)) for run, curve in zip(runs, curves, strict=True)
    ]
    compared = comparisons(measured, reference_arm)
    return Summary(
        name=name,
        reference_arm=reference_arm,
        window=window,
        horizon=horizon,
        compared=compared,
        accuracy=accuracy_rows(compared, horizon),
        targets=[target_table(target, compared, horizon) for target in targets] if compared else [],
        costs=[_cost_row(arm, horizon) for arm in compared],
        finished=drift_figures(runs, reference_arm),
    )


def write_summary(directory: RunDirectory, runs: Sequence[FinishedRun]) -> Summary:
    """Summarise `runs` as the directory's configuration says, and write `summary.json`."""
    summary = summarise_directory(directory, runs)
    content = json.dumps(summary.as_json(), allow_nan=False, indent=2) + "\n"
    write_durably(directory.summary_path, content)
    return summary


def summarise_directory(directory: RunDirectory, runs: Sequence[FinishedRun]) -> Summary:
    """Summarise `runs` with what `[report]` of the directory's configuration says."""
    experiment = directory.experiment()
    report = experiment["report"]
    return summarise(
        runs,
        name=experiment["name"],
        window=report["window"],
        reference_arm=directory.arms()[0],
        targets=recorded_targets(report),
        horizon_s=report.get("horizon_s"),
        event_rounds=event_rounds(experiment),
    )


def _cost_row(arm: Comparison, horizon: Horizon) -> CostRow:
    by_run = [horizon.records(run) for run in arm.runs]

    def last(figure: str) -> Estimate:
        """Of a figure that counts from the start of the run."""
        return amount_estimate([getattr(records[-1], figure) if records else 0.0 for records in by_run])

    def total(counts: Sequence[Sequence[int]]) -> Estimate:
        return amount_estimate([float(sum(of_rounds)) for of_rounds in counts])

    return CostRow(
        arm=arm.arm,
        rounds=total([[1 for _ in records] for records in by_run]),
        global_reclusterings=total([[record.reclustered for record in records] for records in by_run]),
        mean_client_distance=amount_estimate([_mean_client_distance(records) for records in by_run]),
        download_bytes=last("download_bytes"),
        upload_bytes=last("upload_bytes"),
        control_bytes=last("control_bytes"),
        models_sent=last("models_sent"),
        moves=total([[record.moved for record in records] for records in by_run]),
        dropouts=total([[len(record.dropped) for record in records] for records in by_run]),
        abandoned=total([[record.abandoned for record in records] for records in by_run]),
        crashed_visits=total([[len(record.crashed) for record in records] for records in by_run]),
        rejected_updates=total([[len(record.rejected) for record in records] for records in by_run]),
        virtual_time_s=amount_estimate([run.records[-1].closed_s for run in arm.runs]),
        wall_s=amount_estimate([run.timing.wall_s for run in arm.runs]),
        reclustering_rounds=[
            [record.round for record in records if record.reclustered] for records in by_run
        ],
    )


def _mean_client_distance(records: Sequence[RoundRecord]) -> float | None:
    """The mean over the rounds where it was measured; None where it never was."""
    measured = [r.mean_client_distance for r in records if r.mean_client_distance is not None]
    return float(np.mean(measured)) if measured else None


def _figures(row: AccuracyRow | TargetRow | CostRow) -> dict[str, object]:
    """A row as `summary.json` has it: its figures by name."""
    values = {field.name: getattr(row, field.name) for field in fields(row) if field.name != "arm"}
    return {
        name: value.as_json() if isinstance(value, Estimate | MedianEstimate) else value
        for name, value in values.items()
    }
