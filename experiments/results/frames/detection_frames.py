"""Frames of detectors: their figures in each run, and what each made of every drift."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from experiments.results.frames.client_frames import texts_of
from experiments.results.frames.typed_columns import as_arms, known_ints
from experiments.results.reading.detection import DetectionSettings
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.detection.by_drift import NEVER
from experiments.results.statistics.detection.scores import COUNTS, FIGURES, DetectorScores, score_run

Scored = tuple[ReportedRun, str, DetectorScores]
"""A run, the name of one of its detectors, and the scores of that."""


def scored_detectors(runs: Sequence[ReportedRun], settings: DetectionSettings) -> list[Scored]:
    """The detectors of `runs`, each of which recorded decisions, in the order of the runs."""
    return [(run, name, scores) for run in runs for name, scores in score_run(run, settings).items()]


def detection_frame(scored: Sequence[Scored], arms: Sequence[str]) -> pd.DataFrame:
    """A row per arm, seed and detector.

    Columns: arm, seed; `detector`, its name; `watched`, "representation", "arrivals" or "training"; and
    one for each figure of `tables/detection.py`, NaN where it is not defined.
    """
    rows = [
        {"arm": run.arm, "seed": run.seed, "detector": name, "watched": scores.watched, **scores.figures()}
        for run, name, scores in scored
    ]
    frame = pd.DataFrame(rows, columns=["arm", "seed", "detector", "watched", *FIGURES])
    kinds = {name: "int64" if name in COUNTS else "float64" for name in FIGURES}
    return as_arms(frame.astype({"seed": "int64", **kinds}), arms)


def drifts_frame(
    scored: Sequence[Scored], arms: Sequence[str], devices: Callable[[str, int], pa.Table | None]
) -> pd.DataFrame:
    """A row per arm, seed, detector and drift that begins in a scored round, by client and round.

    Columns: arm, seed, `detector`, `client`; `onset`, the round in which the drift begins, and `step`, its
    data step; `kind`; `before` and `after`, concepts of the client; `asked_round` and `found_round`, the
    rounds of the first decision about the client and of the flag that found the drift; `delay_rounds` and
    `delay_s`, from the drift to that flag; `asked_s` and `found_s`, the parts of `delay_s` up to the first
    decision and from there. `asked_s` is also known of a drift that was asked about and missed.

    `client_name` is behind `client` unless a run's `devices`, its `clients.parquet`, has no names.
    """
    parts = [_drifts(*one) for one in scored]
    kinds = list(dict.fromkeys(kind for _, _, scores in scored for kind in scores.kinds))
    columns = {
        name: np.concatenate([empty, *(part[name] for part in parts)]) for name, empty in _EMPTY.items()
    }
    for name in ("before", "after", "asked_round", "found_round", "delay_rounds"):
        columns[name] = known_ints(columns[name])
    columns["kind"] = pd.Categorical(columns["kind"], categories=kinds)
    frame = pd.DataFrame(columns)
    tables = {(run.arm, run.seed): devices(run.arm, run.seed) for run, _, _ in scored}
    names = [_names(tables[run.arm, run.seed], part) for (run, _, _), part in zip(scored, parts, strict=True)]
    if any(of_run is not None for of_run in names):
        texts = [
            np.full(len(part["client"]), None) if of_run is None else of_run
            for of_run, part in zip(names, parts, strict=True)
        ]
        frame.insert(frame.columns.get_loc("client") + 1, "client_name", np.concatenate(texts))
    return as_arms(frame, arms)


def _names(table: pa.Table | None, part: Mapping[str, Any]) -> Any:
    """(n,) the names of the clients of a part of the columns; None if they were not recorded."""
    if table is None or "client_name" not in table.column_names:
        return None
    return texts_of(table, "client_name", part["client"])


_EMPTY: dict[str, Any] = {
    "arm": np.zeros(0, dtype=object),
    "seed": np.zeros(0, dtype=np.int64),
    "detector": np.zeros(0, dtype=object),
    **dict.fromkeys(("client", "onset", "step"), np.zeros(0, dtype=np.int64)),
    "kind": np.zeros(0, dtype=object),
    **dict.fromkeys(
        ("before", "after", "asked_round", "found_round", "delay_rounds"), np.zeros(0, dtype=np.int64)
    ),
    **dict.fromkeys(("delay_s", "asked_s", "found_s"), np.zeros(0)),
}
"""The columns of drifts, by name, without a row."""


def _drifts(run: ReportedRun, name: str, scores: DetectorScores) -> dict[str, Any]:
    """The columns of the drifts of one detector, with -1 (`NEVER`) for whole numbers that are missing."""
    found = scores.by_drift
    drifts = found.drifts
    count = len(drifts)
    assert NEVER == -1, "a missing round is a negative number"
    return {
        "arm": np.full(count, run.arm, dtype=object),
        "seed": np.full(count, run.seed, dtype=np.int64),
        "detector": np.full(count, name, dtype=object),
        "client": drifts.client,
        "onset": drifts.onset,
        "step": drifts.step,
        "kind": np.array(scores.kinds, dtype=object)[drifts.kind] if count else np.zeros(0, dtype=object),
        "before": drifts.before,
        "after": drifts.after,
        "asked_round": found.asked,
        "found_round": found.found,
        "delay_rounds": found.delays,
        "delay_s": found.delay_s,
        "asked_s": found.asked_s,
        "found_s": found.delay_s - found.asked_s,
    }
