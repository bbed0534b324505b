"""Checks of the column `expiry` of `arrivals.parquet`, which are made by the rules of the reader."""

from __future__ import annotations

from functools import partial

import numpy as np

from emulator.errors import DataFileError
from emulator.storage.parquet_columns import ParquetColumns
from traces.files import arrivals as rules
from traces.files.arrivals import ArrivalRows, When
from traces.files.checking.findings import Findings
from traces.files.expiry import (
    EXPIRY,
    never_held,
    not_after,
    out_of_turn,
    read_expiry,
    refuse_version,
    rows_out_of_range,
)


def check_expiry(table: ParquetColumns, when: When | None, version: int | None, findings: Findings) -> None:
    """Check the column, if there is one: its values, and that samples expire in the order of their arrival.

    Rows are compared only if all values of the columns that say whose they are, and when, are valid.
    """
    if EXPIRY not in table:
        return
    if version is not None:
        findings.passes(partial(refuse_version, table.path, version))
    if when is None or not findings.passes(partial(rules.check_type, table, EXPIRY)):
        return
    outside = list(rows_out_of_range(table, when))
    findings.add_rows(table.path, [row for row, _ in outside], lambda at: outside[at][1])
    if outside:
        return
    try:
        rows = _whose_and_when(table, when)
    except DataFileError:  # found already, in that column
        return
    assert rows.expiry is not None, "it has been read"
    at, expiry = rows.at, rows.expiry
    early = never_held(at, expiry)
    findings.add_rows(table.path, early, lambda row: not_after(at[early[row]], expiry[early[row]], when))
    later, earlier = out_of_turn(rows.client, rows.split, at, expiry, rows.count)
    order = np.argsort(later)
    later, earlier = later[order], earlier[order]
    findings.add_rows(
        table.path, later, lambda row: rules.expires_before_its_turn(rows, later[row], earlier[row])
    )


def _whose_and_when(table: ParquetColumns, when: When) -> ArrivalRows:
    """The columns that expiry depends on, of all rows; DataFileError for a value that breaks a rule."""
    client, clients = rules.read_clients(table)
    none = np.zeros(0, np.int8)
    return ArrivalRows(
        client=client,
        clients=clients,
        label=none,
        classes=(),
        sample=none,
        when=when,
        at=rules.read_instants(table, when),
        split=rules.read_splits(table) if "split" in table else None,
        count=table.integers("count", *rules.BOUNDS["count"]) if "count" in table else None,
        expiry=read_expiry(table, when),
    )
