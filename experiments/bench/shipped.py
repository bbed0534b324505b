"""The shipped configurations, as workloads use them."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from experiments.config import Experiment, load_experiment


def shipped_experiment(name: str, *settings: str) -> Experiment:
    """`experiments/configs/<name>.toml` with `settings` over it, for its first seed."""
    with resources.as_file(resources.files("experiments").joinpath("configs", f"{name}.toml")) as path:
        return load_experiment(Path(path), settings, seeds=[0])
