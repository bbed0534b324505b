"""The report's headline: the results in sentences, which call a gain measurable only if its interval does.

A gain whose interval contains 0 is neither above nor below, or as good if it lies within a percentage point
of 0; one without an interval is stated as such, with the range of its seeds where a trigger is why. An arm is
above the best of several baselines only if it is shown to be above each of them (`GainOverBest`). The
sentence on drift names the arm with the highest mean, whatever the spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.intervals import Estimate, Gain, GainOverBest
from experiments.results.statistics.published import beside_published
from experiments.results.statistics.scales import percent_scale, points_scale
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.whole_runs import Finished
from experiments.results.tables.cells import gain_in_short, show_estimate
from experiments.results.tables.claims import claims
from experiments.results.tables.published_cells import mean_and_std, scored_steps

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
    first = ", the first arm," if best == reference_arm else ""
    reference = ""
    if reference_arm != best and reference_arm in written:
        reference = f"; {reference_arm}, the first arm, has {written[reference_arm]}"
    steps = scored_steps(finished.steps, finished.scored_steps)
    return (
        f"{best}{first} has the highest accuracy omitting drift, {written[best]}{reference}."
        f"{f' {steps} were scored.' if steps else ''}"
    )


def _beside_published(cell: Mapping[str, Any]) -> str:
    published = f" (published: {mean_and_std(cell['published'])} %)" if cell["published"] else ""
    return f"{mean_and_std(cell)} %{published}"


def sentences(summary: Summary) -> list[str]:
    """A sentence for each arm but the reference arm, which must be the first, by descending gain.

    If the headline is on one arm, that arm comes first, with its gain over the best arm without clusters too;
    its gain after drift, which is over the reference arm alone, is a sentence of its own. A warning precedes
    them if the arms have reached different data. If no arm is compared, a single sentence states why.
    """
    if why := not_compared(summary):
        return [why]
    gain = claims(summary).gain
    ordered = sorted(summary.rows[1:], key=lambda row: row[gain].mean, reverse=True)
    gains = [_gain_sentence(summary, row) for row in ordered if row.arm != summary.headline]
    first = [] if summary.headline is None else _on_one_arm(summary)
    if not summary.horizon.is_of_different_data:
        return [*first, *gains]
    return [" ".join([OTHER_DATA, *first[:1]]), *first[1:], *gains]


def not_compared(summary: Summary) -> str:
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
    clauses = [over_reference(summary, row, of_those(summary)), over_another(summary, row)]
    stated = ", ".join(filter(None, [with_mean(summary, row), " and ".join(filter(None, clauses))]))
    unknown = unknown_gain(summary, row, "Its gain")
    return list(filter(None, [f"{stated}. {unknown}".rstrip(), after_event(summary, row)]))


def _gain_sentence(summary: Summary, row: Comparison) -> str:
    of = claims(summary)
    gain, after = row[of.gain], of.after(row)
    and_after = "" if after is None else f", and {beside(after)} it after the mass event"
    return f"{with_mean(summary, row)}, {beside(gain)} {summary.reference_arm}{and_after}."


# -- clauses on an arm --------------------------------------------------------------------------------------


def as_percent(estimate: Estimate) -> str:
    """An accuracy without its interval."""
    return show_estimate(estimate, percent_scale(0.0)).figure


def with_mean(summary: Summary, row: Comparison, which: str = "") -> str:
    """The arm and its mean accuracy; `which` says what arm it is, as is said of the reference arm."""
    of = claims(summary)
    which = ", the first arm," if row.is_reference else which
    return f"{row.arm}{which} has a {of.name} of {as_percent(row[of.mean])}"


def over_reference(summary: Summary, row: Comparison, among: str) -> str:
    """The gain over the reference arm; empty for that arm.

    `among` follows where the reference arm is the best arm without clusters too (`of_those`).
    """
    of = claims(summary)
    gain, best = row[of.gain], row[of.over_best]
    if gain is None:
        return ""
    if best is not None and best.mean is not None and best.over == summary.reference_arm:
        return beside_best(best, f"{best.over}, which is also {BEST}", among)
    return f"{beside(gain)} {summary.reference_arm}"


def over_another(summary: Summary, row: Comparison) -> str:
    """The gain over the best arm without clusters, if that is another one than the reference arm."""
    best = row[claims(summary).over_best]
    if best is None or best.mean is None or best.over == summary.reference_arm:
        return ""
    return beside_best(best, f"{best.over}, {BEST}", of_those(summary))


def of_those(summary: Summary) -> str:
    """A clause on the arms without clusters that are not finished; empty without any."""
    omission = claims(summary).best_without_clusters(summary).omission
    return f" of those finished; {omission}" if omission else ""


def unknown_gain(summary: Summary, row: Comparison, whose: str) -> str:
    """A sentence if there is a best arm without clusters, and the gain over it is not known."""
    of = claims(summary)
    best, omission = row[of.over_best], of.best_without_clusters(summary).omission
    if best is None or best.mean is not None:
        return ""
    return f"{whose} over {BEST} is not known{f': {omission}' if omission else ''}."


def after_event(summary: Summary, row: Comparison) -> str:
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


def beside_best(gain: GainOverBest, best: str, of_those: str) -> str:
    """The same of a gain over the best of several baselines, whose choice its interval does not account for.

    It is "above" only if the arm is shown to be above each of the baselines, and "below" only if the interval
    that holds for all arms at once, of which there are more than baselines, is below 0. `best` names the best
    one, and `of_those` says among which it was chosen, if not among all.
    """
    if is_above_the_best_alone(gain):
        but = f"but not measurably above {', '.join(gain.not_above)}"
        return f"not measurably above {BEST} ({_shown(gain)} over {gain.over}, {but}){of_those}"
    is_measurable = gain.ci95_joint is None or gain.ci95_joint[1] < 0 or (gain.ci95 or (0.0, 0.0))[0] > 0
    is_stated = is_measurable or _is_as_good(gain)
    stated = beside(gain) if is_stated else f"not measurably above ({_shown(gain)})"
    return f"{stated} {best}{of_those}"


def is_above_the_best_alone(gain: GainOverBest) -> bool:
    """Whether a gain over the best of several baselines is measurable, and that over another one is not."""
    return gain.ci95 is not None and gain.ci95[0] > 0 and bool(gain.not_above)


def _shown(gain: Gain) -> str:
    """The mean with its interval, such as "+0.3 pp [-0.1, +0.7]"."""
    shown = show_estimate(gain, points_scale(0.0))
    return f"{shown.figure} {shown.interval}"
