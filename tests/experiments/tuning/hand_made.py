"""Rows with settings and scores made by hand, and a folder that is tuned in a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from experiments.tuning.rows import Row, Setting, Try, rows_of

ARMS: dict[str, Any] = {
    "seeds": [0, 1],
    "devices": {"profile": "uniform", "availability": "always", "model_factor": 1},
    "training": {"model": "linear", "local_steps": 2, "batch_size": 4},
    "round": {"rounds": 4, "participants": 3},
    "tune": {"learning_rate": [0.05, 0.2, 0.8], "uses": {"tuned": {"local_steps": [1, 5]}}},
    "arm": [
        {
            "name": "fedavg",
            "baseline": True,
            "evaluate_with": ["none", "tuned"],
            "tune": {"training.local_steps": [1, 2, 4]},
        },
        {"name": "ifca", "clusterer": "ifca", "tune": {"clusterer.num_models": [2, 3, 4]}},
    ],
}
"""What all configurations of the folder share."""

SWAP: dict[str, Any] = {
    "name": "swap",
    "extends": ["parts/arms.toml", "chosen/swap.toml"],
    "trace": {
        "source": "digits",
        "clients": 10,
        "rounds_per_step": 2,
        "retain_rounds": 4,
        "samples_per_step": 6,
        "test_samples_per_step": 4,
    },
}
"""The one configuration of the folder."""


def write_folder(
    folder: Path, arms: Mapping[str, Any] | None = None, swap: Mapping[str, Any] | None = None
) -> Path:
    """Write `parts/arms.toml` and `swap.toml` with these keys; returns the folder."""
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "arms.toml").write_text(tomli_w.dumps({**ARMS, **(arms or {})}))
    (folder / "swap.toml").write_text(tomli_w.dumps({**SWAP, **(swap or {})}))
    return folder


def rows(*names: str) -> list[Row]:
    """The rows of `ARMS` that have these names."""
    return rows_of(ARMS, "x.toml", names)


def row_of(settings: Sequence[Sequence[str]]) -> Row:
    """A row whose settings have values 0, 1, ... and tries of these names; a use is what follows a `+`."""
    made = [
        Setting({"k": float(value)}, [Try(name, name.partition("+")[2], None, {}, {}) for name in names])
        for value, names in enumerate(settings)
    ]
    return Row({"name": "row"}, {"k": [setting.values["k"] for setting in made]}, {}, made)
