"""Claims on the list of tables."""

from __future__ import annotations

from pathlib import Path

from experiments.results import tables
from experiments.results.tables import all_quantities, all_tables


def test_every_module_with_a_table_is_in_the_list():
    """One that is not would be shown nowhere, and said nowhere to be missing."""
    folder = Path(tables.__file__).parent
    found = {path.stem for path in folder.glob("*.py") if "\nTABLE = " in path.read_text(encoding="utf-8")}
    assert found == set(tables.NAMES)


def test_what_a_table_shows_is_measured_by_some_table():
    """All but what is measured at each target."""
    shown = [column for table in all_tables() for column in (*table.columns, *table.in_many_runs)]
    measured = [column.key for column in shown if column.measure is not None]
    assert len(measured) > 50
    assert set(measured) <= set(all_quantities())
