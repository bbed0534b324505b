"""Gains over arms without clusters: over the best of the baselines, and over the same adaptation.

Nothing is measured unless some arm is a baseline; then each arm has

* `gain_over_best_pp`, its mean accuracy minus that of the best baseline, in percentage points. The best is
  the baseline with the highest mean accuracy, averaged over the seeds that all baselines have; of equal ones
  the first. A baseline without a seed is left out, and named beside the choice. The choice can only lower
  the mean of these gains; their intervals do not account for it, so that `not_above` has the baselines that
  the arm is not shown to be above. None for the best itself.
* `gain_of_clusters_pp`, what its clusters add: its mean accuracy minus that of the one-model arm with the
  same adaptation and otherwise equal parts (`ConfiguredArm.beside_clusters`). Not measured unless exactly one
  such arm is configured, and has a seed. None for one-model arms.
* `gap_closed`, (arm - best) / (oracle - best) seed by seed, where the oracle is the best of the arms with
  that clusterer, chosen in the same way. Not measured unless oracle - best is above 0 in every seed and in
  its whole 95 % interval: a ratio to a gap near 0 has no mean. None for baselines, for that oracle, and
  without an oracle.

They are paired by seed, over the seeds that both arms have; `per_seed` is None for others. As in all tables,
only seeds that the reference arm has finished count, so that all figures of a seed can be compared. `over` is
the name of the other arm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.results.reading.configured_arms import ConfiguredArm
from experiments.results.statistics.comparisons import Compared, Comparison
from experiments.results.statistics.intervals import (
    FEWEST_SEEDS,
    Estimate,
    Interval,
    NamedGain,
    gain_estimate,
    mean_estimate,
)
from experiments.results.statistics.scales import percent_scale
from experiments.results.statistics.summary import Summary
from experiments.results.tables.accuracy import SERVED, joint_note
from experiments.results.tables.cells import NOTHING, Cell
from experiments.results.tables.costs import TRAINED, TRAINED_SAMPLES
from experiments.results.tables.notes import at_their_own_levels
from experiments.results.tables.quantities import POINTS, Quantity
from experiments.results.tables.table import InTerminal, Place, Table

BEST, ORACLE = "the best", "the oracle"
OVER_THE_BEST, SAME_ADAPTATION = "over the best without clusters", "clusters, same adaptation"
NO_BASELINE = "without baselines"
ONE_MODEL = "for arms with one model, unless exactly one such arm is there"

CHOICE = (
    "The choice can only lower gains over the best on average, but their intervals do not account for it: an "
    "arm is measurably above the best only if the intervals of its gains over all baselines are above 0. If "
    "that over the best is and others are not, the cell names these."
)

CLUSTERS = (
    "Clusters, same adaptation is what clusters add: the gain over the one-model arm with the same "
    "adaptation and otherwise equal parts; n/a without such an arm, or with several, and while the one that "
    "the cell names has finished no seed in common."
)


@dataclass(frozen=True)
class Choice:
    """The arm with the highest mean accuracy of several, and by what it was chosen.

    Attributes:
        arm: The arm; None if no seed has a mean accuracy in all of `finished`.
        finished: The names of the arms among which it was chosen.
        unfinished: The names of those that are missing, since they share no seed with the reference arm.
        left_out: The names of those that are missing since they were not asked for.
        seeds: The seeds by which it was chosen: those that all of `finished` have, ascending.
        by: The name of the accuracy.
    """

    arm: Comparison | None
    finished: Sequence[str]
    unfinished: Sequence[str]
    left_out: Sequence[str]
    seeds: Sequence[int]
    by: str

    @property
    def name(self) -> str | None:
        """The name of the arm."""
        return None if self.arm is None else self.arm.arm

    @property
    def criterion(self) -> str:
        """What it has that the others have not; with few seeds, that it was chosen by these alone."""
        count = len(self.seeds)
        only = "only " if count < FEWEST_SEEDS else "the "
        seeds = f"over {only}{count} seeds" if count > 1 else "in the only seed"
        return f"the highest {self.by} of {', '.join(self.finished)} {seeds} that all of them have"

    @property
    def omission(self) -> str:
        """Clauses on the arms that are missing; empty without."""
        return why_missing(self.unfinished, self.left_out)


def why_missing(unfinished: Sequence[str], left_out: Sequence[str]) -> str:
    """Clauses on arms that share no seed with the first arm, and on those that were not asked for.

    >>> why_missing(["prior"], ["tuned", "alone"])
    'prior has finished no seed in common with the first arm; tuned, alone were not asked for'
    """
    clauses = []
    if unfinished:
        have = "has" if len(unfinished) == 1 else "have"
        clauses.append(f"{', '.join(unfinished)} {have} finished no seed in common with the first arm")
    if left_out:
        clauses.append(f"{', '.join(left_out)} {'was' if len(left_out) == 1 else 'were'} not asked for")
    return "; ".join(clauses)


@dataclass(frozen=True)
class Beside:
    """What arms gain over arms without clusters in one of their accuracies, which is averaged over time.

    `mean` is the quantity that is measured before, `name` what it is called.
    """

    mean: str
    name: str

    def best(self, compared: Compared) -> Choice:
        """The choice of the baseline with the highest mean accuracy."""
        return self._highest(lambda configured: configured.is_baseline, compared)

    def oracle(self, compared: Compared) -> Choice:
        """The choice of the oracle with the highest mean accuracy."""
        return self._highest(lambda configured: configured.is_oracle, compared)

    def gain_over_best(self, arm: Comparison, compared: Compared) -> NamedGain | None:
        """The gain over the best baseline; None for that arm, and without baselines."""
        best = self.best(compared)
        if arm is best.arm or not compared.has_baselines:
            return None
        gain = arm.stated(self._gain(arm, best.name, compared))
        others = [name for name in best.finished if name != arm.arm]
        gains = {name: arm.stated(self._gain(arm, name, compared)) for name in others}
        not_above = [name for name in others if not _is_above_0(gains[name].ci95)]
        return replace(gain, not_above=tuple(not_above))

    def gain_of_clusters(self, arm: Comparison, compared: Compared) -> NamedGain | None:
        """The gain over the one-model arm beside it; None for one-model arms, and without baselines."""
        configured = arm.configured
        if configured is None or configured.has_one_model or not compared.has_baselines:
            return None
        key = configured.beside_clusters
        alike = compared.names_whose(lambda other: other.has_one_model and other.beside_clusters == key)
        return self._gain(arm, alike[0] if len(alike) == 1 else None, compared)

    def gap_closed(self, arm: Comparison, compared: Compared) -> Estimate | None:
        """The share of the gap between the best baseline and the oracle that the arm closes."""
        chosen = self.best(compared)
        best, oracle = chosen.arm, self.oracle(compared).arm
        if best is None or oracle is None or arm is oracle or arm.arm in chosen.finished:
            return None
        shares: dict[int, float] = {}
        below, above, values = self._accuracies(best), self._accuracies(oracle), self._accuracies(arm)
        gaps = {seed: above[seed] - below[seed] for seed in below.keys() & above.keys()}
        if _is_above_0(self._gain(oracle, best.arm, compared).ci95) and min(gaps.values()) > 0:
            shares = {seed: (values[seed] - below[seed]) / gaps[seed] for seed in values if seed in gaps}
        found = mean_estimate(list(shares.values()))
        return Estimate(found.mean, found.ci95, [shares.get(seed) for seed in arm.seed_ids])

    def _highest(self, is_one: Callable[[ConfiguredArm], bool], compared: Compared) -> Choice:
        """The arm with the highest mean, on the seeds that all of them have; of equal ones the first."""
        names = compared.names_whose(is_one)
        arms = [arm for arm in map(compared.find, names) if arm is not None]
        finished = [arm.arm for arm in arms]
        accuracies = [self._accuracies(arm) for arm in arms]
        shared = sorted(set.intersection(*map(set, accuracies))) if accuracies else []
        means = [np.mean([values[seed] for seed in shared]) for values in accuracies] if shared else []
        return Choice(
            arms[int(np.argmax(means))] if means else None,
            finished,
            [name for name in names if name not in (*finished, *compared.left_out)],
            [name for name in names if name in compared.left_out],
            shared,
            self.name,
        )

    def _accuracies(self, arm: Comparison) -> dict[int, float]:
        """The mean accuracy of each seed that has one."""
        found = zip(arm.seed_ids, arm[self.mean].per_seed, strict=True)
        return {seed: value for seed, value in found if value is not None}

    def _gain(self, arm: Comparison, over: str | None, compared: Compared) -> NamedGain:
        """The gain over the arm of that name, on the seeds that both have, if there are any."""
        other = compared.find(over)
        ours, theirs = self._accuracies(arm), {} if other is None else self._accuracies(other)
        seeds = [seed for seed in arm.seed_ids if seed in ours and seed in theirs]
        pairs = [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]
        found = gain_estimate(*pairs, scale=100.0, comparisons=compared.num_gains)
        per_seed = dict(zip(seeds, found.per_seed, strict=True))
        of_all = [per_seed.get(seed) for seed in arm.seed_ids]
        return NamedGain(found.mean, found.ci95, of_all, found.ci95_joint, over)


IN_ACCURACY = Beside("mean_accuracy", "mean accuracy")


def _is_above_0(interval: Interval | None) -> bool:
    return interval is not None and interval[0] > 0


def _show_beside(itself: Mapping[str, str]) -> Callable[[Quantity, Sequence[Comparison]], list[Cell]]:
    """Shows comparisons with arms, which the cells name.

    `itself` has, by arm, the text for those that are not compared, since the others are compared with them.
    """

    def show(of: Quantity, rows: Sequence[Comparison]) -> list[Cell]:
        figures = [row[of.key] for row in rows]
        cells = zip(rows, figures, of.estimates(figures), strict=True)
        return [
            Cell(itself.get(row.arm, NOTHING)) if figure is None else _named(cell, figure)
            for row, figure, cell in cells
        ]

    return show


def _named(cell: Cell, estimate: Estimate) -> Cell:
    """The cell of an estimate, with the arm that it is over, and those that it is not shown to be above."""
    if not isinstance(estimate, NamedGain) or estimate.over is None:
        return cell
    note = f"over {estimate.over}"
    if estimate.not_above and _is_above_0(estimate.ci95):
        note += ",\nnot measurably\n" + ",\n".join(f"above {name}" for name in estimate.not_above)
    return replace(cell, note=note)


def beside_columns(
    summary: Summary, beside: Beside, over_best: Quantity, of_clusters: Quantity
) -> list[Quantity]:
    """The columns of gains over arms without clusters."""
    best = beside.best(summary.comparison).name
    return [
        replace(over_best, show=_show_beside({} if best is None else {best: BEST})),
        replace(of_clusters, show=_show_beside({})),
    ]


def _columns(summary: Summary) -> list[Quantity]:
    oracle = IN_ACCURACY.oracle(summary.comparison).name
    columns = beside_columns(summary, IN_ACCURACY, OVER_BEST, OF_CLUSTERS)
    if oracle is not None:
        columns.append(replace(GAP_CLOSED, show=_show_beside({oracle: ORACLE})))
    return [*columns, TRAINED]


def _note(summary: Summary) -> str:
    compared = summary.comparison
    best, oracle = IN_ACCURACY.best(compared), IN_ACCURACY.oracle(compared)
    figures = [row[of.key] for row in summary.rows for of in TABLE.quantities]
    count = at_their_own_levels(found.ci95 for found in figures if found is not None)
    served = SERVED.strip() if compared.has_personal else ""
    texts = [on_the_best(best), count.rstrip(), CLUSTERS, _on_the_gap(best, oracle), TRAINED_SAMPLES, served]
    return " ".join(filter(None, texts))


def on_the_best(best: Choice) -> str:
    """Which baseline is the best and why, and which ones are left out."""
    if best.name is None:
        finished = ", ".join(best.finished)
        reason = f"no seed is finished in all of {finished}" if finished else best.omission
        return f"Which arm is the best without clusters is not known: {reason}."
    of_those = " of those finished" if best.omission else ""
    found = f"The best without clusters{of_those} is {best.name}"
    if len(best.finished) > 1:
        found += f", with {best.criterion}"
    elif not best.omission:
        found += ", the only baseline"
    found += f"; {best.omission}." if best.omission else "."
    return f"{found} {CHOICE}" if len(best.finished) > 1 else found


def _on_the_gap(best: Choice, oracle: Choice) -> str:
    """How the gap closed is computed, between which arms; empty without them."""
    if best.name is None or oracle.name is None:
        return ""
    several = f" {oracle.name} has {oracle.criterion}." if len(oracle.finished) > 1 else ""
    missing = f" Of the oracles, {oracle.omission}." if oracle.omission else ""
    return (
        f"Gap closed is (arm - {best.name}) / ({oracle.name} - {best.name}), seed by seed; n/a unless "
        f"{oracle.name} - {best.name} is above 0 in every seed and in its whole interval.{several}{missing}"
    )


OVER_BEST = Quantity("gain_over_best_pp", IN_ACCURACY.gain_over_best, POINTS, OVER_THE_BEST).means(
    "mean accuracy minus that of the best baseline, the arm without clusters that `over` names",
    f"for the best baseline, and {NO_BASELINE}",
)
OF_CLUSTERS = Quantity("gain_of_clusters_pp", IN_ACCURACY.gain_of_clusters, POINTS, SAME_ADAPTATION).means(
    "mean accuracy minus that of the arm with one model and otherwise the same parts",
    f"{ONE_MODEL}, and {NO_BASELINE}",
)
OF_THE_GAP = "share; 1 is the oracle's accuracy"
GAP_CLOSED = Quantity("gap_closed", IN_ACCURACY.gap_closed, OF_THE_GAP, "gap closed", percent_scale).means(
    "share of the gap between the best baseline and the oracle that the arm closes",
    f"for baselines and that oracle, without an oracle, {NO_BASELINE}, and unless the gap is above 0",
)

TABLE = Table(
    title="Gains over arms without clusters",
    place=Place("pays"),
    quantities=(OVER_BEST, OF_CLUSTERS, GAP_CLOSED),
    columns_for=_columns,
    says_something=lambda summary: summary.comparison.has_baselines,
    note=_note,
    notes_on_page=lambda summary: joint_note(
        summary, "gain_over_best_pp", "gains in mean accuracy over the best without clusters"
    ),
    in_terminal=InTerminal("gains over arms without clusters", in_notebook=True),
)
