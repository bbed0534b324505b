"""The results of a run directory in sentences: the headline of its page, and the findings of the terminal.

They call a gain measurable only if its interval does. A gain whose interval contains 0 is neither above nor
below, or as good if it lies within a percentage point of 0; one without an interval is stated as such, with
the range of its seeds where a trigger is why. An arm is above the best of several baselines only if it is
shown to be above each of them (`NamedGain.not_above`). The sentence on drift names the arm with the highest
mean, whatever the spread.

The terminal ends with the findings and a notebook begins with them. They are made of the same clauses and of
the cells of tables, so that they have no figure that the page has not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.intervals import Estimate, Gain, NamedGain
from experiments.results.statistics.medians import MedianEstimate, levels_as_text
from experiments.results.statistics.published import beside_published
from experiments.results.statistics.scales import as_time, percent_scale
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.targets import TargetTable
from experiments.results.statistics.whole_runs import Finished
from experiments.results.tables.cells import gain_in_short, show_estimate, with_interval
from experiments.results.tables.claims import claims
from experiments.results.tables.published_cells import mean_and_std, scored_steps
from experiments.results.tables.quantities import Quantity
from experiments.results.tables.targets import HELD, HELD_FROM, SPEEDUP, target_name

MOST_LINES = 3
"""Most findings."""

OMITTING = "accuracy_omitting_drift"
BEST = "the best arm without clusters"
AS_GOOD_PP = 1.0
"""How far from 0 an interval may reach, in percentage points, where two arms are said to be as good."""

NO_INTERVAL = "(no interval: under three seeds)"

OTHER_DATA = (
    "By the horizon, arms have reached different data, so that gains are not due to the methods alone."
)


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


def sentences(summary: Summary) -> list[str]:
    """A sentence for each arm but the reference arm, which must be the first, by descending gain.

    If the headline is on one arm, that arm comes first, with its gain over the best arm without clusters too;
    its gain after drift, which is over the reference arm alone, is a sentence of its own. A warning precedes
    them if the arms have reached different data. If no arm is compared, a single sentence states why.
    """
    if why := _not_compared(summary):
        return [why]
    gain = claims(summary).gain
    ordered = sorted(summary.rows[1:], key=lambda row: row[gain].mean, reverse=True)
    gains = [_gain_sentence(summary, row) for row in ordered if row.arm != summary.headline]
    first = [] if summary.headline is None else _on_one_arm(summary)
    if not summary.horizon.is_of_different_data:
        return [*first, *gains]
    return [" ".join([OTHER_DATA, *first[:1]]), *first[1:], *gains]


def _not_compared(summary: Summary) -> str:
    """Why no arm is compared with the reference arm, in a sentence; empty if some are."""
    of, (reference, *others) = claims(summary), summary.rows
    if not others:
        final = as_percent(reference[of.final])
        return f"{reference.arm} ends at {final}; no other arm has finished a seed to compare with it."
    if any(row[of.gain] is None or row[of.gain].mean is None for row in others):
        return "The runs have no stretch of virtual time in common: nothing can be compared."
    return ""


def _on_one_arm(summary: Summary) -> list[str]:
    """The sentences on the arm of the headline, with its gains over the reference arm and best baseline."""
    row = summary.comparison.find(summary.headline)
    if row is None:
        return [
            f"{summary.headline}, the arm of the headline, has finished no seed on which it can be compared."
        ]
    clauses = [_over_reference(summary, row, _of_those(summary)), _over_another(summary, row)]
    stated = ", ".join(filter(None, [_with_mean(summary, row), " and ".join(filter(None, clauses))]))
    unknown = _unknown_gain(summary, row, "Its gain")
    return list(filter(None, [f"{stated}. {unknown}".rstrip(), _after_event(summary, row)]))


def _gain_sentence(summary: Summary, row: Comparison) -> str:
    of = claims(summary)
    gain, after = row[of.gain], of.after(row)
    and_after = "" if after is None else f", and {beside(after)} it after the mass event"
    return f"{_with_mean(summary, row)}, {beside(gain)} {summary.reference_arm}{and_after}."


# -- findings -----------------------------------------------------------------------------------------------


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
    if why := _not_compared(summary):
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
    among = " of those finished" if _of_those(summary) else ""
    stated = [
        _with_mean(summary, row, ", the arm with the largest gain," if is_chosen else ""),
        _over_reference(summary, row, among),
    ]
    seeds = f"{len(row.runs)} seed{'s' if len(row.runs) > 1 else ''}"
    until = as_time(summary.horizon.horizon_s)
    return f"{', '.join(filter(None, stated))} ({seeds}, up to {until} of virtual time)."


def _beside_others(summary: Summary, row: Comparison) -> str:
    """The gain of an arm over the best arm without clusters or, if that is stated already, after drift."""
    of = claims(summary)
    if summary.comparison.has_baselines and row[of.over_best] is None:
        return f"{row.arm} is {BEST}{_of_those(summary)}."
    if unknown := _unknown_gain(summary, row, f"The gain of {row.arm}"):
        return unknown
    if another := _over_another(summary, row):
        return f"{row.arm} is {another}."
    omission = of.best_without_clusters(summary).omission
    return f"{omission}." if omission else _after_event(summary, row)


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


def _by_arm(table: TargetTable, column: Quantity) -> dict[str, str]:
    """By arm, its cell of a column; of medians, those that are known with their intervals and levels."""
    found = {}
    for row, cell in zip(table.rows, column.cells(table.rows), strict=True):
        entry, found[row.arm] = row[column.key], cell.figure
        if isinstance(entry, MedianEstimate) and entry.median.status == "=":
            level = levels_as_text([entry.level])
            found[row.arm] = with_interval(cell).replace("]", f" at {level}]" if level else "]")
    return found


def _final(summary: Summary, arms: Sequence[str]) -> str:
    """The final accuracy of these arms, and the difference of the first from the second."""
    of, rows = claims(summary), {row.arm: row for row in summary.rows}
    finals = ", ".join(f"{arm} {as_percent(rows[arm][of.final])}" for arm in arms)
    gain = rows[arms[0]][of.final_gain]
    difference = "" if gain is None else f"; {_shown(gain)}"
    return f"{of.name.removeprefix('mean ').capitalize()} at the horizon: {finals}{difference}."


# -- clauses on an arm --------------------------------------------------------------------------------------


def as_percent(estimate: Estimate) -> str:
    """An accuracy without its interval."""
    return show_estimate(estimate, percent_scale(0.0)).figure


def _with_mean(summary: Summary, row: Comparison, which: str = "") -> str:
    """The arm and its mean accuracy; `which` says what arm it is, as is said of the reference arm."""
    of = claims(summary)
    which = ", the first arm," if row.is_reference else which
    return f"{row.arm}{which} has a {of.name} of {as_percent(row[of.mean])}"


def _over_reference(summary: Summary, row: Comparison, among: str) -> str:
    """The gain over the reference arm; empty for that arm.

    `among` follows where the reference arm is the best arm without clusters too (`_of_those`).
    """
    of = claims(summary)
    gain, best = row[of.gain], row[of.over_best]
    if gain is None:
        return ""
    if best is not None and best.mean is not None and best.over == summary.reference_arm:
        return beside_best(best, f"{best.over}, which is also {BEST}", among)
    return f"{beside(gain)} {summary.reference_arm}"


def _over_another(summary: Summary, row: Comparison) -> str:
    """The gain over the best arm without clusters, if that is another one than the reference arm."""
    best = row[claims(summary).over_best]
    if best is None or best.mean is None or best.over == summary.reference_arm:
        return ""
    return beside_best(best, f"{best.over}, {BEST}", _of_those(summary))


def _of_those(summary: Summary) -> str:
    """A clause on the arms without clusters that are not finished; empty without any."""
    omission = claims(summary).best_without_clusters(summary).omission
    return f" of those finished; {omission}" if omission else ""


def _unknown_gain(summary: Summary, row: Comparison, whose: str) -> str:
    """A sentence if there is a best arm without clusters, and the gain over it is not known."""
    of = claims(summary)
    best, omission = row[of.over_best], of.best_without_clusters(summary).omission
    if best is None or best.mean is not None:
        return ""
    return f"{whose} over {BEST} is not known{f': {omission}' if omission else ''}."


def _after_event(summary: Summary, row: Comparison) -> str:
    """A sentence on the gain after the mass event; empty if it is not known."""
    after = claims(summary).after(row)
    if after is None:
        return ""
    return f"After the mass event, {row.arm} is {beside(after)} {summary.reference_arm}."


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
