"""`driftscale profiles`: lists, shows, checks and imports device profiles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.completing import TraceOrConfiguration, arms, configurations
from experiments.cli.output import OutputFormat, as_text, print_json, print_table, say
from experiments.cli.paths import Data, path_for
from experiments.shipped import take

if TYPE_CHECKING:
    from device_profiles import DeviceProfile, Fleet

SHOWN_CLIENTS = 100_000
"""Clients drawn to show a profile: enough that its p99 lies between the true p98.9 and p99.1."""
PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
BAR_WIDTH = 40
READABLE = {
    "seconds_per_sample": ("ms/sample", 1e3),
    "download_bytes_per_s": ("down MB/s", 1e-6),
    "upload_bytes_per_s": ("up MB/s", 1e-6),
    "latency_s": ("latency ms", 1e3),
}
"""The heading of each column in a table, and the factor that converts its values to the unit there."""

app = typer.Typer(no_args_is_help=True, help="Device profiles: how fast the clients compute and communicate.")

Config = Annotated[
    Path,
    typer.Argument(
        help="A configuration (.toml), or the name of a shipped one.",
        metavar="CONFIG",
        parser=path_for("CONFIG"),
        autocompletion=configurations,
    ),
]
ArmName = Annotated[
    str | None, typer.Option("--arm", help="Whose model it is, where arms differ in it.", autocompletion=arms)
]
Rate = Annotated[float | None, typer.Option(min=0, help="Of this device's link, as you know it.")]

Format = Annotated[OutputFormat, typer.Option("--format", help="A table, or JSON on stdout.")]


@app.command("list")
def list_profiles(output: Format = OutputFormat.TABLE) -> None:
    """List the built-in profiles, with their medians."""
    from device_profiles import PROFILES, load_profile

    profiles = {name: load_profile(name) for name in PROFILES.names()}
    medians = {
        name: {column: float(value) for column, (value,) in _drawn(profile).quantiles([0.5]).items()}
        for name, profile in profiles.items()
    }
    if output is OutputFormat.JSON:
        print_json(
            [
                {"name": name, **_about(profile), "medians": medians[name]}
                for name, profile in profiles.items()
            ]
        )
        return
    rows = [
        {
            "name": name,
            **{title: medians[name][column] * unit for column, (title, unit) in READABLE.items()},
            "reference model": profile.reference_model,
        }
        for name, profile in profiles.items()
    ]
    print_table(rows, "Device profiles: medians, for training the reference model")
    for name, profile in profiles.items():
        say(f"{name}: {profile.source}")


@app.command("show")
def show_profile(
    profile: Annotated[str, typer.Argument(help="A built-in name, or the path of a table or a .toml.")],
    output: Format = OutputFormat.TABLE,
) -> None:
    """Show the quantiles of each column of a profile."""
    from device_profiles import load_profile

    shown = load_profile(profile)
    quantiles = _drawn(shown).quantiles([percent / 100 for percent in PERCENTILES])
    by_column = {
        column: {f"p{percent}": float(value) for percent, value in zip(PERCENTILES, values, strict=True)}
        for column, values in quantiles.items()
    }
    if output is OutputFormat.JSON:
        print_json({"name": shown.name, **_about(shown), "clients": SHOWN_CLIENTS, "quantiles": by_column})
        return
    for key, value in {"name": shown.name, **_about(shown)}.items():
        say(f"{key.replace('_', ' ')}: {as_text(value)}")
    _print_chart(by_column)


@app.command("check")
def check_profile(
    path: Annotated[
        Path, typer.Argument(help="A table or a .toml.", metavar="PATH", parser=path_for("PATH"))
    ],
    separator: Annotated[str | None, typer.Option(help="Between cells of a CSV: , ; | tab space.")] = None,
    decimal: Annotated[str | None, typer.Option(help="Decimal point of a CSV: a point or comma.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of a CSV, such as latin-1.")] = None,
    skip_lines: Annotated[int, typer.Option(help="Lines left out at the beginning of a CSV.")] = 0,
    columns: Annotated[str | None, typer.Option(help="Columns of a CSV without a header: a,b,c.")] = None,
    output: Format = OutputFormat.TABLE,
) -> None:
    """Check that a file is a valid profile, or show why not."""
    from device_profiles import read_profile
    from device_profiles.table import TableProfile
    from emulator.storage.table_paths import Given
    from experiments.cli.options import parse_settings

    names = [] if columns is None else [name.strip() for name in columns.split(",")]
    given = {"separator": separator, "decimal": decimal, "encoding": encoding, "columns": names}
    written = parse_settings(Given, {**given, "skip_lines": skip_lines}, "profiles check")
    profile = read_profile(path, written)
    _drawn(profile)
    notes = list(profile.ids.notes) if isinstance(profile, TableProfile) else []
    if output is OutputFormat.JSON:
        print_json({"ok": True, "path": str(path), "name": profile.name, **profile.counts, "notes": notes})
        return
    counts = ", ".join(f"{number:,} {what}" for what, number in profile.counts.items())
    say("\n".join([f"ok: {path}: {counts}", *notes]))


@app.command("template")
def print_template(
    path: TraceOrConfiguration,
    data: Data = None,
) -> None:
    """Print a CSV to fill in, a row a client.

    Ids are the names of a trace's clients, for devices.assign = "by_name". A column latency_s may be added.
    """
    import csv
    import io

    from device_profiles.fleet import COLUMNS, MAY_BE_ZERO
    from device_profiles.table import ID
    from experiments.cli.traces.views import client_names

    columns = [ID, *(name for name in COLUMNS if name not in MAY_BE_ZERO)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    empty = [""] * (len(columns) - 1)
    writer.writerows(
        [columns, *([name, *empty] for name in client_names(take(path, folders=False).path, data))]
    )
    say(text.getvalue().removesuffix("\n"))


@app.command("measure")
def measure_device(
    config: Config,
    arm: ArmName = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of torch; else its own number.")] = None,
    download_mbps: Rate = None,
    upload_mbps: Rate = None,
    latency_ms: Rate = None,
    data: Data = None,
) -> None:
    """Time this machine, and print its row of a fleet.

    Training steps of the configuration's model are timed. The row has a header; profiles add puts it into a
    fleet. Its seconds are the median of 30 repeats, sd_of_log the standard deviation of their logarithm.
    """
    from experiments.measuring.script import measure, script

    rates = {"download-mbps": download_mbps, "upload-mbps": upload_mbps, "latency-ms": latency_ms}
    text = script(take(config, folders=False).path, arm, data, is_for_here=True)
    row, notes = measure(text, {"threads": threads, **rates})
    say(row.removesuffix("\n"))
    say(notes.removesuffix("\n"), aside=True)


@app.command("script")
def print_script(config: Config, arm: ArmName = None, data: Data = None) -> None:
    """Print a file that times another device.

    It needs Python and torch: python measure.py --download-mbps 50 --upload-mbps 10 > row.csv
    """
    from experiments.measuring.script import script

    say(script(take(config, folders=False).path, arm, data, is_for_here=False).removesuffix("\n"))


@app.command("add")
def add_row(
    fleet: Annotated[Path, typer.Argument(help="A .csv; begun if missing.", parser=path_for("FLEET"))],
    row: Annotated[Path, typer.Argument(help="A measured row.", parser=path_for("ROW"))],
    name: Annotated[str, typer.Option("--id", help="The device_id that the row gets.")],
) -> None:
    """Add the measured row of a device to a fleet."""
    from device_profiles.adding import add_device

    say(f"{fleet}: {add_device(fleet, row, name).counts['devices']:,} devices")


@app.command("import-fedscale")
def import_fedscale_file(
    file: Annotated[
        Path,
        typer.Argument(
            help="client_device_capacity or client_behave_trace, as FedScale publishes them.",
            metavar="FILE",
            parser=path_for("FILE"),
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="The .parquet to write.", metavar="PATH", parser=path_for("--out")),
    ],
    output: Format = OutputFormat.TABLE,
) -> None:
    """Convert one of FedScale's two pickles into Parquet.

    No code of the pickle is executed.
    """
    from device_profiles.fedscale import import_fedscale

    imported = import_fedscale(file, out)
    if output is OutputFormat.JSON:
        print_json(
            {
                "kind": imported.kind,
                "path": str(imported.path),
                "devices": imported.num_devices,
                "rows": imported.num_rows,
                "empty_intervals_dropped": imported.num_empty_intervals,
            }
        )
        return
    say(f"{imported.path}: {imported.kind} of {imported.num_devices:,} devices, {imported.num_rows:,} rows")
    if imported.num_empty_intervals:
        say(f"dropped {imported.num_empty_intervals:,} intervals that end where they start")


def _about(profile: DeviceProfile) -> dict[str, object]:
    return {
        "reference_model": profile.reference_model,
        "reference_flops": profile.reference_flops,
        "source": profile.source,
    }


def _drawn(profile: DeviceProfile) -> Fleet:
    """A fleet of `SHOWN_CLIENTS` drawn from `profile`, the same at every call."""
    from emulator.seeding import RandomStreams

    return profile.draw(SHOWN_CLIENTS, RandomStreams(0).generator("profiles show"))


def _print_chart(by_column: dict[str, dict[str, float]]) -> None:
    """Print each quantile with a bar, relative to the column's highest.

    `by_column` maps a column to its quantiles by name, such as p50. A column with equal quantiles has one
    line.
    """
    from rich.bar import Bar
    from rich.console import Console
    from rich.table import Table

    chart = Table(box=None, pad_edge=False)
    for title in ("column", "", "value"):
        chart.add_column(title, justify="right" if title == "value" else "left", no_wrap=True)
    chart.add_column(min_width=BAR_WIDTH // 2)
    for column, values in by_column.items():
        highest = max(values.values())
        if len(set(values.values())) == 1:
            values = {"all": highest}
        for index, (percentile, value) in enumerate(values.items()):
            bar = Bar(highest or 1.0, 0, value, width=BAR_WIDTH)
            chart.add_row("" if index else column, percentile, as_text(value), bar)
        chart.add_row()
    Console().print(chart)
