"""The clients of each arm whose visits closed most rounds, and how slow their devices are."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.results.statistics.closers import Closer
from experiments.results.statistics.scales import Scale, time_scale
from experiments.results.statistics.visit_columns import NO_DEVICE
from experiments.results.tables.cells import NOT_MEASURED, Cell
from experiments.results.tables.report import Report
from experiments.results.tables.round_lengths import waits
from experiments.results.tables.table import NotedTable, OnPage, Place, Table, TextTable

NOTE = (
    "The clients of each arm that rounds waited for most often: in how many rounds of their "
    "seed they were the last to complete or to drop out, and how long those rounds waited from "
    "dispatch to their end. Compute, download and upload say how many times slower their "
    "device is than that of the median client of the seed. Clients that closed a single "
    "round are left out."
)


def closers_table(rows: Sequence[tuple[str, Closer]]) -> TextTable:
    """A row for each (arm, client): how many rounds the client closed, and how slow its device is."""
    has_device = any(closer.device != NO_DEVICE for _, closer in rows)
    slowness = Scale(1, "x", None)
    scale = time_scale(max((closer.waited_s / closer.rounds for _, closer in rows), default=0.0))
    return TextTable(
        [
            *("seed", "client"),
            *(["device row"] if has_device else []),
            *("rounds closed", "of all", "mean wait", "compute", "download", "upload"),
        ],
        [
            (
                arm,
                [
                    Cell(str(closer.seed)),
                    Cell(str(closer.client)),
                    *([Cell(str(closer.device))] if has_device else []),
                    Cell(f"{closer.rounds:,}"),
                    Cell(f"{100 * closer.share:.1f} %"),
                    Cell(scale(closer.waited_s / closer.rounds)),
                    *(
                        Cell(NOT_MEASURED if value is None else slowness(value))
                        for value in (
                            closer.compute_slowness,
                            closer.download_slowness,
                            closer.upload_slowness,
                        )
                    ),
                ],
            )
            for arm, closer in rows
        ],
    )


def _on_page(report: Report) -> OnPage | None:
    found = report.once(waits)
    if not found.closed_most:
        return None
    notes = [NOTE, *filter(None, [found.omission])]
    return OnPage([NotedTable("Who closed rounds", closers_table(found.closed_most), notes)])


TABLE = Table(title="Who closed rounds", place=Place("why", group="rounds"), on_page=_on_page)
