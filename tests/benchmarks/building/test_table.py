"""Building a table: what is measured, on a small one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.building.table import SETTINGS, TableSizes, table_figures, write_plainly, write_table
from traces.building import Request
from traces.building.table.build import Table


def test_the_written_table_has_the_sizes(tmp_path: Path) -> None:
    sizes = TableSizes(floats=3, clients=2)
    built = Table(SETTINGS).build(Request(write_table(tmp_path / "t.parquet", 500, sizes), tmp_path / "out"))
    assert (built.train + built.test, built.shape, built.clients, built.num_bytes) == (500, (3,), 2, 6000)


def test_as_many_bytes_are_written_plainly(tmp_path: Path) -> None:
    write_plainly(tmp_path / "plain", 5_000_001)
    assert (tmp_path / "plain").stat().st_size == 5_000_001


@pytest.mark.slow
def test_builds_are_measured_against_writing_and_reading() -> None:
    sizes = TableSizes(parquet_rows=2000, csv_rows=300, floats=2, clients=5)
    figures = table_figures(sizes, 1, lambda text: None)
    assert [figure.name for figure in figures] == [
        "table-parquet",
        "table-memory",
        "table-dialect",
        "table-csv",
    ]
    assert [figure.ratio is not None for figure in figures] == [True, False, False, True]
    without = table_figures(
        TableSizes(parquet_rows=2000, csv_rows=0, floats=2, clients=5), 1, lambda text: None
    )
    assert [figure.name for figure in without] == ["table-parquet", "table-memory", "table-dialect"]
