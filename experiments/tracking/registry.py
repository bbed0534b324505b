"""The trackers by name, where each writes, and the extras that install their libraries."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from experiments.tracking.base import Tracker

TRACKERS = ("tensorboard", "mlflow")

FOLDERS = {"tensorboard": ("export", "tensorboard"), "mlflow": ("export", "mlruns")}
"""Where each tracker writes in a run directory."""


def require_trackers(names: Sequence[str], where: str) -> None:
    """Refuse trackers that do not exist or are not installed; imports nothing.

    Args:
        names: Names of trackers.
        where: The option, for errors to name.

    Raises:
        UnknownNameError: There is no such tracker.
        InputError: Its library is not installed; the message names the extra.
    """
    for name in names:
        if name not in TRACKERS:
            raise UnknownNameError("tracker", name, TRACKERS, where)
        if find_spec(name) is None:
            raise InputError(
                f"{where} {name}: {name} is not installed; the extra `{name}` installs it: "
                f"pip install 'driftscale[{name}]'"
            )


def make_tracker(name: str, root: Path, *folders: str) -> Tracker:
    """The tracker `name`, which writes into `root/folders...`; its library is imported when a run begins."""
    if name == "tensorboard":
        from experiments.tracking.tensorboard import TensorBoardTracker

        return TensorBoardTracker(root, *folders)
    from experiments.tracking.mlflow import MlflowTracker

    return MlflowTracker(root, *folders)
