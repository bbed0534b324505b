"""The stretch of virtual time over which all runs of an experiment are compared.

It ends at the horizon: `report.horizon_s`, or where the first run ends if that is earlier. It starts at the
first instant by which every run has been evaluated. So no figure depends on how long a run went on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.storage.runlog import RoundRecord
from experiments.results.formats import time_scale
from experiments.results.run_directory import FinishedRun
from experiments.results.time_to_accuracy import AccuracyCurve

SHORTEST_SHARE = 0.9
"""Of the longest run: a horizon before that leaves out much that was run."""

MOST_STEP_SPREAD = 0.1
"""Of the most data steps an arm reaches: beyond that, arms were compared on different data."""

FEWEST_INTERVALS = 50
"""Evaluations further apart than the horizon over this make times coarse."""


@dataclass(frozen=True)
class Horizon:
    """From `start_s` to `horizon_s`; both are instants of virtual time, and of every run alike."""

    start_s: float  # the latest first evaluation of any run
    horizon_s: float
    asked_s: float | None  # report.horizon_s
    set_by: tuple[str, int] | None  # (arm, seed) of the run that ended first, where that is the horizon
    longest_s: float  # the latest last evaluation of any run
    event_rounds: tuple[int, ...]  # of the trace's mass events, in order
    steps: dict[str, float]  # data steps that an arm has reached by the horizon: the median over its seeds
    widest_gap_s: float  # between two evaluations of a run by the horizon

    def event_s(self, run: FinishedRun) -> float | None:
        """When the round of the first mass event opened in this run; None where it did not before the
        horizon, or there is none."""
        return next(iter(self.events_s(run)), None)

    def events_s(self, run: FinishedRun) -> list[float]:
        """When the rounds of mass events opened in this run, before the horizon."""
        return [
            record.opened_s
            for record in run.records
            if record.round in self.event_rounds and record.opened_s < self.horizon_s
        ]

    def records(self, run: FinishedRun) -> list[RoundRecord]:
        """The rounds of this run that closed by the horizon."""
        return [record for record in run.records if record.closed_s <= self.horizon_s]

    @property
    def is_of_different_data(self) -> bool:
        """Whether the data steps that arms have reached differ by more than a tenth."""
        most = max(self.steps.values())
        return most - min(self.steps.values()) > MOST_STEP_SPREAD * most

    def warnings(self) -> list[str]:
        """What a reader of the figures must know about the horizon."""
        warnings = []
        if self.asked_s is not None and self.horizon_s < self.asked_s:
            missing = _time(self.asked_s - self.horizon_s)
            warnings.append(
                f"the horizon is {missing} less than the {_time(self.asked_s)} of report.horizon_s: "
                f"{self.ended_first()}"
            )
        if self.horizon_s < SHORTEST_SHARE * self.longest_s:
            warnings.append(
                f"the horizon is {100 * self.horizon_s / self.longest_s:.0f} % of the longest run "
                f"({_time(self.longest_s)}): what came later is not in the tables"
            )
        if self.is_of_different_data:
            fewest, most = min(self.steps.values()), max(self.steps.values())
            warnings.append(
                f"arms reach between {fewest:g} and {most:g} data steps by the horizon: "
                "they were compared on different data"
            )
        if self.widest_gap_s > self.horizon_s / FEWEST_INTERVALS:
            warnings.append(
                f"evaluations lie up to {_time(self.widest_gap_s)} apart: times are no finer than that"
            )
        if self.start_s >= self.horizon_s:
            warnings.append("some run has no evaluation before the horizon: there is no mean accuracy")
        return warnings

    def ended_first(self) -> str:
        """Which run ended first, in words."""
        return "" if self.set_by is None else f"{self.set_by[0]}, seed {self.set_by[1]}, ended there"

    def as_json(self) -> dict[str, object]:
        """As `summary.json` has it."""
        set_by = None if self.set_by is None else {"arm": self.set_by[0], "seed": self.set_by[1]}
        return {**vars(self), "set_by": set_by, "warnings": self.warnings()}


def common_horizon(
    runs: Sequence[FinishedRun],
    curves: Sequence[AccuracyCurve],
    *,
    asked_s: float | None = None,
    event_rounds: Sequence[int] = (),
) -> Horizon:
    """The horizon of these runs, at least one, and their curves in the same order."""
    ends = [float(curve.times_s[-1]) for curve in curves]
    first = int(np.argmin(ends))
    is_as_configured = asked_s is not None and asked_s <= ends[first]
    horizon_s = asked_s if asked_s is not None and is_as_configured else ends[first]
    steps: dict[str, list[int]] = {}
    for run in runs:
        reached = [record.step + 1 for record in run.records if record.closed_s <= horizon_s]
        steps.setdefault(run.arm, []).append(max(reached, default=0))
    return Horizon(
        start_s=max(float(curve.times_s[0]) for curve in curves),
        horizon_s=horizon_s,
        asked_s=asked_s,
        set_by=None if is_as_configured else (runs[first].arm, runs[first].seed),
        longest_s=max(ends),
        event_rounds=tuple(event_rounds),
        steps={arm: float(np.median(reached)) for arm, reached in steps.items()},
        widest_gap_s=max(_widest_gap_s(curve, horizon_s) for curve in curves),
    )


def event_rounds(experiment: Mapping[str, Any]) -> list[int]:
    """The rounds of a configuration's mass events, in order; `experiment` may be anybody's."""
    trace = experiment.get("trace")
    drift = trace.get("drift") if isinstance(trace, Mapping) else None
    events = drift.get("events") if isinstance(drift, Mapping) else None
    rounds = (
        [event.get("round") for event in events if isinstance(event, Mapping)]
        if isinstance(events, list)
        else []
    )
    return sorted(number for number in rounds if type(number) is int)


def _widest_gap_s(curve: AccuracyCurve, horizon_s: float) -> float:
    """Of the evaluations from before the horizon to the first that is not."""
    count = int(np.searchsorted(curve.times_s, horizon_s, side="left")) + 1
    return float(np.max(np.diff(curve.times_s[:count]), initial=0.0))


def _time(time_s: float) -> str:
    return time_scale(time_s)(time_s)
