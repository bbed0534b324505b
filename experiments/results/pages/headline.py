"""The report's headline: the results in sentences, which call a gain measurable only if its interval does.

A gain whose interval contains 0 is neither above nor below, or as good if it lies within a percentage point
of 0; one without an interval is stated as such, with the range of its seeds where a trigger is why. An arm is
above the best of several baselines only if it is shown to be above each of them (`NamedGain.not_above`). The
sentence on drift names the arm with the highest mean, whatever the spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.intervals import FEWEST_SEEDS, Gain, NamedGain
from experiments.results.statistics.published import beside_published
from experiments.results.statistics.scales import percent_scale, points_scale
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.whole_runs import Finished
from experiments.results.tables.cells import show_estimate
from experiments.results.tables.claims import Claims, claims
from experiments.results.tables.published_cells import mean_and_std, scored_steps

OMITTING = "accuracy_omitting_drift"
BEST = "the best arm without clusters"
AS_GOOD_PP = 1.0
"""How far from 0 an interval may reach, in percentage points, where two arms are said to be as good."""

OTHER_DATA = (
    "By the horizon, arms have reached different data, so that gains are not due to the methods alone."
)


def drift_sentence(finished: Finished, reference_arm: str, report: Mapping[str, Any]) -> str | None:
    """A sentence on the arm with the highest accuracy omitting drift, beside the reference arm.

    Their published accuracies are added. `finished` is that of the summary, `report` the table `[report]` of
    the configuration. None if no arm has such an accuracy.
    """
    arms = finished.arms
    cells = {
        name: beside_published(arm[OMITTING].per_seed, OMITTING, name, report) for name, arm in arms.items()
    }
    written = {name: _beside_published(cell) for name, cell in cells.items() if cell is not None}
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
    them if the arms have reached different data. If there is no other arm, or no time in which all runs can
    be compared, a single sentence states that.
    """
    reference, *rows = summary.rows
    of = claims(summary)
    if not rows:
        final = show_estimate(reference[of.final], percent_scale(0.0)).figure
        return [f"{reference.arm} ends at {final}; no other arm has finished a seed to compare with it."]
    if any(row[of.gain] is None or row[of.gain].mean is None for row in rows):
        return ["The runs have no stretch of virtual time in common: nothing can be compared."]
    ordered = sorted(rows, key=lambda row: gain_of(row, of), reverse=True)
    gains = [_gain_sentence(row, reference.arm, of) for row in ordered if row.arm != summary.headline]
    first = [] if summary.headline is None else _on_one_arm(summary)
    if not summary.horizon.is_of_different_data:
        return [*first, *gains]
    return [" ".join([OTHER_DATA, *first[:1]]), *first[1:], *gains]


def _on_one_arm(summary: Summary) -> list[str]:
    """The sentences on the arm of the headline, with its gains over the reference arm and best baseline."""
    name, reference_arm = summary.headline, summary.reference_arm
    row = next((row for row in summary.rows if row.arm == name), None)
    if row is None:
        return [f"{name}, the arm of the headline, has finished no seed on which it can be compared."]
    of = claims(summary)
    gain, best, after = row[of.gain], row[of.over_best], of.after(row)
    is_known = best is not None and best.mean is not None
    chosen = of.best_without_clusters(summary)
    of_those = f" of those finished; {chosen.omission}" if chosen.unfinished else ""
    clauses = [] if gain is None else [f"{beside(gain)} {reference_arm}"]
    if is_known and best.over == reference_arm:
        clauses = [beside_best(best, f"{best.over}, which is also {BEST}", of_those)]
    elif is_known:
        clauses.append(beside_best(best, f"{best.over}, {BEST}", of_those))
    first = ", the first arm," if gain is None else ""
    mean = show_estimate(row[of.mean], percent_scale(0.0)).figure
    text = f"{name}{first} has a {of.name} of {mean}{', ' if clauses else ''}{' and '.join(clauses)}."
    if best is not None and not is_known:
        text += f" Its gain over {BEST} is not known{f': {chosen.omission}' if chosen.unfinished else ''}."
    if after is None:
        return [text]
    return [text, f"After the mass event, {name} is {beside(after)} {reference_arm}."]


def gain_of(row: Comparison, of: Claims) -> float:
    """The gain of an arm over the reference arm, which must be known."""
    mean: float = row[of.gain].mean
    return mean


def _gain_sentence(row: Comparison, reference_arm: str, of: Claims) -> str:
    mean = show_estimate(row[of.mean], percent_scale(0.0)).figure
    sentence = f"{row.arm} has a {of.name} of {mean}, {beside(row[of.gain])} {reference_arm}"
    after = of.after(row)
    return (
        f"{sentence}, and {beside(after)} it after the mass event." if after is not None else f"{sentence}."
    )


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
    values = [value for value in gain.per_seed if value is not None]
    if len(values) < FEWEST_SEEDS:
        return f"{abs(mean):.1f} pp (no interval: under three seeds) {_direction(mean)}"
    scale = points_scale(0.0)
    by_seed = f"{scale.bare(min(values))} to {scale.bare(max(values))} by seed"
    on_average = "on average " if min(values) < 0 < max(values) else ""
    return f"{on_average}{abs(mean):.1f} pp ({by_seed}) {_direction(mean)}"


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
    one, and `of_those` says among which it was chosen, if not among all.
    """
    if gain.ci95 is not None and gain.ci95[0] > 0 and gain.not_above:
        but = f"but not measurably above {', '.join(gain.not_above)}"
        return f"not measurably above {BEST} ({_shown(gain)} over {gain.over}, {but}){of_those}"
    is_measurable = gain.ci95_joint is None or gain.ci95_joint[1] < 0 or (gain.ci95 or (0.0, 0.0))[0] > 0
    is_stated = is_measurable or _is_as_good(gain)
    stated = beside(gain) if is_stated else f"not measurably above ({_shown(gain)})"
    return f"{stated} {best}{of_those}"


def _shown(gain: Gain) -> str:
    """The mean with its interval, such as "+0.3 pp [-0.1, +0.7]"."""
    shown = show_estimate(gain, points_scale(0.0))
    return f"{shown.figure} {shown.interval}"
