"""The figures of a report: a module for each, whose `FIGURE` says all that is particular to it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.results.figures.figure import Figure

NAMES = (
    "accuracy",
    "personal",
    "difference",
    "below",
    "speedups",
    "client_accuracy",
    "client_gain",
    "clients_by",
    "drift",
    "clusters",
    "model_accuracy",
    "flags",
    "trigger",
    "silhouettes",
    "waiting",
    "timeline",
    "client_distance",
    "durations",
    "outcomes",
)
"""The modules of the figures, in the order of the page; a notebook draws each by `plot_<name>`."""


@cache
def all_figures() -> dict[str, Figure]:
    """The figures by name, in the order of `NAMES`."""
    return {name: import_module(f"{__name__}.{name}").FIGURE for name in NAMES}
