"""What run directories show, in sentences by their rank.

A page and a notebook have all of them, a terminal the first `MOST_LINES`. They are made of the cells of
tables, so that they have no figure that the page has not.

They call a gain measurable only if its interval does. A gain whose interval contains 0 is neither above nor
below, or as good if it lies within a percentage point of 0; one without an interval is stated as such, with
the range of its seeds where a trigger is why. An arm is above the best of several baselines only if it is
shown to be above each of them (`NamedGain.not_above`). The most accurate arm of many runs is chosen, with its
cell and those of its rivals, by the figures that are stated, and so is stated without an interval.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.results.many_runs.folder_table import run_counts, words_of
from experiments.results.many_runs.runs_table import has_personal
from experiments.results.many_runs.sections import Row, Section
from experiments.results.statistics.comparisons import TIE, Comparison, personal_curve
from experiments.results.statistics.intervals import Estimate, Gain, NamedGain, mean_estimate
from experiments.results.statistics.medians import MedianEstimate, levels_as_text
from experiments.results.statistics.published import beside_published
from experiments.results.statistics.scales import as_time, percent_scale, points_scale
from experiments.results.statistics.significance import Difference
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.targets import TargetTable
from experiments.results.statistics.whole_runs import Finished
from experiments.results.tables.accuracy import gain_after_drift_over, mean_accuracy
from experiments.results.tables.baselines import why_missing
from experiments.results.tables.cells import gain_in_short, show_difference, show_estimate, with_interval
from experiments.results.tables.claims import OF_SERVED, OF_USED, claims
from experiments.results.tables.published_cells import mean_and_std, scored_steps
from experiments.results.tables.quantities import Quantity
from experiments.results.tables.targets import HELD, HELD_FROM, SPEEDUP, target_name
from experiments.results.wording import in_its_words, told

MOST_LINES = 3
"""Most sentences of a terminal, and of a page before the others are folded."""

MOST_NAMED = 6
"""Most experiments with known concepts that a sentence names."""

OMITTING = "accuracy_omitting_drift"
BEST, BEST_OTHER = "the best arm without clusters", "the best other arm"
AS_GOOD_PP = 1.0
"""How far from 0 an interval may reach, in percentage points, where two arms are said to be as good."""

NO_INTERVAL = "(no interval: under three seeds)"

NOTATION = {
    r"to \S+ by seed\)": "(low to high by seed) is the range over seeds",
    r"\[[-+.,\d]+, [-+.,\d]+\]": "[low, high] is a 95 % interval over seeds (Student's t)",
    r"\[\S+, \S+ at [.\d]+ %": "[low, high at its level] is an interval of the median",
    r"\d ± \d": "± is the sample standard deviation over seeds",
}
"""What brackets and signs in sentences mean, by the pattern of their text."""


def notation(sentences: Sequence[str]) -> str:
    """What the brackets and signs in these sentences mean, each once; empty without any.

    >>> notation(["fielding is 2.1 pp [1.0, 3.2] above global."])
    "[low, high] is a 95 % interval over seeds (Student's t)."
    """
    found = [meaning for pattern, meaning in NOTATION.items() if re.search(pattern, "\n".join(sentences))]
    return f"{'; '.join(found)}." if found else ""


def in_terminal(sentences: Sequence[str]) -> list[str]:
    """The lines of a terminal: the first of these sentences, and their notation."""
    first = sentences[:MOST_LINES]
    return list(filter(None, [*first, notation(first)]))


# -- on a run directory -------------------------------------------------------------------------------------


@in_its_words
def sentences(summary: Summary, report: Mapping[str, Any]) -> list[str]:
    """The sentences on a run directory.

    Where the trace knows its concepts, the accuracy omitting drift comes first. The next ones are on one
    arm: that of the headline, or else the one with the largest gain. They have its gain over the reference
    arm and over the best arm without clusters, and its time to the highest target that is held, or its final
    accuracy. Then come the arms that tie, its gain after the mass event, and the other arms by descending
    gain.

    Args:
        summary: The figures.
        report: The table `[report]` of the configuration, which may have published values.
    """
    on_drift = drift_sentence(summary.finished, summary.reference_arm, report)
    return list(filter(None, [on_drift, *_on_arms(summary)]))


def drift_sentence(finished: Finished, reference_arm: str, report: Mapping[str, Any]) -> str | None:
    """A sentence on the arm with the highest accuracy omitting drift, beside the reference arm.

    Their published accuracies are added. `finished` is that of the summary, `report` the table `[report]` of
    the configuration. None if no arm has such an accuracy.
    """
    arms = finished.arms
    written = {
        name: _beside_published(cell)
        for name, arm in arms.items()
        if (cell := beside_published(arm[OMITTING].per_seed, OMITTING, name, report)) is not None
    }
    if not written:
        return None
    best = max(written, key=lambda name: arms[name][OMITTING].mean or 0.0)
    named = {name: f"{name}, the first arm," if name == reference_arm else name for name in written}
    stated = f"{named[best]} has the highest accuracy omitting drift, {written[best]}"
    if reference_arm in written and reference_arm != best:
        stated += f"; {named[reference_arm]} has {written[reference_arm]}"
    steps = scored_steps(finished.steps, finished.scored_steps)
    return f"{stated}.{f' {steps} were scored.' if steps else ''}"


def _beside_published(cell: Mapping[str, Any]) -> str:
    published = f" (published: {mean_and_std(cell['published'])} %)" if cell["published"] else ""
    return f"{mean_and_std(cell)} %{published}"


def _on_arms(summary: Summary) -> Iterator[str]:
    if not summary.rows:
        yield f"No run of the reference arm {summary.reference_arm!r} is finished: nothing is compared."
        return
    reference, *others = summary.rows
    if why := _not_compared(summary):
        yield why
        yield "" if others else _held(summary, [reference.arm])
        return
    gain = claims(summary).gain
    ordered = sorted(others, key=lambda row: row[gain].mean, reverse=True)
    named = summary.comparison.find(summary.headline)
    if summary.headline is not None and named is None:
        absent = f"{summary.headline}, the arm of the headline,"
        is_left_out = summary.headline in summary.comparison.left_out
        why = "was not asked for" if is_left_out else "has finished no seed on which it can be compared"
        yield f"{absent} {why}."
    row = named or ordered[0]
    yield _gain(summary, row, is_chosen=named is None and len(others) > 1)
    yield _beside_best(summary, row)
    best = claims(summary).best_without_clusters(summary).name
    arms = list(dict.fromkeys(filter(None, [row.arm, best, reference.arm])))
    yield _held(summary, arms) or _final(summary, arms)
    yield _ties(summary)
    yield _after_event(summary, row)
    yield from (_on_another(summary, other) for other in ordered if other is not row)


def _not_compared(summary: Summary) -> str:
    """Why no arm is compared with the reference arm, in a sentence; empty if some are."""
    of, (reference, *others) = claims(summary), summary.rows
    if not others:
        final = _as_percent(reference[of.final])
        absent = set(summary.comparison.configured) - {reference.arm}
        is_left_out = absent and absent <= set(summary.comparison.left_out)
        have = "was asked for" if is_left_out else "has finished a seed to compare with it"
        return f"{reference.arm} ends at {final}; no other arm {have}."
    if any(row[of.gain] is None or row[of.gain].mean is None for row in others):
        return "The runs have no stretch of virtual time in common: nothing can be compared."
    return ""


def _gain(summary: Summary, row: Comparison, *, is_chosen: bool) -> str:
    """The mean accuracy of an arm, and its gain over the reference arm, with the seeds and the horizon."""
    of, which = claims(summary), ", the arm with the largest gain," if is_chosen else ""
    gain, best = row[of.gain], row[of.over_best]
    stated = _with_mean(summary, row, which)
    if best is not None and best.mean is not None and best.over == summary.reference_arm:
        among = " of those finished" if of.best_without_clusters(summary).omission else ""
        stated += f", {beside_best(best, f'{best.over}, which is also {BEST}', among)}"
    elif gain is not None:
        stated += f", {beside(gain)} {summary.reference_arm}"
    seeds = f"{len(row.runs)} seed{'s' if len(row.runs) > 1 else ''}"
    until = f"up to {as_time(summary.horizon.horizon_s)} of virtual time"
    if summary.horizon.is_of_different_data:
        until += ", by which arms have reached different data"
    return f"{stated} ({seeds}, {until})."


def _beside_best(summary: Summary, row: Comparison) -> str:
    """The gain of an arm over the best arm without clusters, unless that is the reference arm.

    Arms without clusters that are missing are named in any case.
    """
    of = claims(summary)
    best, omission = row[of.over_best], of.best_without_clusters(summary).omission
    of_those = f" of those finished; {omission}" if omission else ""
    if best is None:
        return f"{row.arm} is {BEST}{of_those}." if summary.comparison.has_baselines else ""
    if best.mean is None:
        return f"The gain of {row.arm} over {BEST} is not known{f': {omission}' if omission else ''}."
    if best.over == summary.reference_arm:
        return f"{omission}." if omission else ""
    return f"{row.arm} is {beside_best(best, f'{best.over}, {BEST}', of_those)}."


def _held(summary: Summary, arms: Sequence[str]) -> str:
    """From when these arms hold the highest target that one of them holds in some seed; empty without one.

    The speed-up is that of the first. Targets are of what serves clients, and not stated beside claims on
    what they use.
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
    reference = summary.reference_arm
    speedup = speedups[arms[0]]
    sooner = f"; speed-up of {arms[0]} over {reference} {speedup}" if arms[0] != reference else ""
    after = " after the mass event" if table.counts_from_event else ""
    return f"Time to hold {target_name(table, reference)}{after}: {times}{sooner}."


def _by_arm(table: TargetTable, column: Quantity) -> dict[str, str]:
    """By arm, its cell of a column; of medians, those that are known with their intervals and levels."""
    found = {}
    for row, cell in zip(table.rows, column.cells(table.rows), strict=True):
        entry, found[row.arm] = row[column.key], cell.figure
        if isinstance(entry, MedianEstimate) and entry.median.status == "=":
            level = levels_as_text([entry.level])
            of_level = f" at {level}" if level else ""  # within the bracket, of which an open one ends in ")"
            found[row.arm] = re.sub(r"([\])])$", rf"{of_level}\1", with_interval(cell))
    return found


def _final(summary: Summary, arms: Sequence[str]) -> str:
    """The final accuracy of these arms, and the difference of the first from the reference arm."""
    of, rows = claims(summary), {row.arm: row for row in summary.rows}
    finals = ", ".join(f"{arm} {_as_percent(rows[arm][of.final])}" for arm in arms)
    gain = rows[arms[0]][of.final_gain]
    difference = "" if gain is None else f"; {_shown(gain)} over {summary.reference_arm}"
    return f"{of.name.removeprefix('mean ').capitalize()} at the horizon: {finals}{difference}."


def _ties(summary: Summary) -> str:
    """The arms that tie; empty without any."""
    groups = [" = ".join(names) for names in summary.comparison.ties]
    within = f"every evaluation up to the horizon within {100 * TIE:g} points in every seed"
    return f"{', '.join(groups)}: {within}." if groups else ""


def _after_event(summary: Summary, row: Comparison) -> str:
    """The gains of an arm after the mass event, over the first and the best arm; empty if not known.

    The best arm without clusters is that of the whole time, so that the two gains over it are of one arm.
    """
    of = claims(summary)
    after, best = of.after(row), of.best_without_clusters(summary).arm
    if after is None:
        return ""
    stated = f"After the mass event, {row.arm} is {beside(after)} {summary.reference_arm}"
    if best is None or best.is_reference or best is row:
        return f"{stated}."
    over_best = gain_after_drift_over(row, best, summary.comparison)
    return f"{stated}." if over_best is None else f"{stated}, and {beside(over_best)} {best.arm}, {BEST}."


def _on_another(summary: Summary, row: Comparison) -> str:
    """The mean accuracy of an arm, and its gain over the reference arm, also after the mass event."""
    of = claims(summary)
    gain, after = row[of.gain], of.after(row)
    and_after = "" if after is None else f", and {beside(after)} it after the mass event"
    return f"{_with_mean(summary, row)}, {beside(gain)} {summary.reference_arm}{and_after}."


# -- clauses on an arm --------------------------------------------------------------------------------------


def _as_percent(estimate: Estimate) -> str:
    """An accuracy without its interval."""
    return show_estimate(estimate, percent_scale(0.0)).figure


def _with_mean(summary: Summary, row: Comparison, which: str = "") -> str:
    """The arm and its mean accuracy; `which` says what arm it is, as is said of the reference arm."""
    of = claims(summary)
    which = ", the first arm," if row.is_reference else which
    return f"{row.arm}{which} has a {of.name} of {_as_percent(row[of.mean])}"


def beside(gain: Gain) -> str:
    """The gain in words, such as "2.1 pp above"; the caller appends the name of the reference arm."""
    assert gain.mean is not None
    if gain.ci95 is None:
        return _without_interval(gain, gain.mean)
    if _is_as_good(gain):
        return f"within {AS_GOOD_PP:.0f} pp of ({_shown(gain)})"
    if gain.ci95[0] <= 0 <= gain.ci95[1]:
        return f"neither measurably above nor below ({_shown(gain)})"
    near, far = sorted(map(abs, gain.ci95))
    return f"{abs(gain.mean):.1f} pp [{near:.1f}, {far:.1f}] {_direction(gain.mean)}"


def _without_interval(gain: Gain, mean: float) -> str:
    """The same of few seeds, or of an arm with a trigger, whose lowest and highest seed are stated."""
    by_seed, values = gain_in_short(gain).interval, [value for value in gain.per_seed if value is not None]
    on_average = "on average " if by_seed and min(values) < 0 < max(values) else ""
    return f"{on_average}{abs(mean):.1f} pp {by_seed or NO_INTERVAL} {_direction(mean)}"


def _direction(mean: float) -> str:
    """Whether a gain is above or below, as far as its first decimal shows."""
    return "from" if round(mean, 1) == 0 else "above" if mean > 0 else "below"


def _is_as_good(gain: Gain) -> bool:
    """Whether the interval has 0 and lies within `AS_GOOD_PP` of it, or the gain itself rounds to 0.0."""
    if gain.ci95 is None or max(map(abs, gain.ci95)) > AS_GOOD_PP:
        return False
    return gain.ci95[0] <= 0 <= gain.ci95[1] or round(gain.mean or 0.0, 1) == 0


def beside_best(gain: NamedGain, best: str, of_those: str) -> str:
    """The same of a gain over the best of several baselines, whose choice its interval does not account for.

    It is "above" only if the arm is shown to be above each of the baselines, and "below" only if the interval
    that holds for all arms at once, of which there are more than baselines, is below 0. `best` names the best
    one, and `_of_those` says among which it was chosen, if not among all.
    """
    if is_above_the_best_alone(gain):
        but = f"but not measurably above {', '.join(gain.not_above or ())}"
        return f"not measurably above {BEST} ({_shown(gain)} over {gain.over}, {but}){of_those}"
    is_measurable = gain.ci95_joint is None or gain.ci95_joint[1] < 0 or (gain.ci95 or (0.0, 0.0))[0] > 0
    is_stated = is_measurable or _is_as_good(gain)
    stated = beside(gain) if is_stated else f"not measurably above ({_shown(gain)})"
    return f"{stated} {best}{of_those}"


def is_above_the_best_alone(gain: NamedGain) -> bool:
    """Whether a gain over the best of several baselines is measurable, and that over another one is not."""
    return gain.ci95 is not None and gain.ci95[0] > 0 and bool(gain.not_above)


def _shown(gain: Gain) -> str:
    """The mean with its interval, such as "+0.3 pp [-0.1, +0.7]", or with the range of single seeds."""
    return " ".join(gain_in_short(gain).lines)


# -- on many run directories --------------------------------------------------------------------------------


def of_folder(table: Mapping[str, Any], sections: Sequence[Section], scored: Sequence[str]) -> list[str]:
    """The sentences on a folder of run directories.

    Where the traces of a few experiments know their concepts, the first have the best arm of each, and how
    the arms agree with published values. Then come those of its sections, and last the numbers of experiments
    and runs.

    Args:
        table: The table of the folder (`build_table`).
        sections: Its sections.
        scored: The names of its experiments with known concepts.
    """
    columns = table["experiments"]
    counts = {name: sum(column[name] for column in columns) for name in ("finished", "failed", "planned")}
    until = sum((Counter(column.get("until", {})) for column in columns), Counter[str]())
    numbers = run_counts({**counts, "until": until}) or "none"
    experiments = f"{len(columns)} experiment{'s' if len(columns) != 1 else ''}"
    on_drift = list(_on_drift(table, scored)) if 1 < len(scored) <= MOST_NAMED else []
    told_drift = told(words_of(table, scored), on_drift)
    return [*told_drift, *of_sections(sections), f"{experiments}; runs: {numbers}."]


def _on_drift(table: Mapping[str, Any], scored: Sequence[str]) -> Iterator[str]:
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


def of_sections(sections: Sequence[Section]) -> list[str]:
    """The sentences on sections of many runs: the most accurate arm of each, then its gains.

    Sections are not compared with each other, and no cell with those of another world.
    """
    several = len(sections) > 1
    best = [
        (section.name if several else "", world, _most_accurate(section, rows))
        for section in sections
        for world, rows in section.by_world
    ]
    gains = [(one.name if several else "", "", text) for one in sections for text in _extremes(one)]
    named = [(", ".join(filter(None, where)), text) for *where, text in [*best, *gains] if text]
    return [f"{where}: {text}" if where else text for where, text in named]


@in_its_words
def _most_accurate(section: Section, rows: Sequence[Row]) -> str:
    """The arm with the highest mean accuracy, and its gain over the best rival, each in its own best cell.

    `rows` are those of one world. Empty if none has a mean accuracy. An oracle, which knows what no method
    can, is not ranked unless it is the arm of a headline, as it is no headline by itself.
    """
    of, cells = OF_USED if has_personal(section.rows) else OF_SERVED, dict[str, list[Row]]()
    known = {row: mean for row in rows if (mean := _used(row)) is not None}
    oracles = [row.arm for row in known if _is_oracle(row) and row.arm not in section.headlines]
    means = {row: mean for row, mean in known.items() if row.arm not in oracles}
    for row in sorted(means, key=lambda row: means[row], reverse=True):
        cells.setdefault(row.arm, []).append(row)
    if not cells:
        return ""
    (best, *_), *others = cells.values()
    of_all = f" of all but {', '.join(dict.fromkeys(oracles))}" if oracles else ""
    has = f"has a {of.name} of" if len(means) == 1 else f"has the highest {of.name}{of_all},"
    stated = f"{_where(section, best)} {has} {percent_scale(0.0)(means[best])}"
    rival, which = _rival(best, [row for row, *_ in others])
    omission = _omission(rows)
    if rival is not None:
        gain = 100 * (means[best] - means[rival])
        of_those = " of those finished" if omission and which == BEST else ""
        its_cell = f"{rival.arm} there" if rival.directories == best.directories else _where(section, rival)
        named = rival.arm if len(section.members) == 1 else its_cell
        stated += f", {gain:.1f} pp {_direction(gain)} {named}, {which}{of_those}"
    counts = [len(cells[row.arm]) for row in (best, rival) if row is not None]
    return f"{stated}{_choice(counts, rows)}{f'; {omission}' if omission else ''}."


def _used(row: Row) -> float | None:
    """The mean accuracy of what clients use; None if some run has none."""
    has_own = any(personal_curve(run.log) is not None for run in row.runs)
    found: Estimate = row[OF_USED.mean] if has_own else row.mean_accuracy
    return found.mean


def _rival(best: Row, others: Sequence[Row]) -> tuple[Row | None, str]:
    """(the first of the others without clusters, what it is), or of all if `best` or none is such an arm."""
    baselines = [row for row in others if _is_baseline(row)]
    if baselines and not _is_baseline(best):
        return baselines[0], BEST
    return (others[0], BEST_OTHER) if others else (None, "")


def _is_baseline(row: Row) -> bool:
    return row.comparison.configured is not None and row.comparison.configured.is_baseline


def _is_oracle(row: Row) -> bool:
    return row.comparison.configured is not None and row.comparison.configured.is_oracle


def _choice(counts: Sequence[int], rows: Sequence[Row]) -> str:
    """A clause on of how many cells those of two arms, or of one, were chosen, and on which seeds.

    Empty for an arm without a rival that has one cell, since nothing was chosen.
    """
    if counts == [1]:
        return ""
    each = " each" if len(set(counts)) < len(counts) else ""
    number = " and of ".join(map(str, dict.fromkeys(counts)))
    of_cells = f"best of {number} cells{each}, " if max(counts) > 1 else ""
    are_same = len({tuple(row.seed_ids) for row in rows}) == 1
    return f" ({of_cells}chosen on {'these seeds' if are_same else 'seeds that are not the same'})"


def _omission(rows: Sequence[Row]) -> str:
    """Clauses on the arms without clusters that have no row; empty without any."""
    missing, present = dict[str, bool](), {row.arm for row in rows}
    for directory in {row.directory.name: row.directory for row in rows}.values():
        left_out = directory.directory.left_out()
        missing |= {
            name: name in left_out and missing.get(name, True)
            for name, arm in directory.configured.items()
            if arm.is_baseline and name not in present
        }
    unfinished, not_asked = ([name for name in missing if missing[name] == is_so] for is_so in (False, True))
    return why_missing(unfinished, not_asked)


Stated = tuple[float, str, str, str]
"""A gain, its text, in which row it is, and its arm if that is one of a headline, or else an empty text."""


@in_its_words
def _extremes(section: Section) -> list[str]:
    """The largest and the smallest gain over the reference arm, with the accuracies of both arms.

    They are of the arms of the headlines if there are any, which are named beside others, or else of all.
    """
    is_served = has_personal(section.rows)
    known = _gains(section)
    found = [one for one in known if one[-1]] or known
    of_whom = f" of {' or '.join(dict.fromkeys(one[-1] for one in found))}" if len(found) < len(known) else ""
    over = " or ".join(section.reference_arms)
    what = f"gain{' in served accuracy' if is_served else ''}{of_whom} over {over}"
    ranked = sorted(found, key=lambda stated: stated[0])
    ends = [ranked[-1], ranked[0]] if ranked else []
    if ends and ends[0][1] == ends[1][1]:
        _, text, where, _ = ends[0]
        of_all = where if len(ranked) == 1 else f"in all {len(ranked)} rows"
        return [f"{what[0].upper()}{what[1:]}: {text}, {of_all}."]
    words = zip(("Largest", "Smallest"), ends, strict=False)
    return [f"{word} {what}: {text}, {where}." for word, (_, text, where, _) in words]


def _gains(section: Section) -> list[Stated]:
    """The gains that are known."""
    headlines = section.headlines
    return [
        (gain.mean, _gain_text(gain), _with_accuracies(section, row), row.arm if row.arm in headlines else "")
        for row in section.rows
        if (gain := row.gain_pp) is not None and gain.mean is not None
    ]


def _gain_text(gain: Difference) -> str:
    """A gain with its interval and its corrected p-value, as its table has them."""
    cell = show_difference(gain, points_scale(0.0))
    return ", ".join([with_interval(cell), *cell.note.splitlines()])


def _with_accuracies(section: Section, row: Row) -> str:
    """The arm in its cell, with its mean accuracy and that of the reference arm there."""
    reference = mean_estimate(list(map(mean_accuracy, row.comparison.reference)))
    both = f"{_as_percent(row.mean_accuracy)}, {row.directory.arms[0]} {_as_percent(reference)}"
    return f"{_where(section, row)} ({both})"


def _where(section: Section, row: Row) -> str:
    """The arm and, in a section of several, its run directory."""
    others = " and others" if len(row.directories) > 1 else ""
    return row.arm if len(section.members) == 1 else f"{row.arm} in {row.directories[0]}{others}"
