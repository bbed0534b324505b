"""How long arms take to reach target accuracies: a table for each target (statistics/targets.py)."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.results.reading.recorded import REFERENCE
from experiments.results.statistics.drift.mass_events import events_by_the_horizon_s, first_mass_event_s
from experiments.results.statistics.medians import levels_as_text
from experiments.results.statistics.scales import factor_scale, percent_scale, signed_time_scale
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.targets import TargetTable
from experiments.results.tables.notes import BOUNDS, MOVES, at_their_own_levels
from experiments.results.tables.quantities import (
    IS_REFERENCE,
    NO_EVENT,
    SECONDS,
    SHARE,
    Quantity,
    any_measured,
    show_tally,
)
from experiments.results.tables.report import Report
from experiments.results.tables.table import (
    InTerminal,
    NotedTable,
    OnPage,
    Place,
    Table,
    TextTable,
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


BELOW = Quantity("time_below_s", None, SECONDS, "time below").means(
    "time up to the horizon in which the accuracy was below the target"
)
SAVED = Quantity("saved_s", None, SECONDS, "saved", signed_time_scale).means(
    "that of the reference arm minus the arm's", IS_REFERENCE
)
BELOW_SHARE = Quantity("below_after_drift", None, SHARE, "below after drift", only_if=any_measured).means(
    "share of the time from the first mass event to the horizon that is below the target", NO_EVENT
)
FIRST_REACHED = Quantity("first_reached_s", None, SECONDS, "first reached", in_terminal=False).means(
    "when the smoothed accuracy first reached the target"
)
HELD_BEFORE = Quantity("held_before_s", None, SECONDS, "held before it from", only_if=any_measured).means(
    "when it came to stay at or above the target up to the first mass event",
    "unless every run has a mass event, and from there to the horizon as many evaluations as a smoothed "
    "accuracy is the mean of",
)
HELD_FROM = Quantity("held_from_s", None, SECONDS, "held from").means(
    "time-to-accuracy: when the smoothed accuracy came to stay at or above the target up to the horizon, "
    "from the first mass event of each run where `held_before_s` was measured"
)
HELD_AFTER_EVENT = HELD_FROM.headed("held after the event from")
SPEEDUP = Quantity("speedup", None, "factor", "speed-up", factor_scale).means(
    "`held_from_s` of the reference arm over the arm's", IS_REFERENCE
)
OF_TARGETS = (BELOW, SAVED, BELOW_SHARE, FIRST_REACHED, HELD_BEFORE, HELD_FROM, SPEEDUP)
"""The figures of a target that frames have, in their order."""

HELD = Quantity("held", None, heading="held", show=show_tally)


def target_name(table: TargetTable, reference_arm: str) -> str:
    """The heading of a target's table: its accuracy, or whose accuracy it is.

    >>> from experiments.results.statistics.intervals import mean_estimate
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
    runs = summary.comparison.runs
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


def target_columns(columns: Sequence[Quantity], *, counts_from_event: bool) -> list[Quantity]:
    """The columns of a table of targets, with headings that say from when times are counted."""
    if not counts_from_event:
        return list(columns)
    return [HELD_AFTER_EVENT if column is HELD_FROM else column for column in columns]


def _text(table: TargetTable, *, in_terminal: bool = False) -> TextTable:
    columns = target_columns((*OF_TARGETS, HELD), counts_from_event=table.counts_from_event)
    return text_table(columns, table.rows, in_terminal=in_terminal)


def _captioned(summary: Summary, as_printed: bool) -> list[tuple[str, TextTable]]:
    return [
        (f"time to {target_name(table, summary.reference_arm)}", _text(table, in_terminal=as_printed))
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
    columns=(*OF_TARGETS, HELD),
    note=_note,
    in_terminal=InTerminal("", is_against_reference=True, in_notebook=True),
    captioned=_captioned,
    on_page=_on_page,
)
