"""The figures of a report: `FIGURE` of a module says all that is particular to one.

Figures that share most of their code share a module, where each has its name in capitals.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.results.figures.figure import Figure

NAMES = (
    "accuracy",
    "accuracy:personal",
    "difference",
    "every_target:below",
    "every_target:speedups",
    "client_curves:client_accuracy",
    "client_curves:client_gain",
    "clients_by",
    "drift",
    "clusters",
    "model_accuracy",
    "flags:operating_points",
    "flags",
    "trigger",
    "silhouettes",
    "waiting",
    "timeline",
    "client_distance",
    "rounds:durations",
    "rounds:outcomes",
)
"""The figures, in the order of the page: a module of one figure, or `module:figure`.

A notebook draws each by `plot_<name>`.
"""


@cache
def all_figures() -> dict[str, Figure]:
    """The figures by name, in the order of `NAMES`."""
    return dict(map(_named, NAMES))


def _named(entry: str) -> tuple[str, Figure]:
    """The name and the figure of an entry of `NAMES`."""
    module, _, name = entry.partition(":")
    figures = import_module(f"{__name__}.{module}")
    return (name, getattr(figures, name.upper())) if name else (module, figures.FIGURE)
