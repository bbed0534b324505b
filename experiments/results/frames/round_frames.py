"""Frames with a row per round, or per model in it: all rounds, and those in which a trigger compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from emulator.arrays import Floats
from emulator.storage.runlog import RoundRecord
from experiments.results.frames.rounds_table import MAY_MISS, NAMED, rounds_table
from experiments.results.frames.typed_columns import as_arms, typed_frame
from experiments.results.reading.run_directory import ReportedRun

OF_MODELS = {
    **dict.fromkeys(("seed", "round"), "int64"),
    "closed_s": "float64",
    **dict.fromkeys(("cluster", "concept"), "int64"),
    "accuracy": "float64",
}
"""The types of the columns of the frame of models, beside `arm`."""


def rounds_frame(runs: Sequence[ReportedRun], arms: Sequence[str]) -> pd.DataFrame:
    """A row per run and round, in the order of `runs`, with the columns of `rounds_table`.

    `silhouettes` are dictionaries {number of clusters: mean silhouette}, None in rounds without them.
    """
    return as_arms(typed_frame(rounds_table(runs), MAY_MISS), arms)


def triggers_frame(
    runs: Sequence[ReportedRun], arms: Sequence[str], squared: Mapping[str, bool]
) -> pd.DataFrame:
    """A row per run and round in which a trigger compared, or a clustering tried numbers of clusters.

    Columns: arm, seed, round, closed_s; `shift`, what was compared, and `limit`, with which (NaN if the
    trigger never fires, or nothing could be compared); `fired`; `threshold` and `mean_distance` of a trigger
    that compares the shifts of centres; `clusters`, before any re-clustering; `reclustered`; `chosen_k`, the
    number of clusters after the round, where silhouettes were compared; `silhouettes`
    {number of clusters: mean silhouette}; and `trigger.<name>` for each number that a trigger named, as in
    `rounds_table`. What a round did not compare is missing.

    The limit of a shift is threshold x mean distance, of which a single centre has none. Of a trigger with
    named numbers, `shift` and `limit` are those that it named `measured` and `limit`, if it named such.

    Args:
        runs: The runs.
        arms: All arms, in the configured order.
        squared: By arm, whether it compares squared distances, and so with the square of the threshold.
    """
    rows = [
        (run, record)
        for run in runs
        for record in run.records
        if record.trigger is not None or record.silhouettes is not None
    ]
    frame = rounds_frame([replace(run, records=[record]) for run, record in rows], arms)
    compared = [_compared(record, squared[run.arm]) for run, record in rows]
    untried = np.array([record.silhouettes is None for _, record in rows], dtype=np.bool_)
    chosen = np.array([len(record.clusters) for _, record in rows], dtype=np.int64)
    columns = {
        **{name: frame[name] for name in ("arm", "seed", "round", "closed_s")},
        "shift": _numbers([numbers.get("measured") for numbers in compared]),
        "limit": _numbers([numbers.get("limit") for numbers in compared]),
        **{name: frame[f"trigger_{name}"] for name in ("fired", "threshold", "mean_distance", "clusters")},
        "reclustered": frame["reclustered"],
        "chosen_k": pd.arrays.IntegerArray(chosen, untried),
        "silhouettes": frame["silhouettes"],
        **{name: frame[name] for name in frame.columns if name.startswith(NAMED)},
    }
    return pd.DataFrame(columns)


def _compared(record: RoundRecord, are_squared: bool) -> Mapping[str, float | list[float] | None]:
    """The numbers that the trigger of a round compared; none without a trigger."""
    return {} if record.trigger is None else record.trigger.compared(are_squared=are_squared)


def _numbers(values: Sequence[float | list[float] | None]) -> Floats:
    """The values, NaN for one that is missing or a list."""
    return np.array(
        [value if isinstance(value, int | float) else math.nan for value in values], dtype=np.float64
    )


def model_accuracy_frame(runs: Sequence[ReportedRun], arms: Sequence[str]) -> pd.DataFrame:
    """A row per arm, seed, evaluated round, model and concept of tests, also after the horizon.

    Columns: arm, seed, `round`, `closed_s`; `cluster`, the label of the model; `concept`; `accuracy`.
    """
    rows = [
        (run.arm, run.seed, record.round, record.closed_s, cluster, concept, shares[index])
        for run in runs
        for record in run.records
        if record.accuracy_by_concept is not None
        for index, cluster in enumerate(record.clusters)
        for concept, shares in record.accuracy_by_concept.items()
    ]
    return as_arms(pd.DataFrame(rows, columns=["arm", *OF_MODELS]).astype(OF_MODELS), arms)
