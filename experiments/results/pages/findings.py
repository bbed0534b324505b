"""What was found, in at most three lines: of a run directory, and of a folder of them.

The terminal ends with them and a notebook begins with them. They are made of the clauses of the report's
headline and of the cells of its tables, so that they have no figure that the page has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from experiments.results.many_runs.folder_table import run_counts
from experiments.results.many_runs.runs_table import has_personal
from experiments.results.many_runs.sections import Row as RunsRow
from experiments.results.many_runs.sections import Section
from experiments.results.pages.folder_page import columns_with_drift, names_alone
from experiments.results.pages.headline import (
    BEST,
    OMITTING,
    after_event,
    as_percent,
    drift_sentence,
    not_compared,
    of_those,
    over_another,
    over_reference,
    sentences,
    unknown_gain,
    with_mean,
)
from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.medians import MedianEstimate, levels_as_text
from experiments.results.statistics.scales import as_time, points_scale
from experiments.results.statistics.significance import Difference
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.targets import TargetTable
from experiments.results.tables.cells import Cell, gain_in_short, show_difference
from experiments.results.tables.claims import claims
from experiments.results.tables.published_cells import mean_and_std
from experiments.results.tables.table import Column
from experiments.results.tables.targets import HELD, HELD_FROM, SPEEDUP, target_name

MOST_LINES = 3

MOST_NAMED = 6
"""Most experiments with known concepts that a line names."""


def findings(summary: Summary, report: Mapping[str, Any]) -> list[str]:
    """At most three sentences on what a run directory shows.

    They are on one arm: that of the headline, or else the one with the largest gain. The first is its gain
    over the reference arm; then comes its gain over the best arm without clusters, or after the mass event,
    and then the time to the highest target that is held, or the final accuracy. Where the trace knows its
    concepts, the accuracy omitting drift comes before all.

    Args:
        summary: The figures.
        report: The table `[report]` of the configuration, which may have published values.
    """
    on_drift = drift_sentence(summary.finished, summary.reference_arm, report)
    return list(filter(None, [on_drift, *_on_arms(summary)]))[:MOST_LINES]


def _on_arms(summary: Summary) -> Iterator[str]:
    if not summary.rows:
        yield f"No run of the reference arm {summary.reference_arm!r} is finished: nothing is compared."
        return
    reference, *others = summary.rows
    if why := not_compared(summary):
        yield why
        yield "" if others else _held(summary, [reference.arm])
        return
    named = summary.comparison.find(summary.headline)
    if summary.headline is not None and named is None:
        yield sentences(summary)[0]
    gain = claims(summary).gain
    row = named or max(others, key=lambda row: row[gain].mean)
    yield _gain(summary, row, is_chosen=named is None and len(others) > 1)
    yield _beside_others(summary, row)
    arms = list(dict.fromkeys([row.arm, reference.arm]))
    yield _held(summary, arms) or _final(summary, arms)


def _gain(summary: Summary, row: Comparison, *, is_chosen: bool) -> str:
    """The mean accuracy of an arm, and its gain over the reference arm, with the seeds and the horizon."""
    among = " of those finished" if of_those(summary) else ""
    stated = [
        with_mean(summary, row, ", the arm with the largest gain," if is_chosen else ""),
        over_reference(summary, row, among),
    ]
    seeds = f"{len(row.runs)} seed{'s' if len(row.runs) > 1 else ''}"
    until = as_time(summary.horizon.horizon_s)
    return f"{', '.join(filter(None, stated))} ({seeds}, up to {until} of virtual time)."


def _beside_others(summary: Summary, row: Comparison) -> str:
    """The gain of an arm over the best arm without clusters or, if that is stated already, after drift."""
    of = claims(summary)
    if summary.comparison.has_baselines and row[of.over_best] is None:
        return f"{row.arm} is {BEST}{of_those(summary)}."
    if unknown := unknown_gain(summary, row, f"The gain of {row.arm}"):
        return unknown
    if another := over_another(summary, row):
        return f"{row.arm} is {another}."
    omission = of.best_without_clusters(summary).omission
    return f"{omission}." if omission else after_event(summary, row)


def _held(summary: Summary, arms: Sequence[str]) -> str:
    """From when these arms hold the highest target that one of them holds in some seed; empty without one.

    Targets are of what serves clients, and not stated beside claims on what they use.
    """
    tables = [
        table
        for table in summary.targets
        if table.accuracy.mean is not None and any(row["held"] for row in table.rows if row.arm in arms)
    ]
    if not tables or summary.comparison.has_personal:
        return ""
    table = max(tables, key=lambda table: table.accuracy.mean or 0.0)
    held_from, held, speedups = (_by_arm(table, column) for column in (HELD_FROM, HELD, SPEEDUP))
    times = ", ".join(f"{arm} {held_from[arm]} ({held[arm]} seeds)" for arm in arms)
    sooner = f"; speed-up {speedups[arms[0]]}" if len(arms) > 1 else ""
    after = " after the mass event" if table.counts_from_event else ""
    return f"Time to hold {target_name(table, summary.reference_arm)}{after}: {times}{sooner}."


def _by_arm(table: TargetTable, column: Column) -> dict[str, str]:
    """By arm, its cell of a column; of medians, those that are known with their intervals and levels."""
    found = {}
    for row, cell in zip(table.rows, column.cells(table.rows), strict=True):
        entry, found[row.arm] = row[column.key], cell.figure
        if isinstance(entry, MedianEstimate) and entry.median.status == "=":
            level = levels_as_text([entry.level])
            found[row.arm] = _joined(cell).replace("]", f" at {level}]" if level else "]")
    return found


def _final(summary: Summary, arms: Sequence[str]) -> str:
    """The final accuracy of these arms, and the difference of the first from the second."""
    of, rows = claims(summary), {row.arm: row for row in summary.rows}
    finals = ", ".join(f"{arm} {as_percent(rows[arm][of.final])}" for arm in arms)
    gain = rows[arms[0]][of.final_gain]
    difference = "" if gain is None else f"; {' '.join(gain_in_short(gain).lines)}"
    return f"{of.name.removeprefix('mean ').capitalize()} at the horizon: {finals}{difference}."


def _joined(cell: Cell) -> str:
    """The figure with its interval; without the values of single seeds, which stand after dots."""
    return f"{cell.figure} {cell.interval}" if cell.interval.startswith("[") else cell.figure


# -- of a folder --------------------------------------------------------------------------------------------


def folder_findings(table: Mapping[str, Any], sections: Sequence[Section]) -> list[str]:
    """At most three sentences on what a folder of run directories shows.

    The first has the numbers of experiments and runs, the others the largest and the smallest gain over the
    reference arm: of the arms of the headline if there are any, else of all arms. Where no arm is compared,
    they have the highest and the lowest mean accuracy. Where the traces of a few experiments know their
    concepts, they have the best arm of each, and how the arms agree with published values.

    Args:
        table: The table of the folder (`build_table`).
        sections: Its sections.
    """
    columns = table["experiments"]
    counts = {name: sum(column[name] for column in columns) for name in ("finished", "failed", "planned")}
    until = sum((Counter(column.get("until", {})) for column in columns), Counter[str]())
    numbers = run_counts({**counts, "until": until}) or "none"
    experiments = f"{len(columns)} experiment{'s' if len(columns) != 1 else ''}"
    scored = columns_with_drift(table, names_alone(table, sections))
    is_of_drift = 1 < len(scored) <= MOST_NAMED
    lines = _of_drift(table, scored) if is_of_drift else _extremes(sections)
    return [f"{experiments}; runs: {numbers}.", *lines]


def _of_drift(table: Mapping[str, Any], scored: Sequence[str]) -> Iterator[str]:
    """The arm with the highest accuracy omitting drift in each experiment, and agreement with papers."""
    figures = table["figures"][OMITTING]
    best = []
    for name in scored:
        cells = {arm: by_experiment[name] for arm, by_experiment in figures.items() if name in by_experiment}
        if cells:
            most = max(cells.values(), key=lambda cell: float(cell["mean"]))
            arms = ", ".join(arm for arm, cell in cells.items() if cell["mean"] == most["mean"])
            best.append(f"{name} {mean_and_std(most)} % ({arms})")
    if best:
        yield f"Highest accuracy omitting drift: {', '.join(best)}."
    agreed = [
        f"{name} {agreement['inside']} of {judged} methods"
        for name, agreement in table["agreement"][OMITTING].items()
        if name in scored and (judged := agreement["inside"] + len(agreement["outside"]))
    ]
    if agreed:
        yield f"Within two published standard deviations of it: {', '.join(agreed)}."


Stated = tuple[float, str, str, str, bool]
"""A figure, what it is, its text, in which row it is, and whether that is of the arm of a headline."""


def _extremes(sections: Sequence[Section]) -> list[str]:
    """The largest and the smallest gain or, where no arm is compared, mean accuracy."""
    words, stated = ("Largest", "Smallest"), _gains(sections)
    if not stated:
        words, stated = ("Highest", "Lowest"), _means(sections)
    ranked = sorted(stated, key=itemgetter(0))
    ends = [ranked[-1], ranked[0]] if ranked else []
    if ends and ends[0][1:3] == ends[1][1:3]:
        _, what, text, where, _ = ends[0]
        of_all = where if len(ranked) == 1 else f"in all {len(ranked)} rows"
        return [f"{what[0].upper()}{what[1:]}: {text}, {of_all}."]
    return [
        f"{word} {what}: {text}, {where}."
        for word, (_, what, text, where, _) in zip(words, ends, strict=False)
    ]


def _gains(sections: Sequence[Section]) -> list[Stated]:
    """The gains that are known: of the arms of the headlines if there are any, else of all arms."""
    is_served = has_personal([row for section in sections for row in section.rows])
    what = f"gain{' in served accuracy' if is_served else ''} over"
    stated = [
        (
            gain.mean,
            f"{what} {row.directory.arms[0]}",
            _gain_text(gain),
            _where(row),
            row.arm in section.headlines,
        )
        for section in sections
        for row in section.rows
        if (gain := row.gain_pp) is not None and gain.mean is not None
    ]
    return [one for one in stated if one[-1]] or stated


def _means(sections: Sequence[Section]) -> list[Stated]:
    return [
        (row.mean_accuracy.mean, "mean accuracy", as_percent(row.mean_accuracy), _where(row), False)
        for section in sections
        for row in section.rows
        if row.mean_accuracy.mean is not None
    ]


def _gain_text(gain: Difference) -> str:
    """A gain with its interval and its corrected p-value, as its table has them."""
    cell = show_difference(gain, points_scale(0.0))
    return ", ".join([_joined(cell), *cell.note.splitlines()])


def _where(row: RunsRow) -> str:
    others = "" if len(row.directories) == 1 else " and others"
    return f"{row.arm} in {row.directories[0]}{others}"
