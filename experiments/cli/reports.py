"""`driftscale report` and `compare`: the results of run directories, written and printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from emulator.errors import InputError
from experiments.cli.output import OutputFormat, print_json
from experiments.cli.tables import (
    print_drift,
    print_marked,
    print_path,
    print_section,
    print_sections,
    print_summary,
    print_unfinished,
)
from experiments.naming import abbreviated
from experiments.results.many_runs.measured_directory import MeasuredDirectory, RunReader
from experiments.results.many_runs.sections import compare, in_order
from experiments.results.report import write_plotly, write_results
from experiments.results.report.cells import run_counts
from experiments.results.run_directory import RunDirectory
from experiments.results.summary import Summary
from experiments.results.table import (
    TABLE_VERSION,
    build_sections,
    build_table,
    how_many_runs,
    recorded_name,
    run_directories,
    write_table,
)


def report_one(path: Path, output: OutputFormat) -> None:
    """Write the results of a run directory, and print its summary; InputError if no run is finished."""
    directory = RunDirectory(path)
    if not directory.finished_pairs():
        raise InputError(f"{path}: no run is finished: {run_counts(how_many_runs(directory))}")
    summary = write_results_of(directory)
    if output is OutputFormat.JSON:
        print_json(summary.as_json())
        return
    table = build_table(summary.name, [directory])
    if summary.finished.scored_steps is not None:
        print_drift(table, [column["name"] for column in table["experiments"]])
    if summary.accuracy:
        print_summary(summary)
    else:
        print_marked(table, [column["name"] for column in table["experiments"]])
    print_unfinished(table)
    if summary.accuracy:
        print_path("report", directory.report_path)


def report_all_of(folder: Path, directories: Sequence[RunDirectory], output: OutputFormat) -> None:
    """Write the results of each of these run directories and the table of all, and print the table."""
    write_plotly(folder)
    for directory in directories:
        if directory.finished_pairs():
            write_results_of(directory, shared_plotly=True)
    report_table(folder, directories, recorded_name(folder), output)


def report_table(folder: Path, directories: Sequence[RunDirectory], name: str, output: OutputFormat) -> None:
    """Write the table of these run directories into `folder`, headed by `name`, and print it."""
    sections = build_sections(directories)
    table = write_table(folder, directories, name, sections)
    if output is OutputFormat.JSON:
        print_json(table)
    else:
        print_sections(table, sections)
        print_unfinished(table)
        print_path("table", folder / "table.html")


def compare_directories(paths: Sequence[Path], output: OutputFormat) -> None:
    """Print the table of these run directories, and of those in the folders among `paths`.

    A folder's run directories are in the order of the keys in which they differ. A run directory that is
    named twice counts once.

    Raises:
        InputError: There are fewer than two run directories, one has unfinished runs, or they cannot be
            compared.
    """
    groups = [run_directories(path) or [RunDirectory(path)] for path in paths]
    for directory in (directory for group in groups for directory in group):
        directory.experiment()  # refuse what is no run directory
    if len({directory.path.resolve() for group in groups for directory in group}) < 2:
        raise InputError(
            f"compare {' '.join(map(str, paths))}: a single run directory; compare needs two or more, or a "
            f"folder of them"
        )
    measured, reader = dict[Path, MeasuredDirectory](), RunReader()
    for group in groups:
        for directory in group:
            _refuse_unfinished(directory)
        for item in in_order([MeasuredDirectory.read(item, str(item.path), reader) for item in group]):
            measured.setdefault(Path(item.name).resolve(), item)
    section = compare(list(measured.values()))
    if absent := _without_runs(list(measured.values())):
        section = replace(section, notes=[*section.notes, absent])
    if output is OutputFormat.JSON:
        print_json({"version": TABLE_VERSION, "sections": [section.as_json()]})
    else:
        print_section(section)


def _refuse_unfinished(directory: RunDirectory) -> None:
    """InputError that names the unfinished runs of the directory, if there are any.

    An arm of which no run was begun, as --arms leaves them, has none.
    """
    begun, seeds = {arm for arm, _ in directory.existing_runs()}, directory.seeds()
    missing = [
        f"{arm}, seed {seed}{' (failed)' if directory.failure(arm, seed) is not None else ''}"
        for arm in directory.arms()
        for seed in seeds
        if not directory.is_done(arm, seed) and (arm in begun or not begun)
    ]
    if missing:
        raise InputError(
            f"{directory.path}: not finished: {abbreviated(missing)}; finish them with driftscale run, or "
            f"driftscale report shows what there is"
        )


def _without_runs(directories: Sequence[MeasuredDirectory]) -> str:
    """A clause on the arms without a run in some of the directories; empty if there is no such arm."""
    played = [{run.arm for run in directory.runs} for directory in directories]
    absent = dict.fromkeys(
        arm
        for directory, arms in zip(directories, played, strict=True)
        for arm in directory.arms
        if arm not in arms
    )
    return f"no run was begun of {', '.join(absent)}" if absent else ""


def write_results_of(directory: RunDirectory, *, shared_plotly: bool = False) -> Summary:
    """Write the results of a run directory; returns its summary.

    If no run of the reference arm is finished, there is no report, and a note on standard error states that.
    `shared_plotly`: see `write_report`.
    """
    summary = write_results(directory, shared_plotly=shared_plotly)
    if not summary.accuracy:
        reference = summary.reference_arm
        note(f"no report: {directory.path} has no finished run of the reference arm {reference!r}")
    return summary


def note(text: str) -> None:
    """Print `text` on standard error."""
    print(text, file=sys.stderr)
