"""Frames of detectors: their figures in each run, and what each made of every drift."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from emulator.arrays import NO_IDS
from experiments.results.frames.client_frames import texts_of
from experiments.results.frames.typed_columns import as_arms, below_each_other, known_ints, with_run
from experiments.results.reading.detection import DetectionSettings
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.detection.by_drift import NEVER, DetectorScores
from experiments.results.statistics.detection.columns import Drifts
from experiments.results.statistics.detection.scores import COUNT, FIGURES, score_run

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
        {
            "arm": run.arm,
            "seed": run.seed,
            "detector": name,
            "watched": run.header["detectors"][name],
            **scores.figures,
        }
        for run, name, scores in scored
    ]
    frame = pd.DataFrame(rows, columns=["arm", "seed", "detector", "watched", *FIGURES])
    kinds = {name: "int64" if figure == COUNT else "float64" for name, figure in FIGURES.items()}
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
    tables = [_with_names(devices(run.arm, run.seed)) for run, _, _ in scored]
    frames = [
        with_run(_drifts(name, scores, table), run.arm, run.seed, arms)
        for (run, name, scores), table in zip(scored, tables, strict=True)
    ]
    joined = below_each_other(frames or [with_run(_drifts("", _NO_SCORES, None), arms[0], 0, arms)])
    drifts = joined.infer_objects()  # texts, also beside those of a run without a drift, which has none
    return drifts if any(table is not None for table in tables) else drifts.drop(columns="client_name")


_NO_SCORES = DetectorScores(Drifts([], *[NO_IDS] * 6), NO_IDS, NO_IDS, np.zeros(0), np.zeros(0), {})
"""Those of a run without a drift."""


def _with_names(table: pa.Table | None) -> pa.Table | None:
    """A run's `clients.parquet` if it has the names of clients; else None."""
    return table if table is not None and "client_name" in table.column_names else None


def _drifts(name: str, scores: DetectorScores, table: pa.Table | None) -> pd.DataFrame:
    """The rows of one detector, without arm and seed; without names of clients if `table` is None."""
    drifts, count = scores.drifts, len(scores.drifts)
    kinds = np.array(drifts.kinds, dtype=object)
    assert NEVER == -1, "a missing round is a negative number"
    return pd.DataFrame(
        {
            "detector": np.full(count, name, dtype=object),
            "client": drifts.client,
            "client_name": (
                np.full(count, None) if table is None else texts_of(table, "client_name", drifts.client)
            ),
            "onset": drifts.onset,
            "step": drifts.step,
            "kind": pd.Categorical(kinds[drifts.kind], categories=list(dict.fromkeys(drifts.kinds))),
            "before": known_ints(drifts.before),
            "after": known_ints(drifts.after),
            "asked_round": known_ints(scores.asked),
            "found_round": known_ints(scores.found),
            "delay_rounds": known_ints(scores.delays),
            "delay_s": scores.delay_s,
            "asked_s": scores.asked_s,
            "found_s": scores.delay_s - scores.asked_s,
        }
    )
