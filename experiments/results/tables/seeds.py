"""Every seed: the table per arm and seed, and the same as CSV inside the page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from experiments.results.statistics.comparisons import Comparison
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
    *("trained_samples_per_client", "without_visits", "busiest_tenth", "effective_participants"),
    *("mean_client_distance", "virtual_time_s", "wall_s"),
)
"""The quantities that have a column, `WITH_BASELINES` where an arm is a baseline, and those on what clients
use where some arm has a personal accuracy."""

MOST_OPEN_ROWS = 20
"""Most rows of the table that is not folded up."""

Value = str | int | float | None


def seed_columns(summary: Summary) -> dict[str, list[Value]]:
    """By name, the columns of a table with a row for each compared arm and each of its seeds, in their order.

    Numbers are unrounded, and None stands for what was not measured. Names of columns end in the unit.
    Accuracies are shares in [0, 1]; which arms `WITH_BASELINES` are over is in the table of baselines.
    `time_below` and `held_from` are of a target, the n-th of the page; the latter has a lower and an upper
    bound, without an upper one if the target was not held by the horizon, and is counted from the mass event
    where the table of targets is.
    """
    rows, compared = summary.rows, summary.comparison
    baselines = WITH_BASELINES if compared.has_baselines else ()
    personal: tuple[str, ...] = PERSONAL if compared.has_personal else ()
    if compared.has_personal and compared.has_baselines:
        personal += PERSONAL_WITH_BASELINES
    return {
        "arm": [row.arm for row in rows for _ in row.seed_ids],
        "seed": [seed for row in rows for seed in row.seed_ids],
        **{key: _values(rows, key) for key in (*ACCURACIES, *baselines, *personal)},
        **{
            name: values
            for number, table in enumerate(summary.targets, 1)
            for name, values in _of_target(table, f"target_{number}").items()
        },
        **{key: _values(rows, key) for key in COSTS},
    }


def _values(rows: Sequence[Comparison], key: str) -> list[Any]:
    """The values of a figure in the seeds of all rows; None where a row has no such figure."""
    return [
        value
        for row in rows
        for value in ([None] * len(row.seed_ids) if row[key] is None else row[key].per_seed)
    ]


def _of_target(table: TargetTable, target: str) -> dict[str, list[Value]]:
    """The columns of a target: the accuracy that it stands for in each seed, and the bounds of times."""
    rows, reference = table.rows, table.rows[0].seed_ids
    goals = dict(zip(reference, table.accuracy.per_seed, strict=True))
    held = _values(rows, "held_from_s")
    return {
        f"accuracy_{target}": [goals.get(seed) for row in rows for seed in row.seed_ids],
        f"time_below_{target}_s": [_finite(time.low) for time in _values(rows, "time_below_s")],
        f"held_from_{target}_at_least_s": [_finite(time.low) for time in held],
        f"held_from_{target}_at_most_s": [_finite(time.high) for time in held],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def as_csv(columns: Mapping[str, Sequence[Value]]) -> str:
    """The columns as CSV, with the shortest digits that give the same numbers; None is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _shown(value: Value) -> str:
    """A cell with at most six significant digits; "-" where nothing was measured."""
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
    columns = seed_columns(summary)
    rows = [list(map(_shown, row)) for row in zip(*columns.values(), strict=True)]
    content = {
        "columns": columns,
        "rows": rows,
        "is_open": len(rows) <= MOST_OPEN_ROWS,
        "url": Markup(f"data:text/csv;charset=utf-8,{quote(as_csv(columns))}"),  # percent-encoded
        "file": f"{summary.name}-seeds.csv",
        "targets": f"{targets}; held_from counts from the mass event" if counted else targets,
    }
    return OnPage(template="seed_table.html", content=content)


TABLE = Table(title="Every seed", place=Place("repeat"), on_page=_on_page)
