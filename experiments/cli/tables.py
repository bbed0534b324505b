"""What the commands show in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from experiments.formats import (
    PickScale,
    bytes_scale,
    count_scale,
    factor_scale,
    percent_scale,
    points_scale,
    show_estimate,
    show_speedup,
    time_scale,
)
from experiments.report.cells import NOTHING, how_far, scored_steps
from experiments.report.table_page import TITLES, accuracy_cell, columns_with_drift, models_cell

Figures = tuple[tuple[str, str, PickScale], ...]  # heading, figure of the summary, how it is written

RESULTS: Figures = (
    ("final\naccuracy", "final_accuracy", percent_scale),
    ("\ngain", "gain_pp", points_scale),
    ("\nTTA", "tta_s", time_scale),
    ("\nspeed-up", "speedup", factor_scale),
)
COSTS: Figures = (
    ("global\nre-clusterings", "global_reclusterings", count_scale),
    ("\ndown", "download_bytes", bytes_scale),
    ("\nup", "upload_bytes", bytes_scale),
    ("virtual\ntime", "virtual_time_s", time_scale),
    ("wall\ntime", "wall_s", time_scale),
)
WIDTH_WITHOUT_TERMINAL = 140


def print_summary(summary: dict[str, Any]) -> None:
    """The time-to-accuracy table; what it cost is a table of its own where there is no room beside."""
    console = _console()
    console.print(
        Text(f"{summary['name']}: time to accuracy, against {summary['reference_arm']}", style="italic")
    )
    whole = _figures_table(summary, RESULTS, COSTS)
    unbounded = console.options.update(width=10 * WIDTH_WITHOUT_TERMINAL)
    if Measurement.get(console, unbounded, whole).maximum <= console.width:
        console.print(whole)
    else:
        console.print(_figures_table(summary, RESULTS, ()))
        console.print()
        console.print(_figures_table(summary, (), COSTS))
    console.print(
        Text(
            "mean over seeds, [95 % interval]; "
            "* some seed never got there: its time is counted up to the end of the run",
            style="dim",
        )
    )


def print_path(what: str, path: Path) -> None:
    """Where something was written, on one line however long."""
    _console().print(Text(f"{what}: {path}"), soft_wrap=True)


def _figures_table(summary: dict[str, Any], results: Figures, costs: Figures) -> Table:
    """A row per arm; `results` with their intervals and how many seeds got there, `costs` without."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("\narm", overflow="fold")
    for title, _, _ in results:
        table.add_column(title, justify="right", overflow="fold")
    if results:
        table.add_column("\nreached", justify="right")
    for title, _, _ in costs:
        table.add_column(title, justify="right", overflow="fold")
    for name, arm in summary["arms"].items():
        cells = [name]
        for _, key, scale in results:
            show = show_speedup if key == "speedup" else show_estimate
            mean, interval = show(arm[key], scale(arm[key]["mean"] or 0.0))
            mark = "*" if key in ("tta_s", "speedup") and arm["reached"] < arm["seeds"] else ""
            cells.append(f"{mean}{mark}\n{interval}")
        if results:
            cells.append(f"{arm['reached']}/{arm['seeds']}")
        for _, key, scale in costs:
            cells.append(show_estimate(arm[key], scale(arm[key]["mean"] or 0.0))[0])
        table.add_row(*map(Text, cells))
    return table


def print_unfinished(table: dict[str, Any]) -> None:
    """A line for each experiment that is not done, with how far it is."""
    for column in table["experiments"]:
        if column["finished"] < column["planned"]:
            _console().print(Text(f"{column['name']}: {how_far(column)}"), soft_wrap=True)


def print_drift(table: dict[str, Any]) -> None:
    """Accuracy without drift cells and with them, beside published values, and models sent."""
    console = _console()
    columns, scored = [column["name"] for column in table["experiments"]], columns_with_drift(table)
    for figure, title in TITLES.items() if scored else ():
        written = {
            arm: [accuracy_cell(table, figure, arm, column) for column in scored] for arm in table["arms"]
        }
        rows = {
            arm: [
                f"{ours}\n({published}, {difference})" if published else ours
                for ours, published, difference in cells
            ]
            for arm, cells in written.items()
        }
        _print_by_arm(console, f"{table['name']}: {title}", scored, rows)
    rows = {arm: [models_cell(table, arm, column) for column in columns] for arm in table["arms"]}
    _print_by_arm(console, f"{table['name']}: models sent", columns, rows)
    console.print(
        Text(
            "mean ± standard deviation over seeds; in brackets the published value, and ours minus it",
            style="dim",
        )
    )
    for column in table["experiments"]:
        if steps := scored_steps(column):
            console.print(Text(f"{column['name']}: scored are {steps}"))


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH_WITHOUT_TERMINAL)


def _print_by_arm(
    console: Console, title: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]
) -> None:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("arm", overflow="fold")
    for column in columns:
        table.add_column(Text(column), justify="right", overflow="fold")
    for arm, cells in rows.items():
        if set(cells) != {NOTHING}:  # it has run
            table.add_row(*map(Text, (arm, *cells)))
    console.print(Text(title, style="italic"))
    console.print(table)
    console.print()
