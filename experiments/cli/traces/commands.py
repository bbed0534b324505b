"""The commands of `driftscale traces`: list the sources, make trace folders, show a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import completing
from experiments.cli.completing import TraceOrConfiguration
from experiments.cli.output import OutputFormat, print_json, print_table, say
from experiments.cli.paths import Data, path_for
from experiments.cli.traces import build
from experiments.shipped import take

Format = Annotated[OutputFormat, typer.Option("--format", help="A table, or JSON on stdout.")]
Since = Annotated[
    str | None, typer.Option("--since", help="Leave out earlier rows: a date, a step or a rank.")
]
Until = Annotated[str | None, typer.Option("--until", help="Leave out rows from that date, step or rank on.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Override a key: trace.window=month (repeatable).",
        autocompletion=completing.keys,
    ),
]

app = typer.Typer(no_args_is_help=True, help="Traces: which samples reach which client, and when.")
build.register(app)


@app.command("list")
def list_sources(output: Format = OutputFormat.TABLE) -> None:
    """List the sources of traces."""
    from experiments.part_facts import summary_line
    from traces.sources import SOURCES

    rows = [{"name": name, "about": summary_line(source)} for name, source in SOURCES]
    if output is OutputFormat.JSON:
        print_json(rows)
        return
    print_table([{"source": row["name"], "what it is": row["about"]} for row in rows])
    say("driftscale parts source shows the settings.")


@app.command("inspect")
def inspect(
    path: TraceOrConfiguration,
    overrides: Overrides = None,
    data: Data = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, max=2**32 - 1, help="Seed of the trace (default: the configuration's first)."
        ),
    ] = None,
    step_width: Annotated[
        str | None,
        typer.Option(
            "--step-width",
            help="Width of a window of a trace folder: days (default: 1), or month, quarter or year, of a "
            "column time; ranks, of a column order; steps, of a column step.",
            metavar="WIDTH",
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window",
            help="Width of a window: as --step-width, of a trace folder; data steps, of a configuration; or "
            "auto, as the page takes it by default: the narrowest that shows half of the clients twice, "
            "of 1, 2, 7 and 14 days, month, quarter and year, or 1, 2, 5, 10, 20 and so on of steps or "
            "ranks.",
            metavar="WIDTH",
        ),
    ] = None,
    since: Since = None,
    until: Until = None,
    min_samples: Annotated[
        int,
        typer.Option(
            "--min-samples",
            min=1,
            help="Samples that a client needs in a window to count as observed, in the figures on label "
            "shift and on the page.",
        ),
    ] = 10,
    min_windows: Annotated[
        int, typer.Option("--min-windows", min=1, help="Count the clients observed in this many windows.")
    ] = 20,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            help="Write a page with label shares over time, and with the distance of every client from its "
            "start.",
            metavar="FILE.html",
            parser=path_for("--html"),
        ),
    ] = None,
    clients: Annotated[
        str | None,
        typer.Option("--clients", help="Clients to draw on the page: a,b,c (default: a few)."),
    ] = None,
    output: Format = OutputFormat.TABLE,
) -> None:
    """Show clients, samples, labels, arrivals, and how labels shift.

    Shows the rows of a trace folder as they are in the file, or draws the trace of one seed of a
    configuration, and trains nothing. If its source is label_replay, the figures are of the table's
    observations, of groups instead of clients, and the images are not needed. Label shift is measured on
    training samples, by L1 distances of label shares, from 0 to 2.
    """
    from experiments.cli.traces.inspecting import Request, inspect_trace

    taken = take(path, folders=False)
    inspect_trace(
        Request(
            path=taken.path,
            note=taken.note,
            overrides=overrides or [],
            data=data or [],
            seed=seed,
            step_width=step_width,
            window=window,
            since=since,
            until=until,
            min_samples=min_samples,
            min_windows=min_windows,
            html=html,
            clients=clients,
            output=output,
        )
    )


@app.command("export")
def export(
    path: TraceOrConfiguration,
    to: Annotated[str | None, typer.Option("--to", help="Format: parquet.", metavar="FORMAT")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write.", metavar="FILE.parquet", parser=path_for("--out")),
    ] = None,
    overrides: Overrides = None,
    data: Data = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            max=2**32 - 1,
            help="Seed of the trace (default: the configuration's first; 0 of a folder).",
        ),
    ] = None,
    step_width: Annotated[
        str | None,
        typer.Option(
            "--step-width",
            help="Width of a data step of a trace folder: days (default: 1), or month, quarter or year, of a "
            "column time; ranks, of a column order; steps, of a column step.",
            metavar="WIDTH",
        ),
    ] = None,
    since: Since = None,
    until: Until = None,
    rounds_per_step: Annotated[
        int | None,
        typer.Option("--rounds-per-step", help="Rounds of a data step of a trace folder (default: 10)."),
    ] = None,
    retain_rounds: Annotated[
        str | None,
        typer.Option(
            "--retain-rounds",
            help="Rounds for which clients of a trace folder keep a sample (default: 50), or all.",
            metavar="ROUNDS",
        ),
    ] = None,
    output: Format = OutputFormat.TABLE,
) -> None:
    """Write a trace as one table for other tools.

    There is a row for each sample that a client holds: its client, the data steps from which on the client
    holds it (step) and no longer (expiry), that of the sample's first arrival, split, label, the true concept
    where it is known, and the features as models see them. The names of classes are in the schema.
    """
    from experiments.cli.traces.exporting import Request, export_trace

    taken = take(path, folders=False)
    export_trace(
        Request(
            path=taken.path,
            note=taken.note,
            to=to,
            out=out,
            overrides=overrides or [],
            data=data or [],
            seed=seed,
            step_width=step_width,
            since=since,
            until=until,
            rounds_per_step=rounds_per_step,
            retain_rounds=retain_rounds,
            output=output,
        )
    )


@app.command("check")
def check(
    folder: Annotated[Path, typer.Argument(help="A trace folder.", metavar="DIR", parser=path_for("DIR"))],
    output: Format = OutputFormat.TABLE,
) -> None:
    """Find every violation of the format in a trace folder.

    Hashes both data files and compares their digests with those in trace.toml, and examines every row and
    every sample. A violation is a line with the file and the row or the key, and the exit code is 2. A remark
    is on what is allowed, but may be a mistake or slows a run down.
    """
    from experiments.cli.traces.checked import print_checked

    print_checked(folder, output)
