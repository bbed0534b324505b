"""`driftscale bench`: measures the workloads, and prints and plots their figures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.cli.output import OutputFormat, as_text, print_json, print_table, say, wide_console

if TYPE_CHECKING:
    from experiments.bench.figures import Figure, Spread, Target


def run_bench(names: Sequence[str], repeats: int, plot: Path | None, output: OutputFormat) -> None:
    """Measure the named workloads and print their figures; without names, all but the long ones.

    If `plot` is given, the figures are also plotted into that file.

    Raises:
        UnknownNameError: There is no workload of that name.
        InputError: A library is missing, or the plot cannot be drawn or written.
    """
    from experiments.bench.plot import draw, refuse_undrawable
    from experiments.bench.registry import chosen, require

    workloads = chosen(names)
    if plot is not None:
        refuse_undrawable(names, plot)
        require(("matplotlib",), "--plot")
    figures: list[Figure] = []
    for name, workload in workloads.items():
        _print_line(f"{name}: {workload.about}")
        start = time.perf_counter()
        figures += workload.load()(repeats, partial(_print_for, name))
        _print_line(f"{name}: done in {time.perf_counter() - start:.1f} s")
    if output is OutputFormat.JSON:
        print_json({"figures": [item.as_dict() for item in figures]})
    else:
        print_figures(figures)
    if plot is not None:
        draw(figures, plot)
        _print_line(f"plot: {plot}")


def print_workloads(output: OutputFormat) -> None:
    """Print the name and the description of every workload."""
    from experiments.bench.registry import WORKLOADS

    print_table([{"name": name, "what it is": item.about} for name, item in WORKLOADS.items()], "", output)


def print_figures(figures: Sequence[Figure]) -> None:
    """Print the value and the ratio of each figure above their quartiles; then the machine and versions."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("figure", "value", "ratio", "threads", "target", ""):
        table.add_column(heading, overflow="fold")
    for item in figures:
        table.add_row(
            Text(f"{item.name}\n").append(_against(item), style="dim"),
            f"{as_text(item.value)} {item.unit}\n{_quartiles(item.spread)}",
            "-" if item.ratio is None else f"{item.ratio:.3g}x\n{_quartiles(item.ratio_spread)}",
            str(item.threads),
            _target_text(item.target, item),
            item.verdict or "",
        )
    console = wide_console()
    console.print(table)
    first, repeats = figures[0], sorted({item.repeats for item in figures})
    versions = ", ".join(f"{name} {version}" for name, version in first.versions.items())
    say(f"medians of {' or '.join(map(str, repeats))} repeats, [quartiles]; {first.machine}; {versions}")


def _against(item: Figure) -> str:
    return item.about if item.against is None else f"against {item.against}"


def _quartiles(spread: Spread | None) -> str:
    return "" if spread is None else f"[{as_text(spread.low)}, {as_text(spread.high)}]"


def _target_text(target: Target | None, item: Figure) -> str:
    if target is None:
        return "-"
    unit = "x" if target.of == "ratio" else f" {item.unit}"
    stretch = "" if target.stretch is None else f"\nstretch {as_text(target.stretch)}{unit}"
    least = "at most" if target.of == "value" and item.better == "lower" else "at least"
    return f"{least} {as_text(target.at_least)}{unit}{stretch}"


def _print_for(name: str, text: str) -> None:
    _print_line(f"{name}: {text}")


def _print_line(text: str) -> None:
    say(text, aside=True)
