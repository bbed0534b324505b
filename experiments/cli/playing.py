"""Plays the runs of a command, in this process or by workers; reports the results even after a failure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir

from emulator.errors import EmulatorError, InterruptionError, RunError
from emulator.storage.own_files import path_below
from executor.gloo import Job
from experiments.cli.output import OutputFormat
from experiments.cli.progress import make_progress
from experiments.cli.reports import note, report_one, report_table, write_results_of
from experiments.cli.runs import RunCommand
from experiments.cli.signals import EXIT_CODE, stop_on_signals
from experiments.cli.workers import scaled_out
from experiments.config import Experiment
from experiments.jobs.command import run_in_parallel
from experiments.locating import locator
from experiments.results.report import plotly_path, write_plotly
from experiments.running.command_facts import command_facts
from experiments.running.folder import plan_folder, refuse_failed, run_folder
from experiments.running.locking import locked
from experiments.running.machine import allow_open_files
from experiments.running.members import Member
from experiments.running.plan import Plan, PlannedRun, plan_run
from experiments.running.replicas import follow, joined
from experiments.running.runner import run_plan
from experiments.running.sharing import sharing
from experiments.running.stop import Stop

INTERRUPTED = (
    "interrupted; finished runs are kept; the same command{} resumes the rest from the last checkpoint"
)


def play_one(command: RunCommand, experiment: Experiment, job: Job | None) -> None:
    """Play the unfinished runs of a configuration, then report those that are finished.

    Under torchrun, `job` is this rank's place in its job, and all ranks play each run together.
    """
    folder = command.out or Path("runs") / experiment.name
    locate = locator(command.data, command.config)
    with _stoppable(command, None if job is None else job.rank) as stop, locked(folder):
        plan = plan_run(
            experiment, folder, command.arms, locate, fresh=command.fresh, file=str(command.config)
        )
        [plan] = _with_command([plan], command)

        def report() -> None:
            if plan.directory.finished_pairs():
                report_one(folder, command.output)

        with (
            _reported(report),
            scaled_out(command.scale, [plan], command.data) as (crew, at_once),
            make_progress(
                plan.runs(), _earlier_s([plan]), quiet=command.output is OutputFormat.JSON, at_once=at_once
            ) as progress,
            nullcontext() if job is None else joined(job, stop) as ranks,
        ):
            if crew is None:
                run_plan(plan, progress, stop, ranks)
            else:
                outcome = run_in_parallel([plan], crew, progress, stop)[experiment.name]
                if outcome is not None:
                    raise outcome


def follow_first(job: Job, command: RunCommand) -> None:
    """Play the runs that rank 0 announces, and exit as rank 0 does.

    Prints no error, since rank 0 does, unless another rank is lost.
    """
    with stop_on_signals(job.rank) as stop, joined(job, stop) as ranks:
        try:
            with ranks.telling(ends=True):
                follow(ranks, locator(command.data, command.config), Path(gettempdir()))
        except BaseException as error:
            if ranks.is_alone:
                raise
            code = EXIT_CODE if isinstance(error, KeyboardInterrupt) else RunError.exit_code
            os._exit(error.exit_code if isinstance(error, EmulatorError) else code)


def play_members(command: RunCommand, members: Sequence[Member], name: str, folder: str) -> None:
    """Play the unfinished runs of several configurations, then make one table of all of them.

    They are those of a folder, or the cells of a sweep. `name`, of the folder or of the swept configuration,
    heads the table; the default --out is `folder` in `runs`.
    """
    target = command.out or Path("runs") / folder
    with ExitStack() as stack:
        stop = stack.enter_context(_stoppable(command))
        allow_open_files(len(members), "run directories")  # each has a lock
        for member in members:
            stack.enter_context(locked(path_below(target, member.experiment.name, is_folder=True)))
        plotly_path(target)  # refuse a link before anything is done
        plans = _with_command(plan_folder(members, target, fresh=command.fresh), command)
        write_plotly(target)
        runs = [run for plan in plans for run in plan.runs()]

        def report() -> None:
            report_table(target, [plan.directory for plan in plans], name, command.output)

        with (
            _reported(report),
            scaled_out(command.scale, plans, command.data) as (crew, at_once),
            make_progress(
                runs, _earlier_s(plans), quiet=command.output is OutputFormat.JSON, at_once=at_once
            ) as progress,
            sharing(plans, _report_finished, progress.note) as finish,
        ):
            if crew is None:
                run_folder(plans, progress, finish, stop)
            else:
                refuse_failed(plans, run_in_parallel(plans, crew, progress, stop, finish), progress)


def _with_command(plans: Sequence[Plan], command: RunCommand) -> Sequence[Plan]:
    """The plans, with the facts on this command that their manifests record if any run is unfinished."""
    if all(plan.directory.is_done(*pair) for plan in plans for pair in plan.pairs()):
        return plans
    folder = command.config if command.config.is_dir() else command.config.parent
    facts = command_facts(["driftscale", *sys.argv[1:]], command.started, folder)
    return [replace(plan, command=facts) for plan in plans]


def _earlier_s(plans: Sequence[Plan]) -> dict[PlannedRun, float]:
    """Wall seconds of each run that was finished before this command."""
    return {run: timing.wall_s for plan in plans for run, timing in plan.earlier().items()}


@contextmanager
def _stoppable(command: RunCommand, rank: int | None = None) -> Iterator[Stop]:
    """Context with a `Stop` that signals request; InterruptionError if a signal ends the command."""
    with stop_on_signals(rank) as stop:
        try:
            yield stop
        except KeyboardInterrupt as error:
            raise InterruptionError(
                INTERRUPTED.format(", without --fresh," if command.fresh else "")
            ) from error


@contextmanager
def _reported(report: Callable[[], None]) -> Iterator[None]:
    """Context at whose end `report` is called, also if its block raises an error.

    That error is then raised again, and an error of `report` is only noted.
    """
    try:
        yield
    except BaseException:
        _report_if_possible(report)
        raise
    report()


def _report_if_possible(report: Callable[[], None]) -> None:
    """Call `report`; if it fails, for example on a full disk, print a note instead."""
    try:
        report()
    except (OSError, EmulatorError) as error:
        with suppress(OSError):
            note(f"no report: {error}")


def _report_finished(plan: Plan) -> None:
    if plan.directory.finished_pairs():
        write_results_of(plan.directory, shared_plotly=True)
