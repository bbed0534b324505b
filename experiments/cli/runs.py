"""What `run` and `report` do, for one experiment and for a folder of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.cli.output import OutputFormat, print_json
from experiments.cli.progress import make_progress
from experiments.cli.tables import print_drift, print_summary, print_table_of_experiments
from experiments.config import load_experiment, locator
from experiments.folder import load_folder, plan_folder, run_folder
from experiments.results import write_results
from experiments.run_directory import RunDirectory
from experiments.runner import Plan, plan_run, run_plan
from experiments.table import build_table, write_table

INTERRUPTED = "interrupted; finished runs are kept, the same command goes on with the rest"


def run_one(
    config: Path,
    settings: Sequence[str],
    seeds: Sequence[int] | None,
    arms: Sequence[str] | None,
    data: Path | None,
    out: Path | None,
    fresh: bool,
    output: OutputFormat,
) -> None:
    """Run one configuration, then report."""
    experiment = load_experiment(config, settings, seeds, data)
    folder = out or Path("runs") / experiment.name
    plan = plan_run(experiment, folder, arms, locator(data, config), fresh=fresh)
    try:
        with make_progress(plan.runs(), plan.earlier_s(), quiet=output is OutputFormat.JSON) as progress:
            run_plan(plan, progress)
    except KeyboardInterrupt:
        _note(INTERRUPTED)
        raise
    finally:
        # What is finished is summarised however the run ends.
        if _is_comparable(plan.directory):
            report_one(folder, output)


def run_all_of(
    folder: Path,
    settings: Sequence[str],
    seeds: Sequence[int] | None,
    arms: Sequence[str] | None,
    data: Path | None,
    out: Path | None,
    fresh: bool,
    output: OutputFormat,
) -> None:
    """Run every configuration of a folder, then make their table."""
    members = load_folder(folder, settings, seeds, arms, data)
    target = out or Path("runs") / folder.resolve().name
    plans = plan_folder(members, target, fresh=fresh)
    runs = [run for plan in plans for run in plan.runs()]
    earlier_s = {run: wall_s for plan in plans for run, wall_s in plan.earlier_s().items()}
    try:
        with make_progress(runs, earlier_s, quiet=output is OutputFormat.JSON) as progress:
            run_folder(plans, progress, _finish)
    except KeyboardInterrupt:
        _note(INTERRUPTED)
        raise
    finally:
        _report_table(target, [plan.directory for plan in plans], output)


def report_one(path: Path, output: OutputFormat) -> None:
    """Write what is made of a run directory, and print its summary."""
    directory = RunDirectory(path)
    summary = write_results(directory)
    if output is OutputFormat.JSON:
        print_json(summary)
        return
    if any(arm["accuracy_omitting_drift"]["mean"] is not None for arm in summary["arms"].values()):
        print_drift(build_table(summary["name"], [directory]))
    print_summary(summary, directory.report_path)


def report_all_of(folder: Path, directories: Sequence[RunDirectory], output: OutputFormat) -> None:
    """Write what is made of each of these run directories, and the table over them; print the table."""
    for directory in directories:
        if _is_comparable(directory):
            write_results(directory)
    _report_table(folder, directories, output)


def _report_table(folder: Path, directories: Sequence[RunDirectory], output: OutputFormat) -> None:
    table = write_table(folder, directories)
    if output is OutputFormat.JSON:
        print_json(table)
    else:
        print_table_of_experiments(table, folder / "table.html")


def _finish(plan: Plan) -> None:
    if _is_comparable(plan.directory):
        write_results(plan.directory)


def _is_comparable(directory: RunDirectory) -> bool:
    """Whether the reference arm has a finished run; says so where others have, and it has none."""
    finished = {arm for arm, _ in directory.finished_pairs()}
    reference = directory.arms()[0]
    if finished and reference not in finished:
        _note(f"no summary: {directory.path} has no finished run of the reference arm {reference!r}")
    return reference in finished


def _note(text: str) -> None:
    print(text, file=sys.stderr)
