"""The stretch of virtual time over which all runs of an experiment are compared.

It ends at the horizon: `report.horizon_s`, or the last evaluation of the run that ends first, if that is
earlier. It starts at the first instant by which every run has been evaluated. So the length of a run does not
affect its figures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emulator.errors import abbreviated
from emulator.storage.runlog import RoundRecord
from experiments.results.reading.json_files import Until
from experiments.results.reading.recorded import LONGEST_S
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.scales import as_time
from experiments.results.statistics.time_to_accuracy import AccuracyCurve

SHORTEST_SHARE = 0.9
"""Share of the longest run. A horizon before it causes a warning: it leaves out much of what was run."""

MOST_STEP_SPREAD = 0.1
"""Largest difference in data steps between arms, as a share of the most steps, that causes no warning."""

FEWEST_INTERVALS = 50
"""Evaluations further apart than the horizon divided by this cause a warning: they make times coarse."""

MOST_ROUNDS = 2**53
"""Largest number of a nominal round; that of a damaged log may be beyond whole numbers."""

GAP_TOLERANCE = 1e-3
"""By what share of that they may exceed it: a report delays a round of fixed duration by milliseconds."""


@dataclass(frozen=True)
class Horizon:
    """The stretch from `start_s` to `horizon_s`, instants of virtual time that are the same for all runs."""

    start_s: float  # the latest first evaluation of any run
    horizon_s: float
    asked_s: float | None  # report.horizon_s, if it is set
    set_by: tuple[str, int] | None  # (arm, seed) of the run that ended first, if that is the horizon
    longest_s: float  # the latest last evaluation of any run
    event_rounds: tuple[int, ...]  # rounds of the mass events in the trace, ascending
    steps: dict[str, float]  # by arm, data steps reached by the horizon: median over seeds
    widest_gap_s: float  # longest time between consecutive evaluations of a run up to the horizon
    seconds_per_round: float | None = None  # round.seconds_per_round, if it is set
    until: Mapping[tuple[str, int], Until] = field(default_factory=dict)  # of runs that --until stopped

    def event_s(self, run: ReportedRun) -> float | None:
        """When the round of the first mass event opened in this run, in virtual seconds.

        None if no mass event opened before the horizon.
        """
        return next((time_s for time_s in self.events_s(run) if time_s < self.horizon_s), None)

    def events_s(self, run: ReportedRun) -> list[float]:
        """When the rounds of mass events opened in this run, ascending, also after the horizon."""
        return events_s(run.records, self.event_rounds, self.seconds_per_round)

    def records(self, run: ReportedRun) -> list[RoundRecord]:
        """The rounds of this run that closed by the horizon."""
        return [record for record in run.records if record.closed_s <= self.horizon_s]

    @property
    def is_of_different_data(self) -> bool:
        """Whether arms have reached different data by the horizon.

        That is, their data steps differ by more than `MOST_STEP_SPREAD` of the most reached.
        """
        most = max(self.steps.values())
        return most - min(self.steps.values()) > MOST_STEP_SPREAD * most

    def warnings(self) -> list[str]:
        """Warnings for readers of the figures: limits of this comparison, as clauses without a full stop."""
        warnings = []
        if self.until:
            rounds = " and ".join(dict.fromkeys(map(str, self.until.values())))
            arms = abbreviated(list(dict.fromkeys(arm for arm, _ in self.until)))
            warnings.append(f"until {rounds}, where --until stopped runs of {arms}")
        if self.asked_s is not None and self.horizon_s < self.asked_s:
            asked, missing_s = as_time(self.asked_s), self.asked_s - self.horizon_s
            if missing_s > self.horizon_s:
                short = f"{as_time(self.horizon_s)} instead of the {asked}"
            else:
                short = f"{as_time(missing_s)} less than the {asked}"
            warnings.append(f"the horizon is {short} of report.horizon_s: {self.ended_first()}")
        if self.horizon_s < SHORTEST_SHARE * self.longest_s:
            warnings.append(
                f"the horizon is {100 * self.horizon_s / self.longest_s:.0f} % of the longest run "
                f"({as_time(self.longest_s)}): what came later is not in the tables"
            )
        if self.is_of_different_data:
            fewest, most = min(self.steps.values()), max(self.steps.values())
            warnings.append(
                f"arms reach between {fewest:g} and {most:g} data steps by the horizon: "
                "they were compared on different data"
            )
        if self.widest_gap_s * FEWEST_INTERVALS > self.horizon_s * (1 + GAP_TOLERANCE):
            warnings.append(
                f"evaluations lie up to {as_time(self.widest_gap_s)} apart: times are no finer than that"
            )
        if self.start_s >= self.horizon_s:
            warnings.append("some run has no evaluation before the horizon: there is no mean accuracy")
        return warnings

    def ended_first(self) -> str:
        """A clause naming the run whose end is the horizon; empty if the horizon is `report.horizon_s`."""
        ended = "was stopped" if self.set_by in self.until else "ended"
        return "" if self.set_by is None else f"{self.set_by[0]}, seed {self.set_by[1]}, {ended} there"

    def as_json(self) -> dict[str, object]:
        """The entry `horizon` of `summary.json`."""
        set_by = None if self.set_by is None else {"arm": self.set_by[0], "seed": self.set_by[1]}
        facts = {name: value for name, value in vars(self).items() if name != "until"}  # warnings have it
        if self.seconds_per_round is None:
            del facts["seconds_per_round"]
        return {
            **facts,
            "set_by": set_by,
            "event_rounds": list(self.event_rounds),
            "warnings": self.warnings(),
        }


def common_horizon(
    runs: Sequence[ReportedRun],
    curves: Sequence[AccuracyCurve],
    *,
    asked_s: float | None = None,
    event_rounds: Sequence[int] = (),
    is_static: bool = False,
    seconds_per_round: float | None = None,
) -> Horizon:
    """The stretch of time over which `runs` are compared.

    Args:
        runs: At least one run.
        curves: Their accuracy curves, in the same order.
        asked_s: `report.horizon_s`, if it is set.
        event_rounds: The rounds of mass events, ascending.
        is_static: Whether no data arrive after the first data step, which all later ones then repeat.
        seconds_per_round: Virtual seconds of a nominal round; None if rounds are server rounds.
    """
    start_s, horizon_s = stretch(curves, asked_s)
    ends = [float(curve.times_s[-1]) for curve in curves]
    first = int(np.argmin(ends))
    steps: dict[str, list[int]] = {}
    for run in runs:
        reached = [record.step + 1 for record in run.records if record.closed_s <= horizon_s]
        steps.setdefault(run.arm, []).append(
            min(max(reached, default=0), 1) if is_static else max(reached, default=0)
        )
    return Horizon(
        start_s=start_s,
        horizon_s=horizon_s,
        asked_s=asked_s,
        set_by=None if horizon_s == asked_s else (runs[first].arm, runs[first].seed),
        longest_s=max(ends),
        event_rounds=tuple(event_rounds),
        steps={arm: float(np.median(reached)) for arm, reached in steps.items()},
        widest_gap_s=max(_widest_gap_s(curve, horizon_s) for curve in curves),
        seconds_per_round=seconds_per_round,
        until={(run.arm, run.seed): run.until for run in runs if run.until is not None},
    )


def stretch(curves: Sequence[AccuracyCurve], asked_s: float | None) -> tuple[float, float]:
    """(start, horizon) of the virtual time over which runs with these curves, one or more, are compared.

    `asked_s` is `report.horizon_s`, if it is set.
    """
    ends = min(float(curve.times_s[-1]) for curve in curves)
    start_s = max(float(curve.times_s[0]) for curve in curves)
    return start_s, ends if asked_s is None else min(asked_s, ends)


def number_of(record: RoundRecord, seconds_per_round: float | None) -> int:
    """The number of a round as a configuration counts them, from 0: that of the nominal round it opened in.

    Nominal rounds are of `round.seconds_per_round` virtual seconds; without it, they are the server rounds.
    """
    if seconds_per_round is None:
        return record.round
    return int(min(record.opened_s // seconds_per_round, MOST_ROUNDS))


def events_s(
    records: Sequence[RoundRecord], event_rounds: Collection[int], seconds_per_round: float | None = None
) -> list[float]:
    """When the mass events in these rounds of the configuration took effect, in virtual seconds, ascending.

    That is the opening of the round or, in nominal rounds of `seconds_per_round`, the first opening in it or
    after it. Events that the records do not reach are left out.
    """
    if seconds_per_round is None:
        return [record.opened_s for record in records if record.round in event_rounds]
    opened_s = [record.opened_s for record in records]
    numbers = np.array([number_of(record, seconds_per_round) for record in records], dtype=np.int64)
    first = np.searchsorted(numbers, sorted(event_rounds))
    return [opened_s[index] for index in first.tolist() if index < len(opened_s)]


def seconds_per_round(experiment: Mapping[str, Any]) -> float | None:
    """The `round.seconds_per_round` of a configuration; None without it, and if it is no positive number.

    >>> seconds_per_round({"round": {"seconds_per_round": 300}}), seconds_per_round({"round": {}})
    (300.0, None)
    """
    settings = experiment.get("round")
    found = settings.get("seconds_per_round") if isinstance(settings, Mapping) else None
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 < found < LONGEST_S:
        return None
    return float(found)


def event_rounds(experiment: Mapping[str, Any]) -> list[int]:
    """The rounds of the mass events of a configuration, ascending; malformed entries are skipped."""
    trace = experiment.get("trace")
    drift = trace.get("drift") if isinstance(trace, Mapping) else None
    events = drift.get("events") if isinstance(drift, Mapping) else None
    rounds = (
        [event.get("round") for event in events if isinstance(event, Mapping)]
        if isinstance(events, list)
        else []
    )
    return sorted(number for number in rounds if type(number) is int)


def is_static(experiment: Mapping[str, Any]) -> bool:
    """Whether the clients of a configuration keep what they hold at the start, unchanged.

    >>> is_static({"trace": {"partition": {"kind": "iid"}}}), is_static({"trace": {"static": False}})
    (True, False)
    >>> is_static({"trace": {"partition": {"kind": "iid"}, "starts_with": [0.1, 0.3]}})
    False
    """
    trace = experiment.get("trace")
    if not isinstance(trace, Mapping) or trace.get("changes"):
        return False
    is_divided = trace.get("partition") is not None and trace.get("starts_with") is None
    return trace.get("static") is True or is_divided


def _widest_gap_s(curve: AccuracyCurve, horizon_s: float) -> float:
    """The longest time between consecutive evaluations, up to the first one at or after the horizon."""
    count = int(np.searchsorted(curve.times_s, horizon_s, side="left")) + 1
    return float(np.max(np.diff(curve.times_s[:count]), initial=0.0))
