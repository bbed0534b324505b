"""The tables of results: a module for each, whose `TABLE` says all that is particular to it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.results.tables.quantities import Quantity
    from experiments.results.tables.table import Table

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
    "participation",
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


def tables_by_name() -> dict[str, Table]:
    """The tables by the names of their modules."""
    return dict(zip(NAMES, all_tables(), strict=True))


@cache
def all_quantities() -> dict[str, Quantity]:
    """The quantities of all tables by key; AssertionError if two tables measure one of the same key."""
    found: dict[str, Quantity] = {}
    for table in all_tables():
        for quantity in table.quantities:
            assert quantity.key not in found, f"{quantity.key}: two tables measure it, one is {table.title!r}"
            found[quantity.key] = quantity
    return found
