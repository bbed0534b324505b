"""Runs the configurations of a folder or of a sweep, each into its own run directory, after all are checked.

Plays one experiment after another; `runner.py` plays the runs of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from emulator.errors import EmulatorError, InputError, ResumableError, RunError, abbreviated
from emulator.storage.own_files import path_below
from experiments.build import World
from experiments.locating import Locate
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.members import Member
from experiments.running.plan import Checker, Plan, plan_run, world_key
from experiments.running.runner import FailedRunsError, Outcomes, Progress, run_plan
from experiments.running.sharing import share_out
from experiments.running.stop import Stop


def check_members(
    members: Sequence[Member],
    scratch: Path,
    note: Callable[[str], None] = lambda _: None,
    tried: Callable[[Member], Collection[str] | None] = lambda _: (),
) -> Iterator[tuple[Member, World]]:
    """Check each member, as `plan.check` does, those of one world after another: a world is drawn once.

    Args:
        members: The configurations.
        scratch: Folder for the file of a large trace; if it does not exist, the nearest existing parent.
        note: Receives warnings.
        tried: The arms of a member whose own code is tried; None for all.

    Yields:
        Each member, and the world of its first seed.

    Raises:
        ConfigurationError: A configuration cannot be recorded, or its world or arms cannot be built.
    """
    same_world: dict[tuple[str, Locate], list[Member]] = {}
    for member in members:
        same_world.setdefault((world_key(member.experiment), member.locate), []).append(member)
    checker = Checker(note)
    for member in itertools.chain.from_iterable(same_world.values()):
        yield (
            member,
            checker.check(
                member.experiment,
                member.locate,
                member.arms,
                member.where,
                scratch=scratch,
                identities=member.identities,
                tried=tried(member),
            ),
        )


def plan_folder(
    members: Sequence[Member], out: Path, *, fresh: bool, trial: bool = False, until: int | None = None
) -> list[Plan]:
    """Prepare a run directory `<out>/<name>` for each member.

    First builds, as a check, every experiment that has unfinished runs, or with `fresh` every one. Runs that
    several members have are played by one of them, see `sharing.py`. With `trial`, own code that no run of a
    member has begun with is tried. Runs that are stored at round `until` need no check.

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
            f"{out} is the run directory of one experiment; take another --out for a folder of them, or a "
            f"sweep"
        )
    folders = [path_below(out, member.experiment.name, is_folder=True) for member in members]
    unfinished = [
        member
        for member, folder in zip(members, folders, strict=True)
        if fresh or not _all_kept(member, RunDirectory(folder), until)
    ]

    def untried(member: Member) -> list[str]:
        directory = RunDirectory(out / member.experiment.name)
        keeps = directory.experiment_path.is_file() and not fresh
        begun = directory.begun_arms() if keeps else set()
        return [arm.name for arm in member.experiment.arm if trial and arm.name not in begun]

    for _ in check_members(unfinished, scratch=out, tried=untried):
        pass
    plans = [
        plan_run(
            member.experiment,
            out / member.experiment.name,
            member.arms,
            member.locate,
            fresh=fresh,
            file=str(member.path),
            cell=member.cell,
            is_checked=True,
        )
        for member in members
    ]
    return share_out(plans, [member.identities for member in members])


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
        raise RunError(f"{len(failed)} of {len(plans)} experiments failed: {abbreviated(failed)}")


def _all_kept(member: Member, directory: RunDirectory, until: int | None) -> bool:
    arms = [arm.name for arm in member.experiment.arm] if member.arms is None else member.arms
    return all(directory.is_kept(arm, seed, until) for seed in member.experiment.seeds for arm in arms)
