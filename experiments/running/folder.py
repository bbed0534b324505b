"""Runs every configuration of a folder, each into its own run directory, once all are found good.

Knows how experiments stand together; what one does is the runner's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import (
    ConfigurationError,
    EmulatorError,
    InputError,
    ResumableError,
    RunError,
    UnknownNameError,
)
from emulator.storage.own_files import path_below
from experiments.config import Experiment, Locate, load_experiment, locator
from experiments.results.run_directory import RunDirectory
from experiments.running.plan import Plan, check, plan_run
from experiments.running.runner import FailedRunsError, Outcomes, Progress, run_plan
from experiments.running.stop import Stop


@dataclass(frozen=True)
class Member:
    """One configuration of a folder, and those of its arms that are to be run: all where None."""

    path: Path
    experiment: Experiment
    arms: Sequence[str] | None
    locate: Locate


def load_folder(
    folder: Path,
    settings: Sequence[str] = (),
    seeds: Sequence[int] | None = None,
    arms: Sequence[str] | None = None,
    data: Path | None = None,
) -> list[Member]:
    """The configurations right in `folder`, by file name; those that have none of `arms` are left out.

    ConfigurationError for the first that breaks a rule, or has the name of another; UnknownNameError for an
    arm that no configuration has; InputError for a folder without any.
    """
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise InputError(f"{folder}: a folder without a configuration (*.toml)")
    named: dict[str, Path] = {}
    members = []
    for path in paths:
        experiment = load_experiment(path, settings, seeds, data)
        if experiment.name in named:
            raise ConfigurationError(
                f"{path}: name = {experiment.name!r}: is that of {named[experiment.name]} too; every "
                f"configuration of a folder needs a name of its own"
            )
        named[experiment.name] = path
        members.append(Member(path, experiment, None, locator(data, path)))
    return members if arms is None else _with_arms(members, arms)


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


def _with_arms(members: Sequence[Member], arms: Sequence[str]) -> list[Member]:
    """Those that have any of `arms`, with these."""
    names = {arm.name: None for member in members for arm in member.experiment.arm}
    for arm in arms:
        if arm not in names:
            raise UnknownNameError("arm", arm, names, "--arms")
    chosen = []
    for member in members:
        own = [name for name in arms if name in {arm.name for arm in member.experiment.arm}]
        if own:
            chosen.append(Member(member.path, member.experiment, own, member.locate))
    return chosen


def _all_done(member: Member, directory: RunDirectory) -> bool:
    arms = [arm.name for arm in member.experiment.arm] if member.arms is None else member.arms
    return all(directory.is_done(arm, seed) for seed in member.experiment.seeds for arm in arms)
