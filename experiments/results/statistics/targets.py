"""How long arms take to reach a target accuracy, of which all figures are medians over seeds.

Times are those of `AccuracyCurve`. Where every run has a mass event (`first_mass_events_s`) and as many
evaluations after it as a mean smooths over, `held_from_s` is counted from the first of them, with accuracies
that are smoothed anew, since a median over seeds that jumps from one side of an event to the other says
nothing; `held_before_s` is from when the target was held up to that event, and else None. With fewer
evaluations a run might not hold its own final accuracy. All other times are from the start. `saved_s` is the
reference arm's `time_below_s` minus the arm's, `speedup` the reference arm's `held_from_s` over the arm's;
both are None for the reference arm. `below_after_drift` is the share of the time from the first mass event to
the horizon that is below the target, and None unless every run has a configured one before the horizon.
`held` is the number of `seeds` that hold the target at the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.results.reading.recorded import REFERENCE, Target
from experiments.results.statistics.comparisons import Compared, Comparison, Run, once
from experiments.results.statistics.drift.mass_events import first_mass_events_s
from experiments.results.statistics.intervals import Estimate, mean_estimate
from experiments.results.statistics.medians import (
    UNKNOWN,
    Bounds,
    MedianEstimate,
    exactly,
    median_estimate,
    ratio,
)
from experiments.results.statistics.time_to_accuracy import AccuracyCurve

Times = Mapping[str, Bounds | None]
"""The times of a run to a target by name, in virtual seconds or as a share."""


@dataclass(frozen=True)
class TargetTable:
    """The arms with their figures for one target."""

    target: Target
    accuracy: Estimate  # the accuracy that the target stands for
    rows: list[Comparison]
    counts_from_event: bool = False  # whether `held_from_s` and `speedup` do

    def as_json(self) -> dict[str, object]:
        """The entry in `summary.json`."""
        return {
            "target": self.target,
            "accuracy": self.accuracy.as_json(),
            "counted_from": "event" if self.counts_from_event else "start",
            "arms": {row.arm: row.as_json() for row in self.rows},
        }


def target_table(target: Target, compared: Compared, *, may_count_from_event: bool = True) -> TargetTable:
    """The table of one target; unless `may_count_from_event`, all its times are from the start."""
    end_s = compared.horizon.horizon_s
    goals: dict[int, float | None] = {
        run.seed: run.curve.final(end_s) if target == REFERENCE else float(target)
        for run in compared.reference.measured
    }
    # If a reference run was not evaluated by the horizon, its accuracy is unknown: no run of the seed reaches
    # it.
    known = {seed: math.inf if goal is None else goal for seed, goal in goals.items()}
    after = after_events(compared) if may_count_from_event else None
    times = {run: _times(run, known[run.seed], compared.has_event, after) for run in compared.runs}
    return TargetTable(
        target,
        compared.reference.stated(mean_estimate(list(goals.values()))),
        [arm.with_figures(_figures(arm, times, end_s)) for arm in compared.arms],
        after is not None,
    )


@once
def after_events(compared: Compared) -> Mapping[Run, tuple[float, AccuracyCurve]] | None:
    """By run, when its first mass event took effect, and its accuracy curve from then on.

    None unless every run has one, and after it, up to the horizon, as many evaluations as the window of its
    curve.
    """
    events_s = first_mass_events_s(compared)
    if events_s is None:
        return None
    found = {run: (event_s, run.curve.after(event_s)) for run, event_s in events_s.items()}
    end_s = compared.horizon.horizon_s
    is_long_enough = all(
        curve.num_evaluations(end_s - event_s) >= curve.window for event_s, curve in found.values()
    )
    return found if is_long_enough else None


def _times(
    run: Run, goal: float, has_event: bool, after: Mapping[Run, tuple[float, AccuracyCurve]] | None
) -> Times:
    """The times to the accuracy `goal`; if `has_event`, the run has one before the horizon."""
    curve, end_s, below_after_drift = run.curve, run.horizon.horizon_s, None
    if has_event:
        assert run.event_s is not None
        below_s = curve.time_below_s(goal, end_s, run.event_s)
        below_after_drift = exactly(below_s / (end_s - run.event_s))
    event_s, since = (0.0, curve) if after is None else after[run]
    return {
        "time_below_s": exactly(curve.time_below_s(goal, end_s)),
        "below_after_drift": below_after_drift,
        "first_reached_s": curve.first_reached(goal, end_s),
        "held_before_s": None if after is None else curve.held_from(goal, event_s),
        "held_from_s": since.held_from(goal, end_s - event_s),
    }


def _figures(arm: Comparison, times: Mapping[Run, Times], end_s: float) -> dict[str, Any]:
    """The figures of one arm, of the `times` of all runs up to the horizon `end_s`."""

    def of(name: str, runs: Sequence[Run] = arm.measured) -> list[Bounds]:
        return [bounds for run in runs if (bounds := times[run][name]) is not None]

    below, held = of("time_below_s"), of("held_from_s")
    saved, speedup = None, None
    if not arm.is_reference:
        pairs = zip(of("held_from_s", arm.reference), held, strict=True)
        speedup = median_estimate([ratio(other, one) for other, one in pairs], geometric=True)
        saved = _saved_s(below, of("time_below_s", arm.reference), end_s)
    return {
        "time_below_s": median_estimate(below),
        "saved_s": saved,
        "below_after_drift": _median_if_known(of("below_after_drift")),
        "first_reached_s": median_estimate(of("first_reached_s")),
        "held_before_s": _median_if_known(of("held_before_s")),
        "held_from_s": median_estimate(held),
        "speedup": speedup,
        "held": sum(bounds.high < math.inf for bounds in held),
        "seeds": len(held),
    }


def _median_if_known(bounds: Sequence[Bounds]) -> MedianEstimate | None:
    """The median of the bounds, which are there of all runs or of none; None without."""
    return median_estimate(bounds) if bounds else None


def _saved_s(below: Sequence[Bounds], reference: Sequence[Bounds], horizon_s: float) -> MedianEstimate:
    """The median of the time saved: the reference arm's time below the target minus the arm's, seed by seed.

    Undetermined if neither arm reaches the target in any seed: no measurement tells the two apart.
    """
    if all(one.low == horizon_s for one in (*below, *reference)):
        return median_estimate([UNKNOWN] * len(below))
    return median_estimate(
        [exactly(other.low - one.low) for other, one in zip(reference, below, strict=True)]
    )
