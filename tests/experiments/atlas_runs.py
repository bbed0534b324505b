"""Folders of run directories for an atlas, with made-up runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.synthetic_runs import a_directory, a_run, store

KINDS = {"ifca": {"kind": "ifca", "num_models": 4}, "oracle": {"kind": "oracle"}}
SEEDS = (0, 1, 2)
CHOSEN = {"seeds": [100, 101], "rival": "avg+prior", "best": {"avg": "avg+prior", "ifca": "ifca"}}

LEVELS: Mapping[str, float] = {"avg": 0.48, "avg+prior": 0.5, "ifca": 0.53, "ifca+prior": 0.52, "oracle": 0.9}
"""The accuracy of each arm, in each of its evaluations and seeds."""


def an_arm(name: str) -> dict[str, Any]:
    """An arm whose name says its clusterer and, after a plus, its adaptation."""
    method, _, use = name.partition("+")
    clusterer = KINDS.get(method, {"kind": "single"})
    solver = {"kind": "prox" if method == "prox" else "sgd"}
    adaptation = {"kind": use or "none"}
    return {"name": name, "clusterer": clusterer, "solver": solver, "adaptation": adaptation}


def a_column(
    path: Path,
    levels: Mapping[str, float] = LEVELS,
    *,
    finished: Mapping[str, Sequence[int]] | None = None,
    header: Mapping[str, Any] | None = None,
    records: Mapping[str, Any] | None = None,
    **changes: Any,
) -> RunDirectory:
    """A run directory with two rounds of ten seconds a run; of arms in `finished` only these seeds are.

    Args:
        path: The run directory.
        levels: The accuracy of each arm.
        finished: The finished seeds of arms, by default all.
        header: Further entries of the headers of logs.
        records: Further fields of their records.
        changes: Top-level keys of the configuration.
    """
    rounds = {"participants": 3, "rounds": 2, "seconds_per_round": 10}
    experiment = {"name": path.name, "atlas": CHOSEN, "round": rounds, "report": {"window": 1}, **changes}
    directory = a_directory(path, [], SEEDS, arm=list(map(an_arm, levels)), **experiment)
    for arm, level in levels.items():
        for seed in (finished or {}).get(arm, SEEDS):
            run = a_run(arm, seed, [level, level], **(records or {}))
            known = {"num_clients": 4, "num_parameters": 10, **(header or {})}
            store(directory, replace(run, header=known))
    return directory


def with_clients(*accuracies: float) -> dict[str, Any]:
    """Fields of a record that logs the accuracies of four clients."""
    return {"client_accuracy": np.array(accuracies, dtype=np.float32), "client_label": None}
