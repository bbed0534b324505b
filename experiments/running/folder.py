"""Runs every configuration of a folder, each into its own run directory, after all have been checked.

Plays one experiment after another; `runner.py` plays the runs of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from emulator.errors import EmulatorError, InputError, ResumableError, RunError
from emulator.storage.own_files import path_below
from experiments.results.run_directory import RunDirectory
from experiments.running.members import Member
from experiments.running.plan import Plan, check, plan_run
from experiments.running.runner import FailedRunsError, Outcomes, Progress, run_plan
from experiments.running.stop import Stop


def plan_folder(members: Sequence[Member], out: Path, *, fresh: bool) -> list[Plan]:
    """Prepare a run directory `<out>/<name>` for each member.

    First builds, as a check, every experiment that has unfinished runs, or with `fresh` every one.

    Returns:
        The plans, in the order of `members`.

    Raises:
        ConfigurationError: The arms, data or devices of a configuration cannot be built, or it differs from
            that of existing runs; names the file or the run directory.
        ForeignFileError: A run directory is a link, or not a folder.
        InputError: `out` is the run directory of one experiment, or a run directory cannot be used.
    """
    if RunDirectory(out).experiment_path.is_file():
        raise InputError(
            f"--out {out}: is the run directory of one experiment; take another --out for a folder of them"
        )
    for member in members:
        directory = RunDirectory(path_below(out, member.experiment.name, is_folder=True))
        if fresh or not _all_done(member, directory):
            check(member.experiment, member.locate, member.arms, str(member.path), scratch=directory.path)
    return [
        plan_run(
            member.experiment,
            out / member.experiment.name,
            member.arms,
            member.locate,
            fresh=fresh,
            file=str(member.path),
        )
        for member in members
    ]


def run_folder(
    plans: Sequence[Plan], progress: Progress, finish: Callable[[Plan], None], stop: Stop | None = None
) -> None:
    """Run the plans one after another, and call `finish` for each that was begun, even if it failed.

    A plan that fails does not stop the others.

    Raises:
        RunError: Plans have failed; raised at the end, names them.
        ResumableError: The machine failed a plan, as it would fail the others; none is begun after it.
        KeyboardInterrupt: A stop was requested; none is begun after it.
    """
    outcomes: Outcomes = {}
    for plan in plans:
        outcome: EmulatorError | None = None
        try:
            try:
                run_plan(plan, progress, stop)
            except (ResumableError, KeyboardInterrupt):
                with suppress(OSError):  # the disk may be what is full
                    finish(plan)
                raise
            except EmulatorError:
                finish(plan)
                raise
            finish(plan)
        except ResumableError:
            raise
        except EmulatorError as error:
            outcome = error
        outcomes[plan.experiment.name] = outcome
    refuse_failed(plans, outcomes, progress)


def refuse_failed(plans: Sequence[Plan], outcomes: Outcomes, progress: Progress) -> None:
    """RunError that names the failed experiments, if there are any.

    The reason goes to `progress` as a note, unless it was reported run by run (FailedRunsError).
    """
    failed = []
    for plan in plans:
        outcome = outcomes[plan.experiment.name]
        if outcome is not None:
            failed.append(plan.experiment.name)
            if not isinstance(outcome, FailedRunsError):
                progress.note(f"{plan.experiment.name}: {outcome}")
    if failed:
        raise RunError(f"{len(failed)} of {len(plans)} experiments failed: {', '.join(failed)}")


def _all_done(member: Member, directory: RunDirectory) -> bool:
    arms = [arm.name for arm in member.experiment.arm] if member.arms is None else member.arms
    return all(directory.is_done(arm, seed) for seed in member.experiment.seeds for arm in arms)
