"""What was found, in at most three lines: of a run directory, and of a folder of them.

The terminal ends with them and a notebook begins with them. They are made of the clauses of the report's
headline and of the cells of its tables, so that they have no figure that the page has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.results.many_runs.folder_table import run_counts
from experiments.results.many_runs.sections import Row as RunsRow
from experiments.results.many_runs.sections import Section
from experiments.results.pages.folder_page import columns_with_drift, names_alone
from experiments.results.pages.headline import (
    BEST,
    OMITTING,
    beside,
    beside_best,
    drift_sentence,
    gain_of,
    sentences,
)
from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.medians import levels_as_text
from experiments.results.statistics.scales import Scale, as_time, percent_scale, points_scale
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.targets import TargetTable
from experiments.results.tables.cells import Cell, short_interval, show_difference, show_estimate
from experiments.results.tables.claims import claims
from experiments.results.tables.published_cells import mean_and_std
from experiments.results.tables.quantities import Quantity
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
    lines = [] if on_drift is None else [on_drift]
    if not summary.rows:
        nothing = f"no run of the reference arm {summary.reference_arm!r} is finished: nothing is compared"
        return [*lines, f"{nothing[0].upper()}{nothing[1:]}."]
    return [*lines, *_on_arms(summary)][:MOST_LINES]


def _on_arms(summary: Summary) -> Iterator[str]:
    reference, *others = summary.rows
    of = claims(summary)
    if not others:
        yield sentences(summary)[0]
        yield from _held(summary, [reference.arm])
        return
    if any(row[of.gain] is None or row[of.gain].mean is None for row in others):
        yield sentences(summary)[0]
        return
    named = next((row for row in summary.rows if row.arm == summary.headline), None)
    if summary.headline is not None and named is None:
        yield sentences(summary)[0]
    row = named or max(others, key=lambda row: gain_of(row, of))
    yield _gain(summary, row, is_chosen=named is None and len(others) > 1)
    yield from _beside_others(summary, row)
    arms = list(dict.fromkeys([row.arm, reference.arm]))
    yield from _held(summary, arms) or _final(summary, arms)


def _gain(summary: Summary, row: Comparison, *, is_chosen: bool) -> str:
    """The mean accuracy of an arm, and its gain over the reference arm, with the seeds and the horizon."""
    of = claims(summary)
    over, gain, best = summary.reference_arm, row[of.gain], row[of.over_best]
    seeds = next(len(arm.runs) for arm in summary.rows if arm.arm == row.arm)
    horizon_s = summary.horizon.horizon_s
    if gain is None:
        which, beside_it = ", the first arm,", ""
    elif best is not None and best.mean is not None and best.over == over:
        finished = " of those finished" if claims(summary).best_without_clusters(summary).unfinished else ""
        which, beside_it = "", f", {beside_best(best, f'{over}, which is also {BEST}', finished)}"
    else:
        which, beside_it = "", f", {beside(gain)} {over}"
    if is_chosen:
        which = ", the arm with the largest gain,"
    mean = _figure(row[of.mean], percent_scale(0.0))
    return (
        f"{row.arm}{which} has a {of.name} of {mean}{beside_it} ({seeds} seed{'s' if seeds > 1 else ''}, "
        f"up to {as_time(horizon_s)} of virtual time)."
    )


def _beside_others(summary: Summary, row: Comparison) -> Iterator[str]:
    """The gain of an arm over the best arm without clusters or, if that is stated already, after drift."""
    of = claims(summary)
    best, after = row[of.over_best], of.after(row)
    chosen = of.best_without_clusters(summary)
    if summary.comparison.has_baselines and best is None:
        yield f"{row.arm} is {BEST}{_of_those(summary)}."
    elif best is not None and best.mean is None:
        why = f": {chosen.omission}" if chosen.unfinished else ""
        yield f"The gain of {row.arm} over {BEST} is not known{why}."
    elif best is not None and best.over != summary.reference_arm:
        yield f"{row.arm} is {beside_best(best, f'{best.over}, {BEST}', _of_those(summary))}."
    elif best is not None and chosen.unfinished:
        yield f"{chosen.omission}."
    elif after is not None and after.mean is not None:
        yield f"After the mass event, {row.arm} is {beside(after)} {summary.reference_arm}."


def _of_those(summary: Summary) -> str:
    """A clause on the arms without clusters that are not finished; empty without any."""
    chosen = claims(summary).best_without_clusters(summary)
    return f" of those finished; {chosen.omission}" if chosen.unfinished else ""


def _held(summary: Summary, arms: Sequence[str]) -> list[str]:
    """From when these arms hold the highest target that one of them holds in some seed; empty without one.

    Targets are of what serves clients, and not stated beside claims on what they use.
    """
    if summary.comparison.has_personal:
        return []
    tables = [
        table
        for table in summary.targets
        if table.accuracy.mean is not None and any(row["held"] for row in table.rows if row.arm in arms)
    ]
    if not tables:
        return []
    table = max(tables, key=lambda table: table.accuracy.mean or 0.0)
    names = [row.arm for row in table.rows]
    held, speedups = _held_cells(table), _medians(table, SPEEDUP)
    times = ", ".join(f"{arm} {held[names.index(arm)]}" for arm in arms)
    sooner = f"; speed-up {speedups[names.index(arms[0])]}" if len(arms) > 1 else ""
    after = " after the mass event" if table.counts_from_event else ""
    return [f"Time to hold {target_name(table, summary.reference_arm)}{after}: {times}{sooner}."]


def _held_cells(table: TargetTable) -> list[str]:
    """For each row, the time from which the target is held, and in how many seeds it is."""
    tallies = [cell.figure for cell in HELD.cells(table.rows)]
    times = zip(_medians(table, HELD_FROM), tallies, strict=True)
    return [f"{time} ({tally} seeds)" for time, tally in times]


def _medians(table: TargetTable, column: Quantity) -> list[str]:
    """The medians of a column, those that are known with their intervals and levels, else their bounds."""
    cells = zip((row[column.key] for row in table.rows), column.cells(table.rows), strict=True)
    return [
        _with_level(_joined(cell), entry.level)
        if entry is not None and entry.median.status == "="
        else cell.figure
        for entry, cell in cells
    ]


def _with_level(median: str, level: float | None) -> str:
    """A median whose bracket says its level, which a few seeds do not bring to 95 %."""
    return median if level is None else median.replace("]", f" at {levels_as_text([level])}]")


def _final(summary: Summary, arms: Sequence[str]) -> list[str]:
    """The final accuracy of these arms, and the difference of the first from the second."""
    of, rows = claims(summary), {row.arm: row for row in summary.rows}
    finals = [f"{arm} {_figure(rows[arm][of.final], percent_scale(0.0))}" for arm in arms]
    gain = rows[arms[0]][of.final_gain]
    difference = "" if gain is None else f"; {_with_spread(gain, points_scale(0.0))}"
    which = of.name.removeprefix("mean ").capitalize()
    return [f"{which} at the horizon: {', '.join(finals)}{difference}."]


def _figure(estimate: Estimate, scale: Scale) -> str:
    return show_estimate(estimate, scale).figure


def _with_spread(estimate: Estimate, scale: Scale) -> str:
    """The figure with its interval or, where single seeds stand for it, the lowest and the highest."""
    cell = show_estimate(estimate, scale)
    return f"{cell.figure} {short_interval(cell, estimate, scale)}".rstrip()


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


def _extremes(sections: Sequence[Section]) -> list[str]:
    rows = [(section, row) for section in sections for row in section.rows]
    gains = [
        (section, row) for section, row in rows if row.gain_pp is not None and row.gain_pp.mean is not None
    ]
    on_one_arm = [(section, row) for section, row in gains if row.arm in section.headlines]
    if ranked := on_one_arm or gains:
        ranked.sort(key=lambda item: _mean(item[1].gain_pp))
        served = " in served accuracy" if any(map(_is_personal, rows)) else ""
        written = [
            (f"gain{served} over {_reference(*item)}", _gain_text(item[1]), item[1]) for item in ranked
        ]
        words = ("Largest", "Smallest")
    else:
        known = [row for _, row in rows if row.mean_accuracy.mean is not None]
        known.sort(key=lambda row: _mean(row.mean_accuracy))
        written = [("mean accuracy", _figure(row.mean_accuracy, percent_scale(0.0)), row) for row in known]
        words = ("Highest", "Lowest")
    if not written:
        return []
    ends = written[-1], written[0]
    what, text, row = written[-1]
    if ends[0][:2] == ends[1][:2]:
        where = f"{row.arm} in {_place(row)}" if len(written) == 1 else f"in all {len(written)} rows"
        return [f"{what[0].upper()}{what[1:]}: {text}, {where}."]
    return [
        f"{word} {what}: {text}, {row.arm} in {_place(row)}."
        for word, (what, text, row) in zip(words, ends, strict=True)
    ]


def _is_personal(item: tuple[Section, RunsRow]) -> bool:
    """Whether the clients of a row use parameters of their own."""
    return item[1]["mean_personal_accuracy"].mean is not None


def _mean(estimate: Estimate | None) -> float:
    assert estimate is not None, "the others are left out"
    assert estimate.mean is not None, "the others are left out"
    return estimate.mean


def _reference(section: Section, row: RunsRow) -> str:
    return next(member.arms[0] for member in section.members if member.name == row.directories[0])


def _gain_text(row: RunsRow) -> str:
    """The gain of a row with its interval and its corrected p-value, as its table has them."""
    assert row.gain_pp is not None, "the others are left out"
    cell = show_difference(row.gain_pp, points_scale(0.0))
    return ", ".join([_joined(cell), *cell.note.splitlines()])


def _place(row: RunsRow) -> str:
    return row.directories[0] if len(row.directories) == 1 else f"{row.directories[0]} and others"
