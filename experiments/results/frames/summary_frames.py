"""Frames of a summary: every figure of every seed, and the arms' means with their intervals.

A bound of a time is never given as the time: `value` is NaN unless a figure is known exactly, and `low` and
`high` are what is known of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.results.frames.typed_columns import as_arms
from experiments.results.reading.recorded import Target
from experiments.results.statistics.intervals import Estimate, NamedGain
from experiments.results.statistics.medians import Bounds
from experiments.results.statistics.summary import Summary
from experiments.results.tables.concept_drift import OF_WHOLE_RUNS

STATUSES = ("=", ">=", "<=", "range", "undetermined", "not measured")
"""How well a figure is known: those of `Bounds.status`, and a figure that a run does not have."""

Cell = tuple[str, int, str, Target | None, float, float, float, str, str | None]


def summary_frame(summary: Summary, arms: Sequence[str]) -> pd.DataFrame:
    """A row per arm, seed, figure and target.

    Columns: arm, seed; `figure`, its name as in `summary.json`, with "finished." before those of whole runs;
    `target`, an accuracy, "reference" or None for a figure without one; `value`, NaN unless it is known
    exactly; `low` and `high`, its bounds (infinite if there is none, NaN if it was not measured); `status`,
    one of `STATUSES`; `over`, the arm that a gain is over where that is another one than the reference arm. A
    figure that compares an arm with the reference arm has no rows for that arm.
    """
    names = ("arm", "seed", "figure", "target", "value", "low", "high", "status", "over")
    frame = pd.DataFrame(list(_cells(summary)), columns=list(names))
    kinds = {"target": "object", "seed": "int64", "value": "float64", "low": "float64", "high": "float64"}
    frame = as_arms(frame.astype(kinds), arms)
    known = {"figure": dict.fromkeys(frame["figure"]), "status": STATUSES, "over": arms}
    for name, categories in known.items():
        frame[name] = pd.Categorical(frame[name], categories=list(categories))
    return frame


def table_frame(summary: Summary, arms: Sequence[str]) -> pd.DataFrame:
    """A row per arm with the figures that need no target: the mean over seeds and its 95 % interval.

    The columns of a figure are `<figure>`, `<figure>_low` and `<figure>_high`, NaN if some seed has no value,
    the interval also with under three seeds, and of an arm with a trigger or beside one; of gains over other
    arms than the reference arm, `<figure>_over` is the other arm. Figures that have no mean in any arm are
    left out.
    """
    rows = summary.rows
    columns: dict[str, Any] = {
        "arm": [row.arm for row in rows],
        "seeds": np.array([len(row.measured) for row in rows], dtype=np.int64),
    }
    estimates = (name for row in rows for name, found in row.estimates() if isinstance(found, Estimate))
    for name in dict.fromkeys(estimates):
        found: list[Estimate | None] = [row[name] for row in rows]
        if all(estimate is None or estimate.mean is None for estimate in found):
            continue
        columns[name] = [math.nan if one is None or one.mean is None else one.mean for one in found]
        ends = [(one and one.ci95) or (math.nan, math.nan) for one in found]
        columns[f"{name}_low"], columns[f"{name}_high"] = zip(*ends, strict=True)
        if any(isinstance(one, NamedGain) for one in found):
            over = [one.over if isinstance(one, NamedGain) else None for one in found]
            columns[f"{name}_over"] = pd.Categorical(over, categories=list(arms))
    return as_arms(pd.DataFrame(columns), arms)


def _cells(summary: Summary) -> Iterator[Cell]:
    groups = [(None, summary.rows), *((table.target, table.rows) for table in summary.targets)]
    for target, rows in groups:
        for arm in rows:
            for name, estimate in arm.estimates():
                over = estimate.over if isinstance(estimate, NamedGain) else None
                for seed, value in zip(arm.seed_ids, estimate.per_seed, strict=True):
                    yield arm.arm, seed, name, target, *_known(value), over
    finished = summary.finished
    paired = finished.seed_ids.get(summary.reference_arm, [])
    for name, figures in finished.arms.items():
        for figure in (of.key for of in OF_WHOLE_RUNS):
            ids = finished.seed_ids[name]
            ids = [seed for seed in ids if seed in paired] if figure == "relative_models_sent" else ids
            for seed, value in zip(ids, figures[figure].per_seed, strict=True):
                yield name, seed, f"finished.{figure}", None, *_known(value), None


def _known(value: float | Bounds | None) -> tuple[float, float, float, str]:
    """(value, low, high, status) of a figure of a seed."""
    if value is None:
        return math.nan, math.nan, math.nan, "not measured"
    if isinstance(value, Bounds):
        return value.low if value.status == "=" else math.nan, value.low, value.high, value.status
    return value, value, value, "="
