"""Measures all quantities of the finished runs of a run directory, and writes `summary.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from emulator.errors import InputError
from emulator.storage.checkpoints import write_durably
from experiments.results.reading.configured_arms import ConfiguredArm, configured_arms, headline_arm
from experiments.results.reading.detection import DetectionSettings, detection_settings
from experiments.results.reading.recorded import Target, recorded_targets
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.statistics.comparisons import Compared, Run, comparisons
from experiments.results.statistics.detection.scores import detection_of
from experiments.results.statistics.horizon import common_horizon, event_rounds, is_static, seconds_per_round
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.targets import target_table
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.results.statistics.whole_runs import figures_of_finished
from experiments.results.tables import all_quantities
from experiments.results.tables.quantities import Quantity, stated


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
    left_out: Sequence[str] = (),
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
        left_out: Those of the configured arms that no command asked for.

    Raises:
        InputError: There is no run, or one was never evaluated, or its rounds are out of order.
        ValueError: `window` is below 1.
    """
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
    measured = [Run.of(run, curve, horizon) for run, curve in zip(runs, curves, strict=True)]
    arms = comparisons(measured, reference_arm, configured)
    compared = Compared(arms, horizon, configured=configured or {}, left_out=left_out)
    measure(compared, all_quantities().values())
    return Summary(
        name=name,
        reference_arm=reference_arm,
        window=window,
        comparison=compared,
        targets=[target_table(target, compared) for target in targets] if compared.arms else [],
        finished=figures_of_finished(runs, reference_arm, triggers(configured or {})),
        headline=headline,
        detection=None if detection is None else detection_of(arms, detection),
    )


def triggers(configured: Mapping[str, ConfiguredArm]) -> list[str]:
    """The names of the arms that have a trigger."""
    return [name for name, arm in configured.items() if arm.has_trigger]


def measure(compared: Compared, quantities: Iterable[Quantity]) -> None:
    """Measure these quantities of each arm, in their order: later ones may read figures of earlier ones."""
    for quantity in quantities:
        assert quantity.measure is not None, f"{quantity.key} is measured with others"
        for arm in compared.arms:
            arm.figures[quantity.key] = stated(quantity.measure(arm, compared), arm)


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
        left_out=directory.left_out(),
    )
