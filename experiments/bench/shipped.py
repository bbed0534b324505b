"""Configurations, as workloads use them: the shipped ones, and the bench's own."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path

from experiments.config import Experiment, load_experiment


def shipped_experiment(name: str, *settings: str) -> Experiment:
    """`experiments/configs/<name>.toml` with `settings` over it, for its first seed."""
    with resources.as_file(resources.files("experiments").joinpath("configs", f"{name}.toml")) as path:
        return load_experiment(Path(path), settings, seeds=[0])


def frozen_digits() -> AbstractContextManager[Path]:
    """The file of the 15 runs that workloads play side by side, while it is open."""
    return resources.as_file(resources.files("experiments").joinpath("bench", "digits_15_runs.toml"))
