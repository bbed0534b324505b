"""Opening a trace folder: what is measured, on a small one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.files.trace_folder import FolderSizes, trace_folder_figures, write_folder
from traces.arrivals import Arrivals
from traces.files import open_folder
from traces.tables.sorted import is_in_order


def test_the_written_folder_has_the_sizes_and_the_order_of_a_table(tmp_path: Path) -> None:
    write_folder(tmp_path / "trace", FolderSizes(samples=500, floats=3, clients=7))
    folder = open_folder(tmp_path / "trace")
    rows = folder.rows
    assert (len(rows), folder.features.shape, len(rows.clients)) == (500, (3,), 7)
    assert rows.split is not None
    assert is_in_order(Arrivals(rows.client, rows.split, rows.at, rows.label, rows.sample, rows.sample))


@pytest.mark.slow
def test_opening_is_measured_against_sorting() -> None:
    figures = trace_folder_figures(FolderSizes(samples=2000, floats=2, clients=5), 1, lambda text: None)
    assert [figure.name for figure in figures] == [
        "trace-folder-open",
        "trace-folder-memory",
        "trace-folder-read",
    ]
    assert figures[0].ratio is not None
    assert all(figure.target is not None for figure in figures)
