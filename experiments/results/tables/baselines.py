"""Gains over arms without clusters: over the best of the baselines, and over the same adaptation.

Nothing is measured unless some arm is a baseline; then each arm has

* `gain_over_best_pp`, its mean accuracy minus that of the best baseline, in percentage points. The best is
  the baseline with the highest mean accuracy, averaged over the seeds that all baselines have; of equal ones
  the first. It is chosen by the runs that it is compared with, which can only work against the other arms.
  None for the best itself.
* `gain_of_clusters_pp`, what its clusters add: its mean accuracy minus that of the one-model arm with the
  same adaptation and otherwise equal parts (`ConfiguredArm.beside_clusters`). Not measured unless there is
  exactly one such arm. None for one-model arms.
* `gap_closed`, (arm - best) / (oracle - best) seed by seed, where the oracle is the best of the arms with
  that clusterer, chosen in the same way. Not measured unless the 95 % interval of oracle - best lies above 0.
  None for these two arms, and without an oracle.

They are paired by seed, over the seeds that both arms have; `per_seed` is None for others. `over` is the name
of the other arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from experiments.results.statistics.comparisons import Compared, Comparison
from experiments.results.statistics.intervals import Estimate, NamedGain, gain_estimate, mean_estimate
from experiments.results.statistics.scales import percent_scale, points_scale
from experiments.results.tables.accuracy import joint_note, mean_accuracy, over_reference
from experiments.results.tables.cells import NOTHING, Cell
from experiments.results.tables.notes import at_their_own_levels
from experiments.results.tables.summary import Summary
from experiments.results.tables.table import Column, InTerminal, Place, Row, Table

BEST, ORACLE = "the best", "the oracle"

CLUSTERS = (
    "Clusters, same adaptation is what clusters add: the gain over the one-model arm with the same "
    "adaptation and otherwise equal parts; n/a without such an arm, or with several."
)


def best_without_clusters(compared: Compared) -> Comparison | None:
    """The baseline with the highest mean accuracy; None without baselines, or without a seed of them all."""
    return _highest(compared.baselines)


def best_oracle(compared: Compared) -> Comparison | None:
    """The oracle with the highest mean accuracy; None without oracles, or without a seed of them all."""
    return _highest(compared.whose(lambda configured: configured.is_oracle))


def gain_over_best(arm: Comparison, compared: Compared) -> NamedGain | None:
    """The gain over the best baseline; None for that arm, and without baselines."""
    best = compared.once(best_without_clusters)
    return None if arm is best or not compared.baselines else _gain(arm, best, compared)


def gain_of_clusters(arm: Comparison, compared: Compared) -> NamedGain | None:
    """The gain over the one-model arm beside it; None for one-model arms, and without baselines."""
    configured = arm.configured
    if configured is None or configured.has_one_model or not compared.baselines:
        return None
    key = configured.beside_clusters
    alike = compared.whose(lambda other: other.has_one_model and other.beside_clusters == key)
    return _gain(arm, alike[0] if len(alike) == 1 else None, compared)


def gap_closed(arm: Comparison, compared: Compared) -> Estimate | None:
    """The share of the gap between the best baseline and the oracle that the arm closes."""
    best, oracle = compared.once(best_without_clusters), compared.once(best_oracle)
    if best is None or oracle is None or arm in (best, oracle):
        return None
    shares: dict[int, float | None] = {}
    interval = _gain(oracle, best, compared).ci95
    if interval is not None and interval[0] > 0:
        below, above, values = _accuracies(best), _accuracies(oracle), _accuracies(arm)
        gaps = {seed: above[seed] - below[seed] for seed in below.keys() & above.keys()}
        shares = {
            seed: (values[seed] - below[seed]) / gaps[seed] if gaps[seed] else None
            for seed in values
            if seed in gaps
        }
    found = mean_estimate(list(shares.values()))
    return Estimate(found.mean, found.ci95, [shares.get(seed) for seed in arm.seed_ids])


def _highest(arms: Sequence[Comparison]) -> Comparison | None:
    """The arm with the highest mean accuracy, on the seeds that all of them have; of equal ones the first."""
    accuracies = [_accuracies(arm) for arm in arms]
    shared = sorted(set.intersection(*map(set, accuracies))) if accuracies else []
    if not shared:
        return None
    return arms[int(np.argmax([np.mean([values[seed] for seed in shared]) for values in accuracies]))]


def _accuracies(arm: Comparison) -> dict[int, float]:
    """The mean accuracy of each seed that has one."""
    found = {run.seed: mean_accuracy(run) for run in arm.measured}
    return {seed: value for seed, value in found.items() if value is not None}


def _gain(arm: Comparison, other: Comparison | None, compared: Compared) -> NamedGain:
    """The gain of an arm over another one, which may be missing, on the seeds that both have."""
    ours, theirs = _accuracies(arm), {} if other is None else _accuracies(other)
    seeds = [seed for seed in arm.seed_ids if seed in ours and seed in theirs]
    found = gain_estimate(
        [ours[seed] for seed in seeds],
        [theirs[seed] for seed in seeds],
        scale=100.0,
        comparisons=compared.num_gains,
    )
    per_seed = dict(zip(seeds, found.per_seed, strict=True))
    return NamedGain(
        found.mean,
        found.ci95,
        [per_seed.get(seed) for seed in arm.seed_ids],
        found.ci95_joint,
        None if other is None else other.arm,
    )


@dataclass(frozen=True)
class BesideColumn(Column):
    """A column of comparisons with arms that their cells name.

    `itself` has, by arm, the text for those that are not compared, since the others are compared with them.
    """

    itself: Mapping[str, str] = field(default_factory=dict)

    def cells(self, rows: Sequence[Row]) -> list[Cell]:
        return [
            Cell(self.itself.get(row.arm, NOTHING)) if row[self.key] is None else _named(cell, row[self.key])
            for row, cell in zip(rows, super().cells(rows), strict=True)
        ]


def _named(cell: Cell, estimate: Estimate) -> Cell:
    """The cell of an estimate, with the name of the arm that it is over."""
    if not isinstance(estimate, NamedGain) or estimate.over is None:
        return cell
    return replace(cell, note=f"over {estimate.over}")


def _columns(summary: Summary) -> list[Column]:
    compared = summary.comparison
    best, oracle = compared.once(best_without_clusters), compared.once(best_oracle)
    of_best = {} if best is None else {best.arm: BEST}
    columns: list[Column] = [
        Column("gain_pp", over_reference(summary), points_scale),
        BesideColumn("gain_over_best_pp", "over the best without clusters", points_scale, itself=of_best),
        BesideColumn("gain_of_clusters_pp", "clusters, same adaptation", points_scale),
    ]
    if oracle is not None:
        itself = {**of_best, oracle.arm: ORACLE}
        columns.append(BesideColumn("gap_closed", "gap closed", percent_scale, itself=itself))
    return columns


def _note(summary: Summary) -> str:
    compared = summary.comparison
    best, oracle = compared.once(best_without_clusters), compared.once(best_oracle)
    estimates = [row[key] for row in summary.rows for key in TABLE.quantities if row[key] is not None]
    baselines = ", ".join(arm.arm for arm in compared.baselines)
    chosen = (
        f"The best without clusters is {best.arm}, of {baselines}: it has the highest mean accuracy over "
        f"seeds, a choice that can only work against the other arms. "
        if best is not None
        else "No seed is finished in all baselines, so that none is the best. "
    )
    gap = (
        f" Gap closed is (arm - {best.arm}) / ({oracle.arm} - {best.arm}), seed by seed; n/a unless the "
        f"interval of {oracle.arm} - {best.arm} lies above 0."
        if best is not None and oracle is not None
        else ""
    )
    return f"{chosen}{at_their_own_levels(item.ci95 for item in estimates)}{CLUSTERS}{gap}"


TABLE = Table(
    title="Gains over arms without clusters",
    place=Place("pays"),
    quantities={
        "gain_over_best_pp": gain_over_best,
        "gain_of_clusters_pp": gain_of_clusters,
        "gap_closed": gap_closed,
    },
    columns_for=_columns,
    says_something=lambda summary: bool(summary.comparison.baselines),
    note=_note,
    notes_on_page=lambda summary: joint_note(
        summary, "gain_over_best_pp", "gains over the best without clusters"
    ),
    in_terminal=InTerminal("gains over arms without clusters", in_notebook=True),
)
