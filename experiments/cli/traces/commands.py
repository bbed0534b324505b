"""The commands of `driftscale traces`: list the sources, and show a trace before it is played."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.output import OutputFormat, print_json, print_table
from experiments.cli.paths import Data, path_for

Format = Annotated[OutputFormat, typer.Option("--format", help="A table, or JSON on stdout.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Override a key: trace.window=month (repeatable).")
]

app = typer.Typer(no_args_is_help=True, help="Traces: which samples reach which client, and when.")


@app.command("list")
def list_sources(output: Format = OutputFormat.TABLE) -> None:
    """List the sources of traces."""
    from experiments.cli.parts_table import first_line
    from traces.sources import SOURCES

    rows = [{"name": name, "about": first_line(source)} for name, source in SOURCES]
    if output is OutputFormat.JSON:
        print_json(rows)
        return
    print_table([{"source": row["name"], "what it is": row["about"]} for row in rows])
    print("driftscale parts source shows the settings.")


@app.command("inspect")
def inspect(
    path: Annotated[
        Path, typer.Argument(help="A configuration (.toml).", metavar="CONFIG", parser=path_for("CONFIG"))
    ],
    overrides: Overrides = None,
    data: Data = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, max=2**32 - 1, help="Seed of the trace (default: the configuration's first)."
        ),
    ] = None,
    min_samples: Annotated[
        int,
        typer.Option(
            "--min-samples",
            min=1,
            help="Samples that a client needs in a window to count as observed, in the figures on label "
            "shift.",
        ),
    ] = 10,
    min_windows: Annotated[
        int, typer.Option("--min-windows", min=1, help="Count the clients observed in this many windows.")
    ] = 20,
    output: Format = OutputFormat.TABLE,
) -> None:
    """Show clients, samples, labels, arrivals, and how labels shift.

    Draws the trace of one seed, and trains nothing. If its source is label_replay, the figures are of the
    table's observations, of groups instead of clients, and the images are not needed. Label shift is measured
    on training samples, by L1 distances of label shares, from 0 to 2.
    """
    from experiments.cli.traces.inspected import inspected_config, print_inspected

    facts = inspected_config(path, overrides or [], data or [], seed, min_samples, min_windows)
    print_inspected(facts, output)
