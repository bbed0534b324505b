"""How long arms take to reach target accuracies: a table for each target, of medians over seeds.

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
from dataclasses import dataclass, replace

from experiments.results.reading.recorded import REFERENCE, Target
from experiments.results.statistics.comparisons import Compared, Comparison, MeasuredRun
from experiments.results.statistics.drift.mass_events import (
    events_by_the_horizon_s,
    events_of_log_s,
    first_mass_event_s,
    first_mass_events_s,
)
from experiments.results.statistics.intervals import Estimate, mean_estimate
from experiments.results.statistics.medians import (
    UNKNOWN,
    Bounds,
    MedianEstimate,
    exactly,
    levels_as_text,
    median_estimate,
    ratio,
)
from experiments.results.statistics.scales import (
    factor_scale,
    percent_scale,
    signed_time_scale,
    time_scale,
)
from experiments.results.statistics.time_to_accuracy import AccuracyCurve
from experiments.results.tables.notes import BOUNDS, MOVES, at_their_own_levels
from experiments.results.tables.report import Report
from experiments.results.tables.summary import Summary
from experiments.results.tables.table import (
    Column,
    InManyRuns,
    InTerminal,
    NotedTable,
    OnPage,
    Place,
    Row,
    Table,
    Tally,
    TextTable,
    any_measured,
    text_table,
)

HOW_TO_SET_A_TARGET = (
    "No target accuracy is set. report.targets = [0.5] in the configuration, or --set 'report.targets=[0.5]' "
    "with the same run command, adds a table of times to that accuracy without running anything again."
)
BELOW_AFTER_DRIFT = (
    "Below after drift is the share of the time from the first mass event of each run to the horizon that is "
    "below the target. "
)

HELD_FROM = Column("held_from_s", "held from", time_scale)
HELD_AFTER_EVENT = replace(HELD_FROM, heading="held after the event from")
HELD_BEFORE = Column("held_before_s", "held before it from", time_scale, only_if=any_measured)
SPEEDUP = Column("speedup", "speed-up", factor_scale)
HELD = Tally("held", "held", factor_scale)


@dataclass(frozen=True)
class TargetTable:
    """The rows of all arms for one target."""

    target: Target
    accuracy: Estimate  # the accuracy that the target stands for
    rows: list[Row]
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
    goals: dict[int, float | None] = {
        run.seed: run.curve.final(run.horizon.horizon_s) if target == REFERENCE else float(target)
        for run in compared.reference.measured
    }
    # If a reference run was not evaluated by the horizon, its accuracy is unknown: no run of the seed reaches
    # it.
    known = {seed: math.inf if goal is None else goal for seed, goal in goals.items()}
    after = compared.once(after_events) if may_count_from_event else None
    times = {
        (run.arm, run.seed): _Times.of(run, known[run.seed], compared.has_event, after)
        for arm in compared.arms
        for run in arm.measured
    }
    rows = [_row(arm, times, compared.horizon.horizon_s) for arm in compared.arms]
    accuracy = compared.reference.stated(mean_estimate(list(goals.values())))
    return TargetTable(target, accuracy, rows, after is not None)


@dataclass(frozen=True)
class AfterEvent:
    """When the first mass event of a run took effect, and its accuracy curve from then on."""

    event_s: float
    curve: AccuracyCurve


AfterEvents = Mapping[tuple[str, int], AfterEvent]
"""By arm and seed."""


def after_events(compared: Compared) -> AfterEvents | None:
    """The curves of all runs from their first mass events on.

    None unless every run has one, and after it, up to the horizon, as many evaluations as the window of its
    curve.
    """
    events_s = compared.once(first_mass_events_s)
    if events_s is None:
        return None
    runs = {(run.arm, run.seed): run for arm in compared.arms for run in arm.measured}
    found = {key: AfterEvent(event_s, runs[key].curve.after(event_s)) for key, event_s in events_s.items()}
    end_s = compared.horizon.horizon_s
    is_long_enough = all(
        after.curve.num_evaluations(end_s - after.event_s) >= after.curve.window for after in found.values()
    )
    return found if is_long_enough else None


@dataclass(frozen=True)
class _Times:
    """The times of one run to a target: its columns of the table, in virtual seconds or as a share."""

    below_s: float
    below_after_drift: Bounds | None
    first_reached: Bounds
    held_from: Bounds
    held_before: Bounds | None

    @classmethod
    def of(cls, run: MeasuredRun, goal: float, has_event: bool, after: AfterEvents | None) -> _Times:
        """The times to the accuracy `goal`; if `has_event`, the run has one before the horizon."""
        curve, end_s, below_after_drift = run.curve, run.horizon.horizon_s, None
        if has_event:
            assert run.event_s is not None
            below_s = curve.time_below_s(goal, end_s, run.event_s)
            below_after_drift = exactly(below_s / (end_s - run.event_s))
        since = AfterEvent(0.0, curve) if after is None else after[run.arm, run.seed]
        return cls(
            curve.time_below_s(goal, end_s),
            below_after_drift,
            curve.first_reached(goal, end_s),
            since.curve.held_from(goal, end_s - since.event_s),
            None if after is None else curve.held_from(goal, since.event_s),
        )


def _row(arm: Comparison, times: Mapping[tuple[str, int], _Times], end_s: float) -> Row:
    """The row of one arm, of the `times` of runs by arm and seed up to the horizon `end_s`."""
    found, reference = ([times[run.arm, run.seed] for run in runs] for runs in (arm.measured, arm.reference))
    speedups = [ratio(other.held_from, one.held_from) for other, one in zip(reference, found, strict=True)]
    return Row(
        arm.arm,
        {
            "time_below_s": median_estimate([exactly(one.below_s) for one in found]),
            "saved_s": None if arm.is_reference else _saved_s(found, reference, end_s),
            "below_after_drift": _median([one.below_after_drift for one in found]),
            "first_reached_s": median_estimate([one.first_reached for one in found]),
            "held_before_s": _median([one.held_before for one in found]),
            "held_from_s": median_estimate([one.held_from for one in found]),
            "speedup": None if arm.is_reference else median_estimate(speedups, geometric=True),
            "held": sum(one.held_from.high < math.inf for one in found),
            "seeds": len(found),
        },
    )


def _median(bounds: Sequence[Bounds | None]) -> MedianEstimate | None:
    """The median of the bounds; None if there are none of some run, as there are then of no run."""
    known = [bound for bound in bounds if bound is not None]
    return median_estimate(known) if len(known) == len(bounds) else None


def _saved_s(found: Sequence[_Times], reference: Sequence[_Times], horizon_s: float) -> MedianEstimate:
    """The median of the time saved: the reference arm's time below the target minus the arm's, seed by seed.

    Undetermined if neither arm reaches the target in any seed: no measurement tells the two apart.
    """
    if all(one.below_s == horizon_s for one in (*found, *reference)):
        return median_estimate([UNKNOWN] * len(found))
    return median_estimate(
        [exactly(other.below_s - one.below_s) for other, one in zip(reference, found, strict=True)]
    )


def target_name(table: TargetTable, reference_arm: str) -> str:
    """The heading of a target's table: its accuracy, or whose accuracy it is.

    >>> target_name(TargetTable(0.5, mean_estimate([0.5]), []), "global")
    '50.0 %'
    """
    if table.accuracy.mean is None:
        return f"{reference_arm}'s accuracy at the horizon"
    accuracy = percent_scale(0.0)(table.accuracy.mean)
    if table.target == REFERENCE:
        return f"{reference_arm}'s accuracy at the horizon ({accuracy})"
    return accuracy


def _note(summary: Summary) -> str:
    if not summary.targets:
        return HOW_TO_SET_A_TARGET
    rows = [row for table in summary.targets for row in table.rows]
    levels = levels_as_text(row["time_below_s"].level for row in rows)
    level = f", with an interval of order statistics at {levels}" if levels else ""
    smoothed = "accuracy" if summary.window == 1 else f"the mean of the last {summary.window} evaluations"
    moves = MOVES if any(table.target == REFERENCE for table in summary.targets) else ""
    compared = [row[key] for row in rows for key in ("saved_s", "speedup") if row[key] is not None]
    return (
        f"Median over seeds{level}; saved and speed-up are medians of the differences and ratios of single "
        f"seeds. Time below counts every evaluation, and the time before the first one. "
        f"{BELOW_AFTER_DRIFT if any(row['below_after_drift'] for row in rows) else ''}"
        f"{_held_note(smoothed, summary)}"
        f"{BOUNDS}{at_their_own_levels(figure.interval for figure in compared)}{moves}"
    ).strip()


def _held_note(smoothed: str, summary: Summary) -> str:
    """What it is to hold a target, and from when that is counted."""
    runs = [run for arm in summary.comparison.arms for run in arm.measured]
    held = (
        f"the first evaluation from which {smoothed} stays at or above the target up to the horizon; held is "
        "the number of seeds in which it does. "
    )
    if not summary.targets[0].counts_from_event:
        had = sum(first_mass_event_s(run) is not None for run in runs)
        from_start = (
            f"It counts from the start, across the mass events of {had} of {len(runs)} runs: not every run "
            f"has one with {summary.window} evaluation{'s' if summary.window > 1 else ''} after it. "
        )
        return f"Held from is {held}{from_start if had else ''}"
    later = any(len(events_by_the_horizon_s(run)) > 1 for run in runs)
    return (
        f"Held after the event is {held}It counts, smoothed anew, from the first mass event of each run, as "
        "speed-up does; held before it is from when it stays there up to that event. "
        f"{'It counts across later mass events. ' if later else ''}"
    )


def target_columns(columns: Sequence[Column], *, counts_from_event: bool) -> list[Column]:
    """The columns of a table of targets, with headings that say from when times are counted."""
    if not counts_from_event:
        return list(columns)
    return [HELD_AFTER_EVENT if column is HELD_FROM else column for column in columns]


def _text(table: TargetTable, *, in_terminal: bool = False) -> TextTable:
    columns = target_columns(TABLE.columns, counts_from_event=table.counts_from_event)
    return text_table(columns, table.rows, in_terminal=in_terminal)


def _captioned(summary: Summary, as_printed: bool) -> list[tuple[str, TextTable]]:
    return [
        (
            f"time to {target_name(table, summary.reference_arm)}",
            _text(table, in_terminal=as_printed),
        )
        for table in summary.targets
    ]


def _on_page(report: Report) -> OnPage:
    summary = report.summary
    tables = [
        NotedTable(f"Target: {target_name(table, summary.reference_arm)}", _text(table))
        for table in summary.targets
    ]
    return OnPage(tables, remarks=[_note(summary)])


TABLE = Table(
    title="Time to accuracy",
    place=Place("pays"),
    columns=(
        Column("time_below_s", "time below", time_scale),
        Column("saved_s", "saved", signed_time_scale),
        Column("below_after_drift", "below after drift", percent_scale, only_if=any_measured),
        Column("first_reached_s", "first reached", time_scale, in_terminal=False),
        HELD_BEFORE,
        HELD_FROM,
        SPEEDUP,
        HELD,
    ),
    note=_note,
    in_terminal=InTerminal("", is_against_reference=True, in_notebook=True),
    in_many_runs=InManyRuns(reductions=(events_of_log_s,)),
    captioned=_captioned,
    on_page=_on_page,
)
