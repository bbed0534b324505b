"""Runs every configuration of a folder, each into its own run directory, once all are found good.

Knows how experiments run one after another; what one does is the runner's.
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
    """Prepare a run directory `<out>/<name>` for each, once all that is not finished has been built to see.

    ConfigurationError names the file whose arms, data or devices cannot be put together, ForeignFileError a
    link in the place of a run directory.
    """
    if RunDirectory(out).experiment_path.is_file():
        raise InputError(
            f"--out {out}: is the run directory of one experiment; take another for a folder of them"
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
    """Run the plans one after the other, and `finish` each, however it ended.

    One that cannot go on does not stop the others; RunError at the end names those. ResumableError when the
    machine failed one, as it would fail the others.
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
    """RunError names the experiments that failed; `progress` is told why, unless it was told of each run."""
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
