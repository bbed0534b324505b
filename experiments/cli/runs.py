"""What `run` and `report` do, for one experiment and for a folder of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from emulator.errors import ConfigurationError, EmulatorError, InputError, InterruptionError, RunError
from emulator.storage.own_files import path_below
from executor.gloo import Job, here
from experiments.cli.output import OutputFormat, print_json
from experiments.cli.progress import make_progress
from experiments.cli.signals import EXIT_CODE, stop_on_signals
from experiments.cli.tables import print_drift, print_path, print_summary, print_unfinished
from experiments.cli.workers import Scale, scaled_out
from experiments.config import load_experiment, locator
from experiments.jobs.command import run_side_by_side
from experiments.results.report import write_results
from experiments.results.report.cells import how_far
from experiments.results.run_directory import RunDirectory
from experiments.results.summary import Summary
from experiments.results.table import build_table, how_many_runs, recorded_name, write_table
from experiments.running.folder import load_folder, plan_folder, refuse_failed, run_folder
from experiments.running.locking import locked
from experiments.running.plan import Plan, PlannedRun, plan_run
from experiments.running.replicas import follow, joined
from experiments.running.runner import run_plan
from experiments.running.stop import Stop

INTERRUPTED = (
    "interrupted; finished runs are kept, the same command{} goes on with the rest, from the last checkpoint"
)


@dataclass(frozen=True)
class RunCommand:
    """What `driftscale run` was told; `config` is a configuration, or a folder of them."""

    config: Path
    settings: Sequence[str]
    seeds: Sequence[int] | None
    arms: Sequence[str] | None
    data: Path | None
    out: Path | None
    fresh: bool
    scale: Scale
    output: OutputFormat


def run_one(asked: RunCommand) -> None:
    """Run one configuration, then report; the ranks of torchrun but the first follow that one."""
    job = here()
    if job is not None and asked.scale != Scale():
        raise ConfigurationError(
            "--jobs and --cluster play several runs at once; under torchrun all ranks play each run"
        )
    if job is not None and job.rank > 0:
        _follow(job, asked)
        return
    experiment = load_experiment(asked.config, asked.settings, asked.seeds, asked.data)
    folder = asked.out or Path("runs") / experiment.name
    locate = locator(asked.data, asked.config)
    with _stoppable(asked, None if job is None else job.rank) as stop, locked(folder):
        plan = plan_run(experiment, folder, asked.arms, locate, fresh=asked.fresh, file=str(asked.config))

        def report() -> None:
            if plan.directory.finished_pairs():
                report_one(folder, asked.output)

        with (
            _reported(report),
            scaled_out(asked.scale, [plan], asked.data) as (crew, at_once),
            make_progress(
                plan.runs(), _earlier_s([plan]), quiet=asked.output is OutputFormat.JSON, at_once=at_once
            ) as progress,
            nullcontext() if job is None else joined(job, stop) as ranks,
        ):
            if crew is None:
                run_plan(plan, progress, stop, ranks)
            else:
                outcome = run_side_by_side([plan], crew, progress, stop)[experiment.name]
                if outcome is not None:
                    raise outcome


def _follow(job: Job, asked: RunCommand) -> None:
    """Play what rank 0 leads to, and end as it does: what went wrong it says alone, but where it is lost."""
    with stop_on_signals(job.rank) as stop, joined(job, stop) as ranks:
        try:
            with ranks.telling(ends=True):
                follow(ranks, locator(asked.data, asked.config), Path(gettempdir()))
        except BaseException as error:
            if ranks.is_alone:
                raise
            code = EXIT_CODE if isinstance(error, KeyboardInterrupt) else RunError.exit_code
            os._exit(error.exit_code if isinstance(error, EmulatorError) else code)


def run_all_of(asked: RunCommand) -> None:
    """Run every configuration of a folder, then make their table."""
    job = here()
    if job is not None and job.rank > 0:
        raise SystemExit(InputError.exit_code)  # rank 0 says why
    if job is not None:
        raise InputError(f"{asked.config}: is a folder; under torchrun, run one configuration at a time")
    members = load_folder(asked.config, asked.settings, asked.seeds, asked.arms, asked.data)
    name = asked.config.resolve().name
    target = asked.out or Path("runs") / name
    with ExitStack() as held:
        stop = held.enter_context(_stoppable(asked))
        for member in members:
            held.enter_context(locked(path_below(target, member.experiment.name, is_folder=True)))
        plans = plan_folder(members, target, fresh=asked.fresh)
        runs = [run for plan in plans for run in plan.runs()]

        def report() -> None:
            _report_table(target, [plan.directory for plan in plans], name, asked.output)

        with (
            _reported(report),
            scaled_out(asked.scale, plans, asked.data) as (crew, at_once),
            make_progress(
                runs, _earlier_s(plans), quiet=asked.output is OutputFormat.JSON, at_once=at_once
            ) as progress,
        ):
            if crew is None:
                run_folder(plans, progress, _finish, stop)
            else:
                refuse_failed(plans, run_side_by_side(plans, crew, progress, stop, _finish), progress)


def _earlier_s(plans: Sequence[Plan]) -> dict[PlannedRun, float]:
    """Wall seconds of the runs that were finished before."""
    return {run: timing.wall_s for plan in plans for run, timing in plan.earlier().items()}


@contextmanager
def _stoppable(asked: RunCommand, rank: int | None = None) -> Iterator[Stop]:
    """A `Stop` that signals ask for; InterruptionError, which says how to go on, where they end the
    command."""
    with stop_on_signals(rank) as stop:
        try:
            yield stop
        except KeyboardInterrupt as error:
            raise InterruptionError(
                INTERRUPTED.format(", without --fresh," if asked.fresh else "")
            ) from error


@contextmanager
def _reported(report: Callable[[], None]) -> Iterator[None]:
    """What is finished is summarised however the runs within it end; how they ended is what counts."""
    try:
        yield
    except BaseException:
        _report_if_possible(report)
        raise
    report()


def _report_if_possible(report: Callable[[], None]) -> None:
    """A full disk has no room for a report either."""
    try:
        report()
    except (OSError, EmulatorError) as error:
        with suppress(OSError):
            _note(f"no report: {error}")


def report_one(path: Path, output: OutputFormat) -> None:
    """Write what is made of a run directory, and print its summary."""
    directory = RunDirectory(path)
    if not directory.finished_pairs():
        raise InputError(f"{path}: no run is finished: {how_far(how_many_runs(directory))}")
    summary = _write_results(directory)
    if output is OutputFormat.JSON:
        print_json(summary.as_json())
        return
    table = build_table(summary.name, [directory])
    if summary.finished.scored_steps is not None:
        print_drift(table)
    if summary.accuracy:
        print_summary(summary)
    print_unfinished(table)
    if summary.accuracy:
        print_path("report", directory.report_path)


def report_all_of(folder: Path, directories: Sequence[RunDirectory], output: OutputFormat) -> None:
    """Write what is made of each of these run directories, and the table over them; print the table."""
    for directory in directories:
        if directory.finished_pairs():
            _write_results(directory)
    _report_table(folder, directories, recorded_name(folder), output)


def _report_table(folder: Path, directories: Sequence[RunDirectory], name: str, output: OutputFormat) -> None:
    table = write_table(folder, directories, name)
    if output is OutputFormat.JSON:
        print_json(table)
    else:
        print_drift(table)
        print_unfinished(table)
        print_path("table", folder / "table.html")


def _finish(plan: Plan) -> None:
    if plan.directory.finished_pairs():
        _write_results(plan.directory)


def _write_results(directory: RunDirectory) -> Summary:
    """Says so where the runs that have finished cannot be compared with the reference arm."""
    summary = write_results(directory)
    if not summary.accuracy:
        reference = summary.reference_arm
        _note(f"no report: {directory.path} has no finished run of the reference arm {reference!r}")
    return summary


def _note(text: str) -> None:
    print(text, file=sys.stderr)
