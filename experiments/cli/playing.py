"""Plays the runs of a command, here or by workers, and reports however they end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
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
from experiments.config import Experiment, locator
from experiments.jobs.command import run_in_parallel
from experiments.running.folder import plan_folder, refuse_failed, run_folder
from experiments.running.locking import locked
from experiments.running.members import Member
from experiments.running.plan import Plan, PlannedRun, plan_run
from experiments.running.replicas import follow, joined
from experiments.running.runner import run_plan
from experiments.running.stop import Stop

INTERRUPTED = (
    "interrupted; finished runs are kept, the same command{} goes on with the rest, from the last checkpoint"
)


def play_one(asked: RunCommand, experiment: Experiment, job: Job | None) -> None:
    """Play what is not finished of one configuration, then report; with the other ranks of `job`, if any."""
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
                outcome = run_in_parallel([plan], crew, progress, stop)[experiment.name]
                if outcome is not None:
                    raise outcome


def follow_first(job: Job, asked: RunCommand) -> None:
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


def play_folder(asked: RunCommand, members: Sequence[Member]) -> None:
    """Play what is not finished of the configurations of a folder, then make their table."""
    name = asked.config.resolve().name
    target = asked.out or Path("runs") / name
    with ExitStack() as held:
        stop = held.enter_context(_stoppable(asked))
        for member in members:
            held.enter_context(locked(path_below(target, member.experiment.name, is_folder=True)))
        plans = plan_folder(members, target, fresh=asked.fresh)
        runs = [run for plan in plans for run in plan.runs()]

        def report() -> None:
            report_table(target, [plan.directory for plan in plans], name, asked.output)

        with (
            _reported(report),
            scaled_out(asked.scale, plans, asked.data) as (crew, at_once),
            make_progress(
                runs, _earlier_s(plans), quiet=asked.output is OutputFormat.JSON, at_once=at_once
            ) as progress,
        ):
            if crew is None:
                run_folder(plans, progress, _report_finished, stop)
            else:
                refuse_failed(plans, run_in_parallel(plans, crew, progress, stop, _report_finished), progress)


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
            note(f"no report: {error}")


def _report_finished(plan: Plan) -> None:
    if plan.directory.finished_pairs():
        write_results_of(plan.directory)
