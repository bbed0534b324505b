"""`summary.json`: the figures of every arm, and their comparison with the reference arm.

    version, name, reference_arm, window
    horizon        the stretch of virtual time that counts: `start_s`, `horizon_s`, `asked_s`
                   (report.horizon_s), `set_by` {arm, seed} (the run that ended first; null if the horizon is
                   `asked_s`), `longest_s`, `event_rounds`, `steps` by arm, `widest_gap_s`,
                   `seconds_per_round` (if it is set), `warnings`
    arms.<arm>     seeds (their number), seed_ids (in the order of every `per_seed`), and the quantities of
                   all tables, in their order, each {mean, ci95, per_seed};
                   `reclustering_rounds` is a list of rounds for each seed, and `<accuracy>_recovery` one of
                   what it took to recover from the drift, null if a seed never has (drift.py)
    targets        a list of {target, accuracy, counted_from, arms}, where arms.<arm> has the quantities of
                   targets.py, each {median, interval, level, per_seed}; `held` and `seeds` are numbers of
                   seeds; `counted_from` is "event" if `held_from_s` and `speedup` are counted from the first
                   mass event of each run, and else "start"
    offline_clients_heard
                   the arms whose clients reported although they were offline (round.hear = "everyone")
    marked_seeds   a list of {seed, arms, distance}: seeds on which every arm is off (marked_seeds.py), by the
                   accuracy omitting drift where concepts are known, by `mean_accuracy` elsewhere
    finished       figures of every finished run, see concept_drift.py
    detection      only if runs recorded decisions of detectors: `positive`, `first_round`, `last_round` and
                   `tolerance` of the configuration, and arms.<arm>.<detector> of arms with detectors:
                   `watched` ("representation", "arrivals" or "training"), the figures of detection.py, each
                   {mean, ci95, per_seed}, and kinds.<kind> with `drifts`, `found` and `recall_all` of a kind
                   of drifts

The `ci95` of a mean is Student's t over seeds; a gain also has `ci95_joint`, which holds for all arms at
once. Both are null for arms with a trigger, which may re-cluster globally in some seeds and not in others,
and for comparisons with one; their `reclustered_seeds`, which is null for other arms, is the share of seeds
in which it did by the horizon, with its exact interval. A median, and each of its seeds, is
{low, high, status}: a number that is known has status "=" and low = high; a time after the horizon has no
upper bound (null, ">="), a time up to the first evaluation has only an upper one ("<="). `level` is the true
level of `interval`. With under three seeds there are no intervals, but those of shares of seeds. A comparison
with the reference arm is null for that arm itself, and one with another arm, whose name is in `over`, as
baselines.py describes it (so is `not_above`); `gain_after_drift_pp` and `below_after_drift` are null unless a
mass event is before the horizon in every run; the mean of a figure that was not measured in every seed is
null.

Figures are in the units of their names; accuracies, shares and distances have none, `_pp` is percentage
points. Nothing after the horizon counts, except in `virtual_time_s`, `wall_s` and `clustering_wall_s`, which
are of whole runs, in `finished`, which is by data step, and in `detection`, which has its own rounds.
`crashed_visits` are among the `dropouts`; `rejected_updates` counts the visits with an update that was not
finite, `nonfinite_reports` such reports.

An arm is measured on the seeds that the reference arm has also finished, so that all comparisons are paired.
Arms that share no seed with the reference arm are left out; these are all arms until it has finished a run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.errors import InputError
from emulator.storage.checkpoints import write_durably
from experiments.results.reading.configured_arms import ConfiguredArm, configured_arms, headline_arm
from experiments.results.reading.detection import DetectionSettings, detection_settings
from experiments.results.reading.json_files import Finished
from experiments.results.reading.recorded import Target, recorded_targets
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.statistics.comparisons import (
    Compared,
    Comparison,
    MeasuredRun,
    comparisons,
    start_clauses,
)
from experiments.results.statistics.horizon import (
    Horizon,
    common_horizon,
    event_rounds,
    is_static,
    seconds_per_round,
)
from experiments.results.statistics.marked_seeds import (
    MarkedSeed,
    marked_by_drift,
    marked_clause,
    marked_seeds,
)
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.results.tables import all_quantities
from experiments.results.tables.table import Row, stated

if TYPE_CHECKING:
    from experiments.results.statistics.detection.scores import Detection
    from experiments.results.tables.targets import TargetTable

SUMMARY_VERSION = 5
"""Version of the layout of `summary.json`."""


@dataclass(frozen=True)
class Summary:
    """The figures of an experiment.

    `rows` has what all tables measure of each arm. It and the rows of each target are in the order of
    `compared`, which is empty if the reference arm has no finished run.
    """

    name: str
    reference_arm: str
    window: int
    comparison: Compared
    rows: list[Row]
    targets: list[TargetTable]
    finished: Finished
    headline: str | None = None
    """The arm of the report's headline; None for a headline on all arms."""
    detection: Detection | None = None
    """The figures of detectors; None if no run recorded decisions of one."""

    @property
    def compared(self) -> Sequence[Comparison]:
        """The arms that are compared, in the order of their first runs."""
        return self.comparison.arms

    @property
    def horizon(self) -> Horizon:
        """The stretch of virtual time over which they are compared."""
        return self.comparison.horizon

    @property
    def marked_seeds(self) -> list[MarkedSeed]:
        """The seeds on which every arm is off, ascending (marked_seeds.py)."""
        if self.finished.scored_steps is not None:
            return marked_by_drift(self.finished)
        return marked_seeds(
            {
                arm.arm: {
                    seed: value
                    for seed, value in zip(arm.seed_ids, row["mean_accuracy"].per_seed, strict=True)
                    if value is not None
                }
                for arm, row in zip(self.compared, self.rows, strict=True)
            }
        )

    @property
    def offline_clients_heard(self) -> list[str]:
        """The arms in which offline clients could report, in the order of `compared`."""
        return [arm.arm for arm in self.compared if any(run.offline_clients_heard for run in arm.runs)]

    def warnings(self) -> list[str]:
        """Warnings for readers of the figures, as clauses without a full stop."""
        marked = marked_clause(self._marked_json())
        starts = start_clauses(self.compared)
        return [*self.horizon.warnings(), *starts, *([marked] if marked else [])]

    def _marked_json(self) -> list[dict[str, object]]:
        return [marked.as_json() for marked in self.marked_seeds]

    def as_json(self) -> dict[str, object]:
        """The content of `summary.json`."""
        detection = {} if self.detection is None else {"detection": self.detection.as_json()}
        return {
            "version": SUMMARY_VERSION,
            "name": self.name,
            "reference_arm": self.reference_arm,
            "window": self.window,
            "horizon": self.horizon.as_json(),
            "arms": {
                arm.arm: {"seeds": len(arm.runs), "seed_ids": arm.seed_ids, **row.as_json()}
                for arm, row in zip(self.compared, self.rows, strict=True)
            },
            "targets": [table.as_json() for table in self.targets],
            "offline_clients_heard": self.offline_clients_heard,
            "marked_seeds": self._marked_json(),
            "finished": self.finished.model_dump(),
            **detection,
        }


def summarise(
    runs: Sequence[ReportedRun],
    *,
    name: str,
    window: int,
    reference_arm: str,
    targets: Sequence[Target] = (),
    horizon_s: float | None = None,
    event_rounds: Sequence[int] = (),
    is_static: bool = False,
    seconds_per_round: float | None = None,
    configured: Mapping[str, ConfiguredArm] | None = None,
    headline: str | None = None,
    detection: DetectionSettings | None = None,
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
        seconds_per_round: Virtual seconds of a nominal round; None if rounds are server rounds.
        configured: The configured arms by name, as far as they are known.
        headline: The arm of the report's headline, if it is on one.
        detection: How decisions of detectors are scored; None if they are not.

    Raises:
        InputError: There is no run, or one was never evaluated, or its rounds are out of order.
        ValueError: `window` is below 1.
    """
    from experiments.results.tables.concept_drift import figures_of_finished
    from experiments.results.tables.targets import target_table

    if not runs:
        raise InputError(f"{name}: there is no finished run to summarise")
    curves = [accuracy_curve(run, window) for run in runs]
    horizon = common_horizon(
        runs,
        curves,
        asked_s=horizon_s,
        event_rounds=event_rounds,
        is_static=is_static,
        seconds_per_round=seconds_per_round,
    )
    measured = [MeasuredRun.of(run, curve, horizon) for run, curve in zip(runs, curves, strict=True)]
    compared = Compared(
        comparisons(measured, reference_arm, configured), horizon, configured=configured or {}
    )
    return Summary(
        name=name,
        reference_arm=reference_arm,
        window=window,
        comparison=compared,
        rows=measured_rows(compared),
        targets=[target_table(target, compared) for target in targets] if compared.arms else [],
        finished=figures_of_finished(
            [run for run in runs if run.until is None], reference_arm, compared.names_whose(_has_trigger)
        ),
        headline=headline,
        detection=None if detection is None else _figures_of_detectors(compared, detection),
    )


def _has_trigger(arm: ConfiguredArm) -> bool:
    return arm.has_trigger


def _figures_of_detectors(compared: Compared, settings: DetectionSettings) -> Detection | None:
    from experiments.results.statistics.detection.scores import detection_of

    return detection_of(compared.arms, settings)


def measured_rows(compared: Compared) -> list[Row]:
    """A row for each arm with the quantities of all tables, in their order."""
    return [
        Row(arm.arm, {key: stated(measure(arm, compared), arm) for key, measure in all_quantities().items()})
        for arm in compared.arms
    ]


def write_summary(directory: RunDirectory, runs: Sequence[ReportedRun]) -> Summary:
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


def summarise_directory(directory: RunDirectory, runs: Sequence[ReportedRun]) -> Summary:
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
        seconds_per_round=seconds_per_round(experiment),
        configured=configured_arms(experiment),
        headline=headline_arm(experiment),
        detection=detection_settings(experiment),
    )
