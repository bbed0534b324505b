"""The command `python -m benchmarks`: measures workloads, and prints and plots their figures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from benchmarks import registry
from benchmarks.figures import Figure, Spread, Target
from benchmarks.plot import draw, refuse_undrawable
from experiments.cli.output import OutputFormat, as_text, print_json, print_table, say, wide_console
from experiments.cli.paths import path_for

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Workloads (default: all but the long ones), which --list describes: "
            f"{', '.join(registry.WORKLOADS)}.",
            metavar="ROW",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Repeats; a figure is their median.")] = 7,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Plot cost against size into this SVG file.",
            metavar="FILE.svg",
            parser=path_for("--plot"),
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the workloads and exit.")] = False,
    output: Annotated[
        OutputFormat, typer.Option("--format", help="A table, or JSON on stdout.")
    ] = OutputFormat.TABLE,
) -> None:
    """Measure the speed of driftscale against plain references.

    Driftscale and the references take turns; a figure is a median, shown with its quartiles. A missed target
    is shown, but is not an error. Some workloads need the extra `dev`: make setup.
    """
    if list_:
        about = [{"name": name, "what it is": item.about} for name, item in registry.WORKLOADS.items()]
        print_table(about, "", output)
        return
    workloads = registry.chosen(names or [])
    if plot is not None:
        refuse_undrawable(names or [], plot)
        registry.require(("matplotlib",), "--plot")
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


def print_figures(figures: Sequence[Figure]) -> None:
    """Print the value and the ratio of each figure above their quartiles; then the machine and versions."""
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
