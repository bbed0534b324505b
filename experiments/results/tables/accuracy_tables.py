"""The tables of a summary: accuracy over virtual time, and the times to each target accuracy.

An arm is compared with the reference arm seed by seed, on the seeds that both have, up to one horizon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.results.reading.recorded import REFERENCE, Target
from experiments.results.reading.run_directory import FinishedRun
from experiments.results.statistics.adjusted_rand import agreement_with_concepts
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.intervals import (
    Estimate,
    Gain,
    gain_estimate,
    mean_estimate,
    share_estimate,
)
from experiments.results.statistics.medians import UNKNOWN, MedianEstimate, exactly, median_estimate, ratio
from experiments.results.statistics.time_to_accuracy import AccuracyCurve


@dataclass(frozen=True)
class AccuracyRow:
    """The accuracy of an arm, and its gain over the reference arm; needs no target.

    `mean_accuracy` is over virtual time from `Horizon.start_s` to the horizon; `gain_pp` is the difference of
    these means, in percentage points. `gain_after_drift_pp` is the same from the first mass event of each
    run, if that is later than `Horizon.start_s`; it is None unless every run has a mass event before the
    horizon. `final_accuracy` is the smoothed accuracy at the horizon. Both gains are None for the reference
    arm. `adjusted_rand_index` is the mean of `Agreement` up to the horizon, where concepts are known.
    """

    arm: str
    mean_accuracy: Estimate
    gain_pp: Gain | None
    gain_after_drift_pp: Gain | None
    final_accuracy: Estimate
    adjusted_rand_index: Estimate


@dataclass(frozen=True)
class TargetRow:
    """How long an arm takes to reach a target: medians over seeds of times as in `AccuracyCurve`.

    `saved_s` is the reference arm's `time_below_s` minus the arm's, `speedup` the reference arm's
    `held_from_s` over the arm's; both are None for the reference arm. `below_after_drift` is None unless
    every run has a mass event before the horizon.
    """

    arm: str
    time_below_s: MedianEstimate
    saved_s: MedianEstimate | None
    below_after_drift: MedianEstimate | None  # share of the time from the first mass event to the horizon
    first_reached_s: MedianEstimate
    held_from_s: MedianEstimate
    speedup: MedianEstimate | None
    held: int  # seeds that hold the target at the horizon
    seeds: int


@dataclass(frozen=True)
class TargetTable:
    """The rows of all arms for one target."""

    target: Target
    accuracy: Estimate  # the accuracy that the target stands for
    rows: list[TargetRow]


@dataclass(frozen=True)
class MeasuredRun:
    """A finished run with its accuracy curve; `event_s` is when its first mass event opened.

    That is `Horizon.event_s`: None if there is no mass event before the horizon.
    """

    run: FinishedRun
    curve: AccuracyCurve
    event_s: float | None

    def mean_accuracy_after_drift(self, horizon: Horizon) -> float | None:
        """The mean accuracy from the run's first mass event, or from `horizon.start_s` if that is later.

        None if there is no mass event before the horizon, or no time from `horizon.start_s` to the horizon.
        """
        if self.event_s is None:
            return None
        return self.curve.mean_accuracy(max(horizon.start_s, self.event_s), horizon.horizon_s)

    def below_after_drift(self, goal: float, horizon: Horizon) -> float:
        """The share of the time from the run's first mass event to the horizon with an accuracy below `goal`.

        The run must have a mass event before the horizon.
        """
        assert self.event_s is not None
        below_s = self.curve.time_below_s(goal, horizon.horizon_s, self.event_s)
        return below_s / (horizon.horizon_s - self.event_s)


@dataclass(frozen=True)
class Comparison:
    """The runs of an arm, and those of the reference arm with the same seeds, in the same order."""

    arm: str
    measured: list[MeasuredRun]
    reference: list[MeasuredRun]
    is_reference: bool

    @property
    def runs(self) -> list[FinishedRun]:
        return [item.run for item in self.measured]

    @property
    def curves(self) -> list[AccuracyCurve]:
        return [item.curve for item in self.measured]

    @property
    def seed_ids(self) -> list[int]:
        return [run.seed for run in self.runs]


def comparisons(measured: Sequence[MeasuredRun], reference_arm: str) -> list[Comparison]:
    """A comparison for each arm that shares a seed with the reference arm.

    They are in the order of the arms' first runs in `measured`.
    """
    by_arm: dict[str, dict[int, MeasuredRun]] = {}
    for item in measured:
        by_arm.setdefault(item.run.arm, {})[item.run.seed] = item
    reference = by_arm.get(reference_arm, {})
    shared = {arm: [seed for seed in runs if seed in reference] for arm, runs in by_arm.items()}
    return [
        Comparison(
            arm,
            [by_arm[arm][seed] for seed in seeds],
            [reference[seed] for seed in seeds],
            is_reference=arm == reference_arm,
        )
        for arm, seeds in shared.items()
        if seeds
    ]


def accuracy_rows(compared: Sequence[Comparison], horizon: Horizon) -> list[AccuracyRow]:
    """A row for each comparison, in the same order."""
    start_s, end_s = horizon.start_s, horizon.horizon_s
    num_gains = max(1, len(compared) - 1)
    has_event = _has_event(compared)
    rows = []
    for arm in compared:
        means = [item.curve.mean_accuracy(start_s, end_s) for item in arm.measured]
        gain, gain_after_drift = None, None
        if not arm.is_reference:
            gain = gain_estimate(
                means,
                [item.curve.mean_accuracy(start_s, end_s) for item in arm.reference],
                scale=100.0,
                comparisons=num_gains,
            )
            if has_event and start_s < end_s:
                gain_after_drift = gain_estimate(
                    [item.mean_accuracy_after_drift(horizon) for item in arm.measured],
                    [item.mean_accuracy_after_drift(horizon) for item in arm.reference],
                    scale=100.0,
                    comparisons=num_gains,
                )
        final = share_estimate([item.curve.final(end_s) for item in arm.measured])
        agreement = mean_estimate([agreement_with_concepts(run).mean(end_s) for run in arm.runs])
        rows.append(AccuracyRow(arm.arm, share_estimate(means), gain, gain_after_drift, final, agreement))
    return rows


def target_table(target: Target, compared: Sequence[Comparison], horizon: Horizon) -> TargetTable:
    """The table of one target; `compared` must include the reference arm."""
    reference = next(arm for arm in compared if arm.is_reference)
    goals: dict[int, float | None] = {
        item.run.seed: item.curve.final(horizon.horizon_s) if target == REFERENCE else float(target)
        for item in reference.measured
    }
    has_event = _has_event(compared)
    # If a reference run was not evaluated by the horizon, its accuracy is unknown: no run of the seed reaches
    # it.
    known = {seed: math.inf if goal is None else goal for seed, goal in goals.items()}
    rows = [_target_row(arm, [known[seed] for seed in arm.seed_ids], horizon, has_event) for arm in compared]
    return TargetTable(target, mean_estimate(list(goals.values())), rows)


def _has_event(compared: Sequence[Comparison]) -> bool:
    """Whether every run has a mass event before the horizon."""
    return all(item.event_s is not None for arm in compared for item in arm.measured)


def _target_row(arm: Comparison, goals: Sequence[float], horizon: Horizon, has_event: bool) -> TargetRow:
    """The row of one arm; `goals` are the accuracies of the target, one for each seed of the arm."""
    end_s = horizon.horizon_s
    curves = [(item.curve, goal) for item, goal in zip(arm.measured, goals, strict=True)]
    below_s = [curve.time_below_s(goal, end_s) for curve, goal in curves]
    held_from_s = [curve.held_from(goal, end_s) for curve, goal in curves]
    saved_s, speedup, below_after_drift = None, None, None
    if not arm.is_reference:
        reference = [(item.curve, goal) for item, goal in zip(arm.reference, goals, strict=True)]
        saved_s = _saved_s(below_s, [curve.time_below_s(goal, end_s) for curve, goal in reference], end_s)
        speedup = median_estimate(
            [
                ratio(curve.held_from(goal, end_s), held_s)
                for (curve, goal), held_s in zip(reference, held_from_s, strict=True)
            ],
            geometric=True,
        )
    if has_event:
        shares = [
            item.below_after_drift(goal, horizon) for item, goal in zip(arm.measured, goals, strict=True)
        ]
        below_after_drift = median_estimate([exactly(share) for share in shares])
    return TargetRow(
        arm=arm.arm,
        time_below_s=median_estimate([exactly(time_s) for time_s in below_s]),
        saved_s=saved_s,
        below_after_drift=below_after_drift,
        first_reached_s=median_estimate([curve.first_reached(goal, end_s) for curve, goal in curves]),
        held_from_s=median_estimate(held_from_s),
        speedup=speedup,
        held=sum(bounds.high < math.inf for bounds in held_from_s),
        seeds=len(curves),
    )


def _saved_s(below_s: Sequence[float], reference_s: Sequence[float], horizon_s: float) -> MedianEstimate:
    """The median of the time saved: the reference arm's time below the target minus the arm's, seed by seed.

    Undetermined if neither arm reaches the target in any seed: no measurement tells the two apart.
    """
    if all(time_s == horizon_s for time_s in (*below_s, *reference_s)):
        return median_estimate([UNKNOWN] * len(below_s))
    return median_estimate(
        [
            exactly(reference_time_s - arm_time_s)
            for reference_time_s, arm_time_s in zip(reference_s, below_s, strict=True)
        ]
    )
