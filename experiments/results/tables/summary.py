"""`summary.json`: the figures of every arm, and their comparison with the reference arm.

    version, name, reference_arm, window
    horizon        the stretch of virtual time that counts: `start_s`, `horizon_s`, `asked_s`
                   (report.horizon_s), `set_by` {arm, seed} (the run that ended first; null if the horizon is
                   `asked_s`), `longest_s`, `event_rounds`, `steps` by arm, `widest_gap_s`, `warnings`
    arms.<arm>     seeds (their number), seed_ids (in the order of every `per_seed`), and the figures of
                   `AccuracyRow`, `CostRow`, `ClusterChangeRow`, `HonestRow` and `ClientRow`, each
                   {mean, ci95, per_seed};
                   `reclustering_rounds` is a list of rounds for each seed
    targets        a list of {target, accuracy, arms}, where arms.<arm> has the figures of `TargetRow`, each
                   {median, interval, level, per_seed}; `held` and `seeds` are numbers of seeds
    offline_clients_heard
                   the arms whose clients reported although they were offline (round.hear = "everyone")
    marked_seeds   a list of {seed, arms, distance}: seeds on which every arm is off (marked_seeds.py), by the
                   accuracy omitting drift where concepts are known, by `mean_accuracy` elsewhere
    finished       figures of every finished run, see drift_figures.py

The `ci95` of a mean is Student's t over seeds; a gain also has `ci95_joint`, which holds for all arms at
once. A median, and each of its seeds, is {low, high, status}: a number that is known has status "=" and low =
high; a time after the horizon has no upper bound (null, ">="), a time up to the first evaluation has only an
upper one ("<="). `level` is the true level of `interval`. With under three seeds there are no intervals. A
comparison with the reference arm is null for that arm itself; `gain_after_drift_pp` and `below_after_drift`
are null unless a mass event is before the horizon in every run; the mean of a figure that was not measured in
every seed is null.

Figures are in the units of their names; accuracies, shares and distances have none, `_pp` is percentage
points. Nothing after the horizon counts, except in `virtual_time_s`, `wall_s` and `clustering_wall_s`, which
are of whole runs, and in `finished`, which is by data step. `crashed_visits` are among the `dropouts`;
`rejected_updates` counts the visits with an update that was not finite, `nonfinite_reports` such reports.

An arm is measured on the seeds that the reference arm has also finished, so that all comparisons are paired.
Arms that share no seed with the reference arm are left out; these are all arms until it has finished a run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from emulator.errors import InputError
from emulator.messages import BYTES_PER_PARAMETER
from emulator.storage.checkpoints import write_durably
from emulator.storage.runlog import RoundRecord
from experiments.results.reading.json_files import Finished
from experiments.results.reading.recorded import Target, recorded_targets
from experiments.results.reading.run_directory import FinishedRun, RunDirectory
from experiments.results.statistics.horizon import Horizon, common_horizon, event_rounds, is_static
from experiments.results.statistics.intervals import Estimate, amount_estimate
from experiments.results.statistics.marked_seeds import (
    MarkedSeed,
    marked_by_drift,
    marked_clause,
    marked_seeds,
)
from experiments.results.statistics.medians import MedianEstimate
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.results.tables.accuracy_tables import (
    AccuracyRow,
    Comparison,
    MeasuredRun,
    TargetRow,
    TargetTable,
    accuracy_rows,
    comparisons,
    target_table,
)
from experiments.results.tables.clients import ClientRow, are_logged, client_rows
from experiments.results.tables.cluster_changes import (
    ClusterChangeRow,
    are_worth_a_table,
    cluster_change_rows,
)
from experiments.results.tables.drift_figures import drift_figures
from experiments.results.tables.honest import HonestRow, are_measured, honest_rows

SUMMARY_VERSION = 4
"""Version of the layout of `summary.json`."""


@dataclass(frozen=True)
class CostRow:
    """Costs and counts of events of an arm up to the horizon, per run.

    Amounts of data are in bytes, times in seconds; `virtual_time_s` and `wall_s` are of whole runs.
    `models_trained_per_client` is what was uploaded for training, in models, per completed visit: exact if no
    packet is lost and every visit completes. Packets that are sent again count, and so does what a visit had
    uploaded when it was abandoned or dropped out: then it is an upper bound. `final_client_distance` is the
    last client distance that was measured by the horizon. `waiting_for_responses_s` is the virtual time
    before dispatch, in which no visit is out: a round waits for reports, for responses to client requests,
    and until enough clients are online. `clusters` is the number of clusters at the horizon, also empty ones:
    what splits, merges and re-clusterings have left. `reclustering_rounds` has a list of rounds for each
    seed.
    """

    arm: str
    rounds: Estimate
    global_reclusterings: Estimate
    mean_client_distance: Estimate
    final_client_distance: Estimate
    download_bytes: Estimate
    upload_bytes: Estimate
    control_bytes: Estimate
    models_sent: Estimate
    models_trained_per_client: Estimate
    waiting_for_responses_s: Estimate
    clusters: Estimate
    moves: Estimate
    dropouts: Estimate
    abandoned: Estimate
    crashed_visits: Estimate
    rejected_updates: Estimate
    nonfinite_reports: Estimate
    virtual_time_s: Estimate
    wall_s: Estimate
    reclustering_rounds: list[list[int]]


@dataclass(frozen=True)
class Summary:
    """The figures of an experiment.

    `accuracy`, `costs`, `cluster_changes`, `honest`, `clients` and the rows of each target are in the
    order of `compared`, which is empty if the reference arm has no finished run.
    """

    name: str
    reference_arm: str
    window: int
    horizon: Horizon
    compared: list[Comparison]
    accuracy: list[AccuracyRow]
    targets: list[TargetTable]
    costs: list[CostRow]
    cluster_changes: list[ClusterChangeRow]
    honest: list[HonestRow]
    clients: list[ClientRow]
    finished: Finished

    @property
    def marked_seeds(self) -> list[MarkedSeed]:
        """The seeds on which every arm is off, ascending (marked_seeds.py)."""
        if self.finished.scored_steps is not None:
            return marked_by_drift(self.finished)
        return marked_seeds(
            {
                arm.arm: {
                    seed: value
                    for seed, value in zip(arm.seed_ids, row.mean_accuracy.per_seed, strict=True)
                    if value is not None
                }
                for arm, row in zip(self.compared, self.accuracy, strict=True)
            }
        )

    @property
    def offline_clients_heard(self) -> list[str]:
        """The arms in which offline clients could report, in the order of `compared`."""
        return [arm.arm for arm in self.compared if any(run.offline_clients_heard for run in arm.runs)]

    @property
    def shows_cluster_changes(self) -> bool:
        """Whether a table of `cluster_changes` says anything: several arms cluster, and clients change."""
        return are_worth_a_table(self.cluster_changes, self.compared, self.horizon)

    @property
    def shows_honest_clients(self) -> bool:
        """Whether accuracies of honest or byzantine clients are known."""
        return are_measured(self.honest)

    @property
    def shows_clients(self) -> bool:
        """Whether the accuracies of clients at the horizon are known."""
        return are_logged(self.clients)

    def warnings(self) -> list[str]:
        """Warnings for readers of the figures, as clauses without a full stop."""
        marked = marked_clause(self._marked_json())
        return [*self.horizon.warnings(), *([marked] if marked else [])]

    def _marked_json(self) -> list[dict[str, object]]:
        return [marked.as_json() for marked in self.marked_seeds]

    def as_json(self) -> dict[str, object]:
        """The content of `summary.json`."""
        return {
            "version": SUMMARY_VERSION,
            "name": self.name,
            "reference_arm": self.reference_arm,
            "window": self.window,
            "horizon": self.horizon.as_json(),
            "arms": {
                arm.arm: {"seeds": len(arm.runs), "seed_ids": arm.seed_ids, **figures}
                for arm, figures in zip(self.compared, self._figures(), strict=True)
            },
            "targets": [
                {
                    "target": table.target,
                    "accuracy": table.accuracy.as_json(),
                    "arms": {row.arm: row_figures(row) for row in table.rows},
                }
                for table in self.targets
            ],
            "offline_clients_heard": self.offline_clients_heard,
            "marked_seeds": self._marked_json(),
            "finished": self.finished.model_dump(),
        }

    def _figures(self) -> Iterator[dict[str, object]]:
        """The figures of each arm by name, in the order of `compared`."""
        for rows in zip(
            self.accuracy, self.costs, self.cluster_changes, self.honest, self.clients, strict=True
        ):
            yield {name: figure for row in rows for name, figure in row_figures(row).items()}


def summarise(
    runs: Sequence[FinishedRun],
    *,
    name: str,
    window: int,
    reference_arm: str,
    targets: Sequence[Target] = (),
    horizon_s: float | None = None,
    event_rounds: Sequence[int] = (),
    is_static: bool = False,
) -> Summary:
    """The summary of finished runs; arms are in the order of their first runs.

    Args:
        runs: Finished runs of any arms and seeds.
        name: Name of the experiment.
        window: Number of evaluations, at least 1, over which the accuracy is smoothed for `held_from_s`,
            `first_reached_s` and the final accuracy.
        reference_arm: The arm with which the others are compared.
        targets: Accuracies in (0, 1], or "reference" for the reference arm's own at the horizon.
        horizon_s: Virtual time up to which runs are compared. None, or a time after the end of the run that
            ends first, stands for that end.
        event_rounds: Rounds of the mass events, ascending.
        is_static: Whether no data arrive after the first data step.

    Raises:
        InputError: There is no run, or one was never evaluated, or its rounds are out of order.
        ValueError: `window` is below 1.
    """
    if not runs:
        raise InputError(f"{name}: there is no finished run to summarise")
    curves = [accuracy_curve(run, window) for run in runs]
    horizon = common_horizon(runs, curves, asked_s=horizon_s, event_rounds=event_rounds, is_static=is_static)
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
        cluster_changes=cluster_change_rows(compared, horizon),
        honest=honest_rows(compared, horizon),
        clients=client_rows(compared, horizon),
        finished=drift_figures(runs, reference_arm),
    )


def write_summary(directory: RunDirectory, runs: Sequence[FinishedRun]) -> Summary:
    """Summarise `runs` as configured in the directory, and write `summary.json`.

    Args:
        directory: Where `summary.json` is written.
        runs: Its finished runs.

    Returns:
        The summary that was written.

    Raises:
        InputError: There is no run, or one was never evaluated.
    """
    summary = summarise_directory(directory, runs)
    content = json.dumps(summary.as_json(), allow_nan=False, indent=2) + "\n"
    write_durably(directory.summary_path, content)
    return summary


def summarise_directory(directory: RunDirectory, runs: Sequence[FinishedRun]) -> Summary:
    """Summarise `runs` with the settings in `[report]` of the configuration; writes nothing.

    Args:
        directory: The run directory that has the configuration.
        runs: Its finished runs.

    Returns:
        The summary, with the first configured arm as the reference arm.

    Raises:
        InputError: There is no run, or one was never evaluated.
    """
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
        is_static=is_static(experiment),
    )


def _cost_row(arm: Comparison, horizon: Horizon) -> CostRow:
    by_run = [horizon.records(run) for run in arm.runs]

    def last(figure: str) -> Estimate:
        """A figure that is counted from the start of the run: its value in the last round, or 0."""
        return amount_estimate([getattr(records[-1], figure) if records else 0.0 for records in by_run])

    def total(counts: Sequence[Sequence[int]]) -> Estimate:
        """A figure that is counted round by round: its sum over the rounds of each run."""
        return amount_estimate([float(sum(by_round)) for by_round in counts])

    return CostRow(
        arm=arm.arm,
        rounds=total([[1 for _ in records] for records in by_run]),
        global_reclusterings=total([[record.reclustered for record in records] for records in by_run]),
        mean_client_distance=amount_estimate([_mean(_client_distances(records)) for records in by_run]),
        final_client_distance=amount_estimate([_last(_client_distances(records)) for records in by_run]),
        download_bytes=last("download_bytes"),
        upload_bytes=last("upload_bytes"),
        control_bytes=last("control_bytes"),
        models_sent=last("models_sent"),
        models_trained_per_client=amount_estimate(
            [_models_trained_per_client(run, records) for run, records in zip(arm.runs, by_run, strict=True)]
        ),
        waiting_for_responses_s=amount_estimate([_waiting_s(records) for records in by_run]),
        clusters=amount_estimate(
            [float(len(records[-1].clusters)) if records else 0.0 for records in by_run]
        ),
        moves=total([[record.moved for record in records] for records in by_run]),
        dropouts=total([[len(record.dropped) for record in records] for records in by_run]),
        abandoned=total([[record.abandoned for record in records] for records in by_run]),
        crashed_visits=total([[len(record.crashed) for record in records] for records in by_run]),
        rejected_updates=total([[len(record.rejected) for record in records] for records in by_run]),
        nonfinite_reports=total([[record.nonfinite_reports for record in records] for records in by_run]),
        virtual_time_s=amount_estimate([run.records[-1].closed_s for run in arm.runs]),
        wall_s=amount_estimate([run.timing.wall_s for run in arm.runs]),
        reclustering_rounds=[
            [record.round for record in records if record.reclustered] for records in by_run
        ],
    )


def _models_trained_per_client(run: FinishedRun, records: Sequence[RoundRecord]) -> float | None:
    """Models uploaded for training per completed visit.

    None if no visit completed, or if the header of the log does not have the number of parameters.
    """
    completed = sum(len(record.completed) for record in records)
    num_parameters: int | None = run.header.get("num_parameters")
    if not completed or num_parameters is None:
        return None
    return records[-1].upload_bytes / (BYTES_PER_PARAMETER * num_parameters) / completed


def _waiting_s(records: Sequence[RoundRecord]) -> float:
    """The virtual seconds from the end of each round to the dispatch of the next one, when no visit is out.

    The first round counts from its opening.
    """
    ends = [record.closed_s for record in records]
    starts = [record.opened_s for record in records[:1]] + ends
    return math.fsum(record.dispatched_s - end for record, end in zip(records, starts, strict=False))


def _client_distances(records: Sequence[RoundRecord]) -> list[float]:
    """The `mean_client_distance` of the rounds that have it."""
    return [r.mean_client_distance for r in records if r.mean_client_distance is not None]


def _mean(values: Sequence[float]) -> float | None:
    """Their mean; None if there are none."""
    return float(np.mean(values)) if values else None


def _last(values: Sequence[float]) -> float | None:
    """The last of them; None if there are none."""
    return values[-1] if values else None


def row_figures(
    row: AccuracyRow | TargetRow | CostRow | ClusterChangeRow | HonestRow | ClientRow,
) -> dict[str, object]:
    """The figures of a row by name, as in `summary.json`."""
    values = {field.name: getattr(row, field.name) for field in fields(row) if field.name != "arm"}
    return {
        name: value.as_json() if isinstance(value, Estimate | MedianEstimate) else value
        for name, value in values.items()
    }
