"""The size of a report, which only falls, or rises in a commit whose message says by how much and why."""

from __future__ import annotations

import re
from pathlib import Path

from experiments.results.pages.report_page import write_report
from tests.experiments.synthetic_runs import realistic_directory
from tests.ratchets.pinned import pinned

MOST_BYTES = 124_000

HOW_TO_FIND_WHAT_GREW = (
    "The bytes of each figure are below; the rest is text. Write the same page with the commit before "
    "(realistic_directory, then write_report) and compare the two line by line."
)


@pinned("plotly", "numpy", "Jinja2")
def test_a_report_without_plotly_js_has_at_most_so_many_bytes(tmp_path: Path) -> None:
    directory = realistic_directory(tmp_path / "run", seeds=2, rounds=40, clients=20)
    page = write_report(directory, shared_plotly=True).read_text()
    figures = {
        re.findall(r'id="([\w-]+)"', part)[0]: len(part)
        for part in page.split('<div role="img"')[1:]
        if "Plotly.newPlot" in part
    }
    assert len(figures) > 5
    assert len(page.encode()) <= MOST_BYTES, f"{HOW_TO_FIND_WHAT_GREW} {figures}"
