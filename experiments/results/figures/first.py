"""What a page opens with: the figure or the table that `report.first` of a configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.errors import InputError
from experiments.results.figures import all_figures
from experiments.results.tables import tables_by_name

if TYPE_CHECKING:
    from experiments.results.figures.figure import Figure
    from experiments.results.tables.table import Table

ACCURACY = "accuracy"
"""The figure with which a page opens unless it is told otherwise."""


def tables_on_page() -> dict[str, Table]:
    """The tables of a page by name."""
    return {name: table for name, table in tables_by_name().items() if table.place is not None}


def first_shown(name: str) -> Figure | Table:
    """The figure of that name, or else the table; InputError if a page has none."""
    shown: dict[str, Figure | Table] = {**tables_on_page(), **all_figures()}
    if name not in shown:
        raise InputError(f"report.first = {name!r}: no figure or table; choices: {', '.join(shown)}")
    return shown[name]
