"""The clients of each arm whose visits closed most rounds, and how slow their devices are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import pyarrow as pa

from experiments.results.reading.not_recorded import LOG_VISITS
from experiments.results.statistics.clients.visits import NO_DEVICE
from experiments.results.statistics.closers import Closer
from experiments.results.statistics.scales import factor_scale, time_scale
from experiments.results.tables.cells import NOT_MEASURED, Cell
from experiments.results.tables.report import Report
from experiments.results.tables.round_lengths import omission, waits
from experiments.results.tables.table import NotedTable, OnPage, Place, Table, TextTable

NOTE = (
    "The clients of each arm that rounds waited for most often: in how many rounds of their "
    "seed they were the last to complete or to drop out, and how long those rounds waited from "
    "dispatch to their end. Compute, download and upload say how many times slower their "
    "device is than that of the median client of the seed. Clients that closed a single "
    "round are left out."
)


def closers_table(rows: Sequence[tuple[str, Closer]], names: Mapping[int, pa.ChunkedArray[Any]]) -> TextTable:
    """A row for each (arm, client): how many rounds the client closed, and how slow its device is.

    `names` has the names of the clients by seed, as far as they were recorded.
    """
    has_device = any(closer.device != NO_DEVICE for _, closer in rows)
    factor = factor_scale(1.0)
    scale = time_scale(max((closer.waited_s / closer.rounds for _, closer in rows), default=0.0))
    shown = []
    for arm, closer in rows:
        device = [str(closer.device)] if has_device else []
        wait = scale(closer.waited_s / closer.rounds)
        texts = [str(closer.seed), _called(closer, names), *device]
        texts += [f"{closer.rounds:,}", f"{100 * closer.share:.1f} %", wait]
        texts += [NOT_MEASURED if isnan(value) else factor(value) for value in closer.slowness]
        shown.append((arm, [Cell(text) for text in texts]))
    headings = ["seed", "client", *(["device row"] if has_device else [])]
    headings += ["rounds closed", "of all", "mean wait", "compute", "download", "upload"]
    return TextTable(headings, shown)


def _called(closer: Closer, names: Mapping[int, pa.ChunkedArray[Any]]) -> str:
    """The number of the client, behind its name if it has another one."""
    number = str(closer.client)
    name = str(names[closer.seed][closer.client]) if closer.seed in names else number
    return number if name == number else f"{name} ({number})"


def _names(report: Report) -> dict[int, pa.ChunkedArray[Any]]:
    """The names of the clients by seed, of those seeds of which they were recorded."""
    found: dict[int, pa.ChunkedArray[Any]] = {}
    for arm in report.arms:
        for run in arm.runs:
            table = None if run.seed in found else report.directory.read_clients(arm.name, run.seed)
            if table is not None and "client_name" in table.column_names:
                found[run.seed] = table.column("client_name")
    return found


def _on_page(report: Report) -> OnPage | None:
    rows = [(arm.arm, closer) for arm in waits(report) for closer in arm.closed_most]
    if not rows:
        return None
    notes = [NOTE, *filter(None, [omission(report)])]
    return OnPage([NotedTable("Who closed rounds", closers_table(rows, _names(report)), notes)])


TABLE = Table(
    title="Who closed rounds", place=Place("why", group="rounds", needs=LOG_VISITS), on_page=_on_page
)
