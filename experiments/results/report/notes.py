"""What stands beside the tables of a summary: what was compared, how, and what a reader must bear in mind."""

from __future__ import annotations

from experiments.results.formats import time_scale
from experiments.results.intervals import FEWEST_SEEDS
from experiments.results.recorded import REFERENCE
from experiments.results.summary import Summary

MEAN_ACCURACY = (
    "Mean accuracy is over virtual time, each evaluation holding until the next; it is also the share of "
    "that time at or above a target, averaged over all targets from 0 to 100 %."
)
AFTER_DRIFT = " After drift is from each run's own first mass event on."
HOW_TO_SET_A_TARGET = (
    "No target accuracy is set. report.targets = [0.5] in the configuration, or --set 'report.targets=[0.5]' "
    "with the same run command, adds a table of times to that accuracy; nothing is run again."
)
MOVES = (
    "A target that is the reference arm's own accuracy moves with the horizon: compare no two experiments "
    "by it."
)
BELOW_AFTER_DRIFT = "Below after drift is a share of the time since each run's own first mass event. "
BOUNDS = (
    "A seed that does not hold a target has a time after the horizon, one that holds it from its first "
    "evaluation a time before that. Where that leaves the median unknown, >= is its lower bound, <= its "
    "upper one, a-b both, and undetermined that it has none. "
)
FEW_SEEDS = "With under three seeds there is no interval, and what is shown may be chance{}."
DOTS = "; dots are the seeds' own values"
COST_NOTE = (
    "Costs are per run up to the horizon; virtual and wall time are of whole runs. Wall time is longer where "
    "other runs share the machine, as with --jobs."
)


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
        f"{_time(horizon.start_s)} on, where every run has been evaluated. Data arrive by round; steps "
        f"reached by the horizon: {steps}.{_seeds(summary)}"
    )


def _seeds(summary: Summary) -> str:
    """How many seeds each arm has, where that differs."""
    seeds = {arm.arm: len(arm.runs) for arm in summary.compared}
    if len(set(seeds.values())) < 2:
        return ""
    counts = ", ".join(f"{arm} {count}" for arm, count in seeds.items())
    return f" Seeds: {counts}; gains, time saved and speed-ups are over those that both arms have."


def accuracy_note(summary: Summary) -> str:
    """What the table without a target shows."""
    gains = [gain for row in summary.accuracy for gain in (row.gain_pp, row.gain_after_drift_pp) if gain]
    intervals = [row.mean_accuracy.ci95 for row in summary.accuracy]
    statistic = "Mean and 95 % interval over seeds (Student's t)" if any(intervals) else "Mean over seeds"
    return (
        f"{statistic}; gains against {summary.reference_arm}, by seed. "
        f"{_comparisons(sum(gain.ci95 is not None for gain in gains))}{MEAN_ACCURACY}"
        f"{AFTER_DRIFT if any(row.gain_after_drift_pp for row in summary.accuracy) else ''}"
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
        f"Median over seeds{level}; of saved and speed-up, over the seeds' own differences and ratios. Time "
        f"below counts every evaluation, and all that precedes the first. "
        f"{BELOW_AFTER_DRIFT if any(row.below_after_drift for row in rows) else ''}"
        f"Held from is the first evaluation from which {smoothed} stays at or above the target up to the "
        f"horizon; held, in how many seeds it does. "
        f"{BOUNDS}{_comparisons(sum(item is not None for item in intervals))}{moves}"
    ).strip()


def few_seeds_note(summary: Summary) -> str | None:
    """What is said where some arm has too few seeds for an interval."""
    counts = [len(arm.runs) for arm in summary.compared]
    if min(counts) >= FEWEST_SEEDS:
        return None
    return FEW_SEEDS.format(DOTS if 2 in counts else "")


def _comparisons(count: int) -> str:
    return f"{count} comparisons, each interval at its own level. " if count > 1 else ""


def _time(time_s: float) -> str:
    return time_scale(time_s)(time_s)
