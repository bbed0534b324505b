"""`driftscale cluster`: the keys, the scheduler and the workers that `run --cluster` uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.output import say
from experiments.cli.paths import path_for

app = typer.Typer(
    no_args_is_help=True,
    help="The scheduler, workers and keys of a cluster.",
)

KEYS = typer.Option(
    "--keys",
    help="Folder of the cluster's keys (default: those in dask's configuration).",
    metavar="DIR",
    parser=path_for("--keys"),
)
INSECURE = typer.Option(
    "--insecure-cluster",
    help="Allow tcp:// beyond this machine: anyone who can reach the port can command the workers.",
)
Keys = Annotated[Path | None, KEYS]
Insecure = Annotated[bool, INSECURE]


@app.command("keys")
def make_keys(
    folder: Annotated[Path, typer.Argument(help="Folder to create.", metavar="DIR", parser=path_for("DIR"))],
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace existing keys.")] = False,
) -> None:
    """Create the keys of a cluster, valid for ten years.

    The scheduler, the workers and run --cluster need the same keys; anyone who can read them can command the
    cluster.
    """
    from experiments.cluster.keys import write_keys

    write_keys(folder, fresh=fresh)
    say(f"keys: {folder}")


@app.command()
def scheduler(
    keys: Keys = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host", help="Address to listen on (default: all interfaces with keys, 127.0.0.1 without)."
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port (default: any free one).")] = 0,
    scheduler_file: Annotated[
        Path | None,
        typer.Option(
            "--scheduler-file",
            help="File to write the address to, for workers and run --cluster.",
            metavar="FILE",
            parser=path_for("--scheduler-file"),
        ),
    ] = None,
    insecure: Insecure = False,
) -> None:
    """Start a scheduler, which assigns runs to workers. Ctrl-C stops it."""
    from experiments.cluster.serve import SchedulerCommand, serve_scheduler

    serve_scheduler(SchedulerCommand(keys, host, port, scheduler_file, insecure), _note)


@app.command()
def worker(
    address: Annotated[
        str,
        typer.Argument(
            help="The scheduler: tls://HOST:PORT, tcp://HOST:PORT or a scheduler file.", metavar="ADDRESS"
        ),
    ],
    keys: Keys = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            help="Folder on this machine that holds the data of configurations, if it differs from the "
            "command's (repeatable).",
            metavar="PATH",
            parser=path_for("--data"),
        ),
    ] = None,
    insecure: Insecure = False,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, help="Worker processes; each plays one run at a time.")
    ] = 1,
    local_directory: Annotated[
        Path | None,
        typer.Option(
            "--local-directory",
            help="Folder for scratch files (default: a temporary one).",
            metavar="DIR",
            parser=path_for("--local-directory"),
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", help="Address to listen on (default: the one that reaches the scheduler)."),
    ] = None,
) -> None:
    """Start workers, which play the runs assigned to them.

    At Ctrl-C or SIGTERM, their runs are stored first, which may take two minutes; a second signal stops them
    at once.
    """
    from experiments.cluster.serve import WorkerCommand, serve_workers

    serve_workers(WorkerCommand(address, keys, data or [], insecure, jobs, local_directory, host), _note)


def _note(text: str) -> None:
    say(text, aside=True)
