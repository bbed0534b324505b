"""Every seed: the table per arm and seed, and the same as CSV inside the page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup

from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.targets import TargetTable
from experiments.results.tables.report import Report
from experiments.results.tables.table import OnPage, Place, Table
from experiments.results.tables.targets import target_name

ACCURACIES = ("mean_accuracy", "gain_pp", "gain_after_drift_pp", "final_accuracy")
WITH_BASELINES = ("gain_over_best_pp", "gain_of_clusters_pp", "gap_closed")
PERSONAL = ("mean_personal_accuracy", "personal_gain_pp", "final_personal_accuracy", "memory_age")
PERSONAL_WITH_BASELINES = ("personal_gain_over_best_pp", "personal_gain_of_clusters_pp")
COSTS = (
    *("rounds", "global_reclusterings", "clusters", "moves", "dropouts", "abandoned", "crashed_visits"),
    *("download_bytes", "upload_bytes", "control_bytes", "models_sent", "waiting_for_responses_s"),
    *("trained_samples_per_client", "mean_client_distance", "virtual_time_s", "wall_s"),
)
"""The quantities that have a column, `WITH_BASELINES` where an arm is a baseline, and those on what clients
use where some arm has a personal accuracy."""

MOST_OPEN_ROWS = 20
"""Most rows of the table that is not folded up."""

Value = str | int | float | None


@dataclass(frozen=True)
class SeedTable:
    """A row for each arm and seed; numbers are unrounded, and None stands for what was not measured.

    Names of columns end in the unit. Accuracies are shares in [0, 1]; which arms `WITH_BASELINES` are over is
    in the table of baselines. `time_below` and `held_from` are of a target, the n-th of the page; the latter
    has a lower and an upper bound, without an upper one if the target was not held by the horizon, and is
    counted from the mass event where the table of targets is.
    """

    columns: list[str]
    rows: list[list[Value]]

    @property
    def is_open(self) -> bool:
        """Whether the table is short enough to be shown without being unfolded."""
        return len(self.rows) <= MOST_OPEN_ROWS

    def shown(self) -> list[list[str]]:
        """The cells as text, with at most six significant digits; "-" where nothing was measured."""
        return [[_shown(value) for value in row] for row in self.rows]

    def as_csv(self) -> str:
        """The table as CSV, with the shortest digits that give the same numbers; None is an empty field."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()

    def data_url(self) -> str:
        """The CSV as the target of a link, for which no file or host is needed."""
        return f"data:text/csv;charset=utf-8,{quote(self.as_csv())}"


def per_seed_table(summary: Summary) -> SeedTable:
    """The table of the arms that are compared, in their order, and of their seeds."""
    accuracies = [*ACCURACIES, *(WITH_BASELINES if summary.comparison.has_baselines else ())]
    if summary.comparison.has_personal:
        accuracies += PERSONAL
        accuracies += PERSONAL_WITH_BASELINES if summary.comparison.has_baselines else ()
    targets = [
        f"{figure}_target_{number}{unit}"
        for number, _ in enumerate(summary.targets, 1)
        for figure, unit in (
            ("accuracy", ""),
            ("time_below", "_s"),
            ("held_from", "_at_least_s"),
            ("held_from", "_at_most_s"),
        )
    ]
    rows = [
        [
            arm.arm,
            seed,
            *(_of(row[key], index) for key in accuracies),
            *(value for table in summary.targets for value in _of_target(summary, table, position, index)),
            *(_of(row[key], index) for key in COSTS),
        ]
        for position, (arm, row) in enumerate(zip(summary.rows, summary.rows, strict=True))
        for index, seed in enumerate(arm.seed_ids)
    ]
    return SeedTable(["arm", "seed", *accuracies, *targets, *COSTS], rows)


def _of_target(summary: Summary, table: TargetTable, position: int, index: int) -> list[Value]:
    """The values of a target for the seed at `index` of the arm at `position`."""
    row, seed = table.rows[position], summary.rows[position].seed_ids[index]
    held = row["held_from_s"].per_seed[index]
    return [
        _goal(table.accuracy.per_seed, summary.rows[0].seed_ids, seed),
        _finite(row["time_below_s"].per_seed[index].low),
        _finite(held.low),
        _finite(held.high),
    ]


def _of(figure: Estimate | None, index: int) -> Value:
    return None if figure is None else figure.per_seed[index]


def _goal(goals: Sequence[float | None], seeds: Sequence[int], seed: int) -> Value:
    """The accuracy that the target stands for in that seed; `goals` are in the order of `seeds`."""
    return goals[seeds.index(seed)] if seed in seeds and len(goals) == len(seeds) else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e6 or value == round(value) else f"{value:.6g}"
    return str(value)


def _on_page(report: Report) -> OnPage:
    summary = report.summary
    targets = ", ".join(
        f"target {number} is {target_name(target, summary.reference_arm)}"
        for number, target in enumerate(summary.targets, 1)
    )
    counted = any(target.counts_from_event for target in summary.targets)
    table = per_seed_table(summary)
    content = {
        "columns": table.columns,
        "rows": table.shown(),
        "is_open": table.is_open,
        "url": Markup(table.data_url()),  # percent-encoded
        "file": f"{summary.name}-seeds.csv",
        "targets": f"{targets}; held_from counts from the mass event" if counted else targets,
    }
    return OnPage(template="seed_table.html", content=content)


TABLE = Table(title="Every seed", place=Place("repeat"), on_page=_on_page)
