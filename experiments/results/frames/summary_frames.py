"""Frames of a summary: every figure of every seed, and the arms' means with their intervals.

A bound of a time is never given as the time: `value` is NaN unless a figure is known exactly, and `low` and
`high` are what is known of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from experiments.results.frames.typed_columns import as_arms
from experiments.results.reading.recorded import Target
from experiments.results.statistics.intervals import Estimate, NamedGain
from experiments.results.statistics.medians import Bounds, MedianEstimate
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
    frame = pd.DataFrame(
        dict(zip(names, zip(*_cells(summary), strict=True), strict=True)), columns=list(names)
    )
    frame["target"] = frame["target"].astype(object)
    kinds = {"seed": "int64", "value": "float64", "low": "float64", "high": "float64"}
    frame = as_arms(frame.astype(kinds), arms)
    frame["figure"] = pd.Categorical(frame["figure"], categories=list(dict.fromkeys(frame["figure"])))
    frame["status"] = pd.Categorical(frame["status"], categories=list(STATUSES))
    frame["over"] = pd.Categorical(frame["over"], categories=list(arms))
    return frame


def table_frame(summary: Summary, arms: Sequence[str]) -> pd.DataFrame:
    """A row per arm with the figures that need no target: the mean over seeds and its 95 % interval.

    The columns of a figure are `<figure>`, `<figure>_low` and `<figure>_high`, NaN if some seed has no value,
    the interval also with under three seeds, and of an arm with a trigger or beside one; of gains over other
    arms than the reference arm, `<figure>_over` is the other arm. Figures that have no mean in any arm are
    left out.
    """
    rows: list[dict[str, object]] = []
    over: set[str] = set()
    for arm in summary.rows:
        row: dict[str, object] = {"arm": arm.arm, "seeds": len(arm.measured)}
        for name, estimate in arm.estimates():
            if isinstance(estimate, Estimate):
                low, high = estimate.ci95 or (math.nan, math.nan)
                row |= {name: _known(estimate.mean), f"{name}_low": low, f"{name}_high": high}
            if isinstance(estimate, NamedGain):
                row[f"{name}_over"] = estimate.over
                over.add(f"{name}_over")
        rows.append(row)
    names = dict.fromkeys(["arm", "seeds", *(name for row in rows for name in row)])
    frame = as_arms(pd.DataFrame(rows, columns=list(names)), arms)
    texts = {"arm", *over}
    frame = frame.astype(
        {name: "int64" if name == "seeds" else "float64" for name in names if name not in texts}
    )
    frame = frame.astype({name: pd.CategoricalDtype(list(arms)) for name in over})
    unmeasured = [
        column
        for name in names
        if f"{name}_low" in names and frame[name].isna().all()
        for column in (name, f"{name}_low", f"{name}_high", f"{name}_over")
        if column in names
    ]
    return frame.drop(columns=unmeasured)


def _cells(summary: Summary) -> Iterator[Cell]:
    groups = [(None, summary.rows), *((table.target, table.rows) for table in summary.targets)]
    for target, rows in groups:
        for arm in rows:
            for name, estimate in arm.estimates():
                yield from _of_seeds(arm.arm, arm.seed_ids, name, target, estimate)
    finished = summary.finished
    paired = finished.seed_ids.get(summary.reference_arm, [])
    for name, figures in finished.arms.items():
        for figure in (of.key for of in OF_WHOLE_RUNS):
            ids = finished.seed_ids[name]
            ids = [seed for seed in ids if seed in paired] if figure == "relative_models_sent" else ids
            for seed, value in zip(ids, figures[figure].per_seed, strict=True):
                yield _cell(name, seed, f"finished.{figure}", None, value)


def _of_seeds(
    arm: str, seeds: Sequence[int], figure: str, target: Target | None, estimate: Estimate | MedianEstimate
) -> Iterator[Cell]:
    over = estimate.over if isinstance(estimate, NamedGain) else None
    for seed, value in zip(seeds, estimate.per_seed, strict=True):
        yield _cell(arm, seed, figure, target, value, over)


def _cell(
    arm: str,
    seed: int,
    figure: str,
    target: Target | None,
    value: float | Bounds | None,
    over: str | None = None,
) -> Cell:
    if isinstance(value, Bounds):
        known = value.low if value.status == "=" else math.nan
        return arm, seed, figure, target, known, value.low, value.high, value.status, over
    number = _known(value)
    status = "not measured" if value is None else "="
    return arm, seed, figure, target, number, number, number, status, over


def _known(value: float | None) -> float:
    return math.nan if value is None else value
