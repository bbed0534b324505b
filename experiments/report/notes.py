"""What stands beside the tables of a summary: what was compared, how, and what a reader must bear in mind."""

from __future__ import annotations

from experiments.formats import time_scale
from experiments.intervals import FEWEST_SEEDS
from experiments.recorded import REFERENCE
from experiments.summary import Summary

MEAN_ACCURACY = (
    "Mean accuracy is over virtual time: the share of the time at or above a target, averaged over all "
    "targets."
)
HOW_TO_SET_A_TARGET = (
    "No target accuracy is set. report.targets = [0.5] in the configuration, or --set 'report.targets=[0.5]' "
    "with the same run command, adds a table of times to that accuracy; nothing is run again."
)
MOVES = (
    "A target that is the reference arm's own accuracy moves with the horizon: compare no two experiments "
    "by it."
)
BOUNDS = (
    "A seed that does not hold a target has a time after the horizon, one that holds it from its first "
    "evaluation a time before that. Where that leaves the median unknown, >= is its lower bound, <= its "
    "upper one, a-b both, and undetermined that it has none. "
)
DOTS = "With under three seeds there is no interval: dots are the seeds' own values, and may be chance."


def as_warning(text: str) -> str:
    return f"Warning: {text}."


def horizon_note(summary: Summary) -> str:
    """Over which virtual time arms are compared, who set it, and how much data each has seen by then."""
    horizon = summary.horizon
    set_by = horizon.ended_first() or "report.horizon_s"
    steps = ", ".join(f"{arm} {reached:g}" for arm, reached in horizon.steps.items())
    if len(set(horizon.steps.values())) == 1 and len(horizon.steps) > 1:
        steps = f"{next(iter(horizon.steps.values())):g} in every arm"
    return (
        f"Compared up to {_time(horizon.horizon_s)} of virtual time ({set_by}), mean accuracy from "
        f"{_time(horizon.start_s)} on, where every run has been evaluated. Data steps reached: {steps}."
    )


def accuracy_note(summary: Summary) -> str:
    """What the table without a target shows."""
    gains = [gain for row in summary.accuracy for gain in (row.gain_pp, row.gain_after_drift_pp) if gain]
    intervals = [row.mean_accuracy.ci95 for row in summary.accuracy]
    what = "Mean and 95 % interval over seeds (Student's t)" if any(intervals) else "Mean over seeds"
    return (
        f"{what}; gains against {summary.reference_arm}, by seed. "
        f"{_comparisons(sum(gain.ci95 is not None for gain in gains))}{MEAN_ACCURACY}"
    )


def target_note(summary: Summary) -> str:
    """What the tables of targets show."""
    rows = [row for table in summary.targets for row in table.rows]
    levels = {f"{100 * row.time_below_s.level:.1f} %" for row in rows if row.time_below_s.level is not None}
    level = f", and an interval of order statistics at {' or '.join(sorted(levels))}" if levels else ""
    smoothed = "accuracy" if summary.window == 1 else f"the mean of the last {summary.window}"
    moves = MOVES if any(table.target == REFERENCE for table in summary.targets) else ""
    compared = [figure for row in rows for figure in (row.saved_s, row.speedup) if figure is not None]
    intervals = [figure.interval for figure in compared]
    return (
        f"Median over seeds{level}. Time below counts every evaluation. Held from is the first evaluation "
        f"from which {smoothed} stays at or above the target up to the horizon, in so many seeds as the last "
        f"column says. {BOUNDS}{_comparisons(sum(item is not None for item in intervals))}{moves}"
    ).strip()


def few_seeds_note(summary: Summary) -> str | None:
    """What is said where some arm has too few seeds for an interval."""
    return DOTS if any(len(arm.runs) < FEWEST_SEEDS for arm in summary.compared) else None


def _comparisons(count: int) -> str:
    return f"{count} comparisons, each interval at its own level. " if count > 1 else ""


def _time(time_s: float) -> str:
    return time_scale(time_s)(time_s)
