"""Plays the runs of a command, in this process or by workers; reports the results even after a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from emulator.errors import EmulatorError, InterruptionError, ResumableError
from emulator.storage.own_files import path_below
from executor.gloo import Job
from experiments.cli.signals import stop_on_signals
from experiments.config import Experiment
from experiments.jobs.command import run_in_parallel
from experiments.locating import locator
from experiments.own.identity import unseen_by
from experiments.own.parts import own_parts
from experiments.playing.command import RunCommand, Several
from experiments.playing.scale import scaled_out
from experiments.results.pages import plotly_path, write_plotly
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.command_facts import command_facts
from experiments.running.folder import plan_folder, refuse_failed, run_folder
from experiments.running.locking import locked
from experiments.running.machine import allow_open_files
from experiments.running.plan import Plan, PlannedRun, plan_run
from experiments.running.replicas import joined
from experiments.running.runner import Progress, machine_problem, run_plan
from experiments.running.sharing import sharing
from experiments.running.stop import Stop
from experiments.shipped import version_identifies


class Show(Protocol):
    """Shows what a command does, and writes its reports."""

    def progress(
        self, runs: Sequence[PlannedRun], earlier_s: Mapping[PlannedRun, float], at_once: int
    ) -> AbstractContextManager[Progress]:
        """Context with what is told of the progress of `runs`; see `make_progress`."""

    def report_one(self, directory: RunDirectory) -> None:
        """Report on a run directory with finished runs."""

    def report_table(self, folder: Path, directories: Sequence[RunDirectory], name: str) -> None:
        """Write the table of these run directories into `folder`, headed by `name`, and show it."""

    def report_finished(self, directory: RunDirectory) -> None:
        """Write the results of a run directory with finished runs, one of several of a command."""

    def note(self, text: str) -> None:
        """Show a line about a report that could not be made."""


def play_one(command: RunCommand, experiment: Experiment, job: Job | None, show: Show) -> Path:
    """Play the unfinished runs of a configuration, then report those that are finished.

    Under torchrun, `job` is this rank's place in its job, and all ranks play each run together. Returns the
    run directory. For the errors see `plan_run` and `run_plan`; InterruptionError if a signal ends it.
    """
    folder = command.folder_of(experiment.name)
    locate = locator(command.data, command.config)
    with _stoppable(command, None if job is None else job.rank) as stop, locked(folder):
        plan = plan_run(
            experiment,
            folder,
            command.arms,
            locate,
            fresh=command.fresh,
            file=str(command.config),
            is_checked_first=command.scale.may_start_workers,
            trial=command.trial,
        )
        [plan] = _of_command([plan], command)

        def report() -> None:
            if plan.directory.reported_pairs():
                show.report_one(plan.directory)

        with (
            _reported(report, show, command),
            scaled_out(command.scale, [plan], command.data) as (pool, at_once),
            show.progress(plan.runs(), _earlier_s([plan]), at_once) as progress,
            nullcontext() if job is None else joined(job, stop) as ranks,
        ):
            _say_first([plan], progress)
            if pool is None:
                run_plan(plan, progress, stop, ranks)
            else:
                outcome = run_in_parallel([plan], pool, progress, stop)[experiment.name]
                if outcome is not None:
                    raise outcome
    return folder


def play_several(command: RunCommand, several: Several, show: Show) -> Path:
    """Play the unfinished runs of several configurations, then make one table of all of them.

    Returns the folder of their run directories. For the errors see `plan_folder` and `run_folder`;
    InterruptionError if a signal ends it.
    """
    target = command.folder_of(several.folder)
    members = several.members
    with ExitStack() as stack:
        stop = stack.enter_context(_stoppable(command))
        allow_open_files(len(members), "run directories")  # each has a lock
        for member in members:
            stack.enter_context(locked(path_below(target, member.experiment.name, is_folder=True)))
        plotly_path(target)  # refuse a link before anything is done
        planned = plan_folder(members, target, fresh=command.fresh, trial=command.trial, until=command.until)
        plans = _of_command(planned, command)
        write_plotly(target)
        runs = [run for plan in plans for run in plan.runs()]

        def report() -> None:
            show.report_table(target, [plan.directory for plan in plans], several.name)

        def finish(plan: Plan) -> None:
            if plan.directory.reported_pairs():
                show.report_finished(plan.directory)

        with (
            _reported(report, show, command),
            scaled_out(command.scale, plans, command.data) as (pool, at_once),
            show.progress(runs, _earlier_s(plans), at_once) as progress,
            sharing(plans, finish, progress.note) as ended,
        ):
            _say_first(plans, progress)
            if pool is None:
                run_folder(plans, progress, ended, stop)
            else:
                refuse_failed(plans, run_in_parallel(plans, pool, progress, stop, ended), progress)
    return target


def _of_command(plans: Sequence[Plan], command: RunCommand) -> Sequence[Plan]:
    """The plans, with --until, trackers, and the facts on this command for manifests of unfinished runs."""
    plans = [replace(plan, until=command.until) for plan in plans]
    if all(plan.directory.is_kept(*pair, command.until) for plan in plans for pair in plan.pairs()):
        return plans
    folder = command.config if command.config.is_dir() else command.config.parent
    place = None if version_identifies(command.config) else folder
    facts = command_facts(command.arguments, command.started, place)
    return [replace(plan, command=facts, track=command.track) for plan in plans]


def _say_first(plans: Sequence[Plan], progress: Progress) -> None:
    """Note, once for all plans, changes that are not seen, and reference arms that are missing for a report.

    Not seen are changes of what the own parts of their arms read.
    """
    parts = [part for plan in plans for part in own_parts(plan.experiment, plan.arms)]
    for line in unseen_by(parts):
        progress.note(line)
    for reference in dict.fromkeys(filter(None, (plan.unmade_reference() for plan in plans))):
        progress.note(
            f"no report before the reference arm {reference!r} has a finished run: add it to the arms"
        )


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
            raise InterruptionError(f"interrupted; {command.resumes}") from error


@contextmanager
def _reported(report: Callable[[], None], show: Show, command: RunCommand) -> Iterator[None]:
    """Context at whose end `report` is called, also if its block raises an error.

    That error is then raised again, and an error of `report` only noted. An OSError becomes a ResumableError.
    """
    try:
        try:
            yield
        except BaseException:
            _report_if_possible(report, show)
            raise
        report()
    except OSError as error:
        raise ResumableError(f"{machine_problem(error)}; {command.resumes}") from error


def _report_if_possible(report: Callable[[], None], show: Show) -> None:
    """Call `report`; if it fails, for example on a full disk, show a note instead."""
    try:
        report()
    except (OSError, EmulatorError) as error:
        with suppress(OSError):
            show.note(f"no report: {error}")
