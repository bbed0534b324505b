"""What the commands show in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from emulator.errors import UnknownNameError
from experiments.cli.output import OutputFormat, print_json, print_table
from experiments.report.cells import NOTHING
from experiments.report.formats import (
    PickScale,
    bytes_scale,
    count_scale,
    factor_scale,
    percent_scale,
    points_scale,
    show_estimate,
    time_scale,
)
from experiments.report.table_page import TITLES, accuracy_cell, models_cell

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from emulator.plugins import Registry
    from experiments.build import World
    from experiments.config import Experiment

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


def print_summary(summary: dict[str, Any], report: Path) -> None:
    """The time-to-accuracy table, and where the report is. What it cost is a table of its own where the
    terminal has no room beside."""
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
    console.print(Text(f"report: {report}"), soft_wrap=True)


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
            mean, interval = show_estimate(arm[key], scale(arm[key]["mean"] or 0.0))
            mark = "*" if key in ("tta_s", "speedup") and arm["reached"] < arm["seeds"] else ""
            cells.append(f"{mean}{mark}\n{interval}")
        if results:
            cells.append(f"{arm['reached']}/{arm['seeds']}")
        for _, key, scale in costs:
            cells.append(show_estimate(arm[key], scale(arm[key]["mean"] or 0.0))[0])
        table.add_row(*map(Text, cells))
    return table


def print_table_of_experiments(table: dict[str, Any], page: Path) -> None:
    """What `print_drift` does of all experiments, how far they are, and where the page is."""
    print_drift(table)
    console = _console()
    for column in table["experiments"]:
        if column["finished"] < column["planned"]:
            console.print(
                Text(f"{column['name']}: {column['finished']} of {column['planned']} runs are finished")
            )
    console.print(Text(f"table: {page}"), soft_wrap=True)


def print_drift(table: dict[str, Any]) -> None:
    """Accuracy without drift cells and with them, beside published values, and models sent."""
    console = _console()
    columns = [column["name"] for column in table["experiments"]]
    for figure, title in TITLES.items():
        written = {
            arm: [accuracy_cell(table, figure, arm, column) for column in columns] for arm in table["arms"]
        }
        rows = {
            arm: [
                f"{ours}\n{published} {difference}" if published else ours
                for ours, published, difference in cells
            ]
            for arm, cells in written.items()
        }
        _print_by_arm(console, f"{table['name']}: {title}", columns, rows)
    rows = {arm: [models_cell(table, arm, column) for column in columns] for arm in table["arms"]}
    _print_by_arm(console, f"{table['name']}: models sent", columns, rows)
    console.print(
        Text(
            "mean ± standard deviation over seeds; below it the published value, and ours minus it",
            style="dim",
        )
    )


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


def print_check(experiment: Experiment, world: World, output: OutputFormat) -> None:
    """What the configuration comes to."""
    import numpy as np

    clients = np.arange(world.trace.num_clients)
    facts: dict[str, object] = {
        "name": experiment.name,
        "arms": ", ".join(arm.name for arm in experiment.arm),
        "seeds": ", ".join(map(str, experiment.seeds)),
        "clients": world.trace.num_clients,
        "labels": world.trace.num_labels,
        "samples in the trace": len(world.trace),
        "last data step": world.trace.last_step,
        "device profile": world.profile.name,
        "model factor": _model_factors(experiment, world),
        **{f"availability: {name}": count for name, count in world.availability.facts.items()},
        "online at the start": int(world.availability.online(clients, 0.0).sum()),
        "client updates in all": experiment.round.participants
        * experiment.round.rounds
        * len(experiment.arm)
        * len(experiment.seeds),
    }
    if output is OutputFormat.JSON:
        print_json(facts)
        return
    print_table([{"what": key, "value": str(value)} for key, value in facts.items()], "ok")


def _model_factors(experiment: Experiment, world: World) -> float | str:
    """The one that all arms have, or each arm's."""
    from experiments.build import resolve_model_factor

    factors = {arm.name: resolve_model_factor(experiment, arm, world) for arm in experiment.arm}
    if len(set(factors.values())) == 1:
        return next(iter(factors.values()))
    return ", ".join(f"{arm} {factor:.4g}" for arm, factor in factors.items())


def print_parts(kind: str | None, output: OutputFormat) -> None:
    """Names, parameters with defaults, and first lines of the parts of one kind, or of all."""
    registries = _registries()
    if kind is not None and kind not in registries:
        raise UnknownNameError("kind of part", kind, registries)
    parts = [
        (name, part_name, part)
        for name, registry in registries.items()
        if kind in (None, name)
        for part_name, part in registry
    ]
    if output is OutputFormat.JSON:
        print_json(
            [
                {"kind": name, "name": part_name, "about": _first_line(part), "parameters": _parameters(part)}
                for name, part_name, part in parts
            ]
        )
        return
    if kind is None:
        rows = [
            {"kind": name, "name": part_name, "what it is": _first_line(part)}
            for name, part_name, part in parts
        ]
        print_table(rows)
        print("driftscale parts KIND shows the parameters.")
        return
    for _, part_name, part in parts:
        print(f"{part_name}: {_first_line(part)}")
        parameters = [{"parameter": key, **facts} for key, facts in _parameters(part).items()]
        if parameters:
            print_table(parameters)
        print()


def _registries() -> dict[str, Registry[Any]]:
    from coordinator.aggregators import AGGREGATORS
    from coordinator.clusterers import CLUSTERERS
    from coordinator.detectors import DETECTORS
    from coordinator.memories import MEMORIES
    from coordinator.pacing import PACINGS
    from coordinator.schedules import SCHEDULES
    from coordinator.selectors import SELECTORS
    from executor.models import MODELS
    from executor.rules import RULES
    from traces.availability import AVAILABILITIES
    from traces.concepts import CONCEPT_SETS
    from traces.drift import DRIFTS
    from traces.sources import SOURCES

    return {
        "clusterer": CLUSTERERS,
        "detector": DETECTORS,
        "selector": SELECTORS,
        "memory": MEMORIES,
        "solver": RULES,
        "aggregator": AGGREGATORS,
        "pacing": PACINGS,
        "schedule": SCHEDULES,
        "model": MODELS,
        "source": SOURCES,
        "drift": DRIFTS,
        "concepts": CONCEPT_SETS,
        "availability": AVAILABILITIES,
    }


def _first_line(part: Any) -> str:
    return " ".join((part.__doc__ or "").strip().split("\n\n")[0].split())


def _about(field: FieldInfo) -> str:
    """What a parameter means, and its choices if it has some."""
    choices = [str(choice) for choice in get_args(field.annotation) if isinstance(choice, str)]
    among = f" (one of {', '.join(choices)})" if len(choices) > 1 else ""
    return " ".join((field.description or "").split()) + among


def _parameters(part: Any) -> dict[str, dict[str, str]]:
    """By name, each parameter's default and what it means."""
    return {
        name: {
            "default": "required"
            if field.is_required()
            else str(field.get_default(call_default_factory=True)),
            "about": _about(field),
        }
        for name, field in part.Parameters.model_fields.items()
    }
