"""The deciles of the accuracies of clients at the horizon."""

from __future__ import annotations

import numpy as np

from experiments.results.statistics.clients.accuracy import DECILES
from experiments.results.tables.by_arm import SHARE, table_by_arm
from experiments.results.tables.clients import PLACE, are_logged
from experiments.results.tables.notes import intervals_of_single_arms
from experiments.results.tables.report import Report
from experiments.results.tables.table import NotedTable, OnPage, Table, TextTable


def _on_page(report: Report) -> OnPage:
    shares = np.array(DECILES)
    found = {
        arm: [None if seed is None else seed.quantiles(shares) for seed in seeds]
        for arm, seeds in report.clients.items()
    }
    table = table_by_arm(report, {f"{100 * share:.0f} %": SHARE for share in DECILES}, found)
    return OnPage([NotedTable("Deciles", table, [_note(report, table)])])


def _note(report: Report, table: TextTable) -> str:
    scored = [seed for arm in report.arms for seed in report.clients[arm.name] if seed is not None]
    fewest, most = min(len(seed.clients) for seed in scored), max(len(seed.clients) for seed in scored)
    count = f"{fewest:,}" if fewest == most else f"between {fewest:,} and {most:,}"
    left_out = max(seed.left_out for seed in scored)
    without = (
        f"Up to {left_out:,} clients of a run had no test samples or no model then, and are left out. "
        if left_out
        else ""
    )
    few = "With so few, deciles are interpolated between clients." if fewest < 20 else ""
    return (
        f"Of the accuracies of {count} clients per run, at the last evaluation by the horizon: the share of "
        "clients in the heading has that accuracy or a lower one; 50 % is the median client. "
        f"{intervals_of_single_arms(report.arms)}{_coarse(table)}{without}{few}"
    ).strip()


def _coarse(table: TextTable) -> str:
    """A warning if an interval has no width, as seeds may agree on a decile; otherwise empty."""
    intervals = [cell.interval.strip("[]").split(", ") for _, cells in table.rows for cell in cells]
    if not any(len(ends) == 2 and ends[0] == ends[1] for ends in intervals):
        return ""
    return (
        "Accuracies of clients are multiples of one test sample, so seeds may have the very same decile: an "
        "interval of no width is no certainty. "
    )


TABLE = Table(title="Deciles", place=PLACE, says_something=are_logged, on_page=_on_page)
