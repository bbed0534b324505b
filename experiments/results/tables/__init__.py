"""The tables of results: a module for each, whose `TABLE` says all that is particular to it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.results.tables.table import Quantity, Table

NAMES = (
    "concept_drift",
    "serving_maps",
    "accuracy",
    "baselines",
    "personal",
    "drift",
    "targets",
    "round_lengths",
    "closers",
    "updates_by_speed",
    "costs",
    "cluster_changes",
    "honest",
    "clusterings",
    "detection",
    "clients",
    "deciles",
    "clients_by_group",
    "clients_by_cluster",
    "faults",
    "seeds",
)
"""The modules of the tables, in the order in which every output has them."""


@cache
def all_tables() -> tuple[Table, ...]:
    """The tables, in the order of `NAMES`."""
    return tuple(import_module(f"{__name__}.{name}").TABLE for name in NAMES)


@cache
def all_quantities() -> dict[str, Quantity]:
    """The quantities of all tables by name; AssertionError if two tables measure one of the same name."""
    found: dict[str, Quantity] = {}
    for table in all_tables():
        assert not table.quantities.keys() & found.keys(), f"{table.title}: measures what another table does"
        found |= table.quantities
    return found
