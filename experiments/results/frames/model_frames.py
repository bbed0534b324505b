"""The frame of models: the accuracy of each on the tests of each true concept."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from experiments.results.frames.typed_columns import as_arms
from experiments.results.reading.run_directory import FinishedRun

KINDS = {
    **dict.fromkeys(("seed", "round"), "int64"),
    "closed_s": "float64",
    **dict.fromkeys(("cluster", "concept"), "int64"),
    "accuracy": "float64",
}
"""The types of the columns beside `arm`."""


def model_accuracy_frame(runs: Sequence[FinishedRun], arms: Sequence[str]) -> pd.DataFrame:
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
    return as_arms(pd.DataFrame(rows, columns=["arm", *KINDS]).astype(KINDS), arms)
