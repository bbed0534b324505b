"""`driftscale report` and `compare`: the results of run directories, written and printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from emulator.errors import InputError
from experiments.cli.output import OutputFormat, note, print_json
from experiments.cli.tables import (
    print_conclusions,
    print_drift,
    print_marked,
    print_noted,
    print_path,
    print_section,
    print_sections,
    print_short,
    print_short_sections,
    print_summary,
    print_unfinished,
)
from experiments.results.many_runs.atlas import read_columns
from experiments.results.many_runs.atlas_table import atlas_json
from experiments.results.many_runs.directories import run_directories
from experiments.results.many_runs.folder_table import (
    TABLE_VERSION,
    build_table,
    how_many_runs,
    recorded_name,
    run_counts,
)
from experiments.results.many_runs.sections import compared
from experiments.results.pages import write_plotly, write_results
from experiments.results.pages.atlas_page import write_atlas
from experiments.results.pages.folder_page import folder_sentences, write_table
from experiments.results.pages.sentences import of_sections, sentences
from experiments.results.reading.not_recorded import DETECTION, NotRecordedError
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.detection.curves import curves_of
from experiments.results.statistics.summary import Summary
from experiments.results.tables.detection import at_rates


def report_one(path: Path, output: OutputFormat, *, explain: bool = False) -> None:
    """Write the results of a run directory, and print them; InputError if no run is finished.

    Printed are one table, the conclusions and the path of the report; with `explain`, all tables with notes.
    """
    directory = RunDirectory(path)
    summary = write_results_of(directory)
    if output is OutputFormat.JSON:
        print_json(summary.as_json())
        return
    table = build_table(summary.name, {directory: summary.finished})
    settings = directory.experiment()["report"]
    if explain:
        _print_explained(summary, table)
    else:
        print_short(summary, directory.arms(), settings)
    print_unfinished(table)
    print_conclusions(sentences(summary, settings))
    if summary.rows:
        print_path("report", directory.report_path)


def _print_explained(summary: Summary, table: dict[str, Any]) -> None:
    """Print all tables of a run directory with their notes; `table` is that of `build_table`."""
    columns = [column["name"] for column in table["experiments"]]
    if summary.finished.scored_steps is not None:
        print_drift(table, columns)
    if summary.rows:
        print_summary(summary)
    else:
        print_marked(table, columns)


def report_all_of(
    folder: Path, directories: Sequence[RunDirectory], output: OutputFormat, *, explain: bool = False
) -> None:
    """Write the results of each of these run directories and the table of all, and print the table."""
    _write_members(folder, directories)
    report_table(folder, directories, recorded_name(folder), output, explain=explain)


def write_page(path: Path, elsewhere: Path | None = None) -> tuple[str, Path]:
    """Write what `driftscale report` writes; returns what the page is called, and its path.

    Args:
        path: The run directory, or the folder of them.
        elsewhere: An empty folder to write into; nothing in `path` is changed then.

    Raises:
        InputError: In a run directory no run is finished, or none of the reference arm.
        OSError: Something cannot be read or written.
    """
    directory, folder = RunDirectory(path, elsewhere), elsewhere or path
    if members := run_directories(path, elsewhere):
        _write_members(folder, members)
        write_table(folder, members, recorded_name(path))
        return "table", folder / "table.html"
    write_results_of(directory, tell=_refuse)
    return "report", directory.report_path


def _refuse(line: str) -> None:
    raise InputError(line)


def _write_members(folder: Path, directories: Sequence[RunDirectory]) -> None:
    """Write what the table in `folder` links to: the results of those with finished runs, and plotly.js."""
    write_plotly(folder)
    for directory in directories:
        if directory.reported_pairs():
            write_results_of(directory, shared_plotly=True)


def report_table(
    folder: Path,
    directories: Sequence[RunDirectory],
    name: str,
    output: OutputFormat,
    *,
    explain: bool = False,
) -> None:
    """Write the table of these run directories into `folder`, headed by `name`, and print it.

    Printed are one table, the conclusions and the path of the page; with `explain`, all tables with notes.
    """
    table, shown = write_table(folder, directories, name)
    if output is OutputFormat.JSON:
        print_json(table)
        return
    if explain:
        print_sections(table, shown)
    else:
        print_short_sections(table, shown)
    print_unfinished(table)
    print_conclusions(folder_sentences(table, shown))
    print_path("table", folder / "table.html")


def compare_directories(paths: Sequence[Path], output: OutputFormat, *, explain: bool = False) -> None:
    """Print the table of these run directories, and of those in the folders among `paths`, and conclusions.

    With `explain`, notes follow the table. For the errors see `compared`.
    """
    section = compared(paths)
    if output is OutputFormat.JSON:
        print_json({"version": TABLE_VERSION, "sections": [section.as_json()]})
    else:
        print_section(section, with_notes=explain)
        print_conclusions(of_sections([section]))


def print_detection(path: Path, output: OutputFormat) -> None:
    """Print the detectors of a run directory, or of each in a folder, at the same rates of false alarms.

    Raises:
        NotRecordedError: The runs did not record decisions of detectors, with the truth.
        InputError: No run is finished; no detector was played at several thresholds, or had drifts to find.
    """
    from experiments.results.frames.result_frames import ResultFrames  # imports pandas

    shown = {}
    for item in ResultFrames.read(path).experiments:
        if item.summary.detection is None:
            raise NotRecordedError(str(item.directory.path), "decisions of detectors", DETECTION)
        curves = curves_of(item.summary.detection)
        if not curves:
            raise InputError(
                f"{item.directory.path}: no detector was played at several thresholds with drifts to find; "
                f"give one of training a list, as {{ kind = 'ddm', thresholds = [2, 3] }}, and score rounds "
                f"with drifts"
            )
        shown[str(item.directory.path)] = item.summary.name, curves
    if output is OutputFormat.JSON:
        print_json({place: [curve.as_json() for curve in curves] for place, (_, curves) in shown.items()})
        return
    for name, curves in shown.values():
        print_noted(name, at_rates(curves))


def report_atlas(folder: Path, output: OutputFormat, *, explain: bool = False) -> None:
    """Write the atlas of the run directories in `folder`, and print it, with `explain` with all its notes.

    For the errors see `read_columns`.
    """
    name, columns = folder.resolve().name, read_columns(folder)
    tables = write_atlas(folder, name, columns)
    if output is OutputFormat.JSON:
        print_json(atlas_json(name, columns))
        return
    for of, shown in tables.items():
        rows = [(row, [replace(cell, note="") for cell in cells]) for row, cells in shown.table.rows]
        notes = shown.notes if explain or of == "words" else ()
        print_noted(name, replace(shown, table=replace(shown.table, rows=rows), notes=notes))
    print_path("atlas", folder / "atlas.html")


def write_results_of(
    directory: RunDirectory, *, shared_plotly: bool = False, tell: Callable[[str], None] = note
) -> Summary:
    """Write the results of a run directory; returns its summary. InputError if no run is finished.

    If no run of the reference arm is finished, there is no report, and a line to `tell` states that.
    `shared_plotly`: see `write_report`.
    """
    if not directory.reported_pairs():
        raise InputError(f"{directory.path}: no run is finished: {run_counts(how_many_runs(directory))}")
    summary = write_results(directory, shared_plotly=shared_plotly)
    if not summary.rows:
        reference = summary.reference_arm
        tell(f"no report: {directory.path} has no finished run of the reference arm {reference!r}")
    return summary
