"""Runs an experiment into a run directory: every (arm, seed) that is not finished there, then the report."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from emulator.checkpoints import make_folder, write_durably
from emulator.emulation import Observer
from emulator.errors import (
    CheckpointError,
    ConfigurationError,
    DataFileError,
    EmulatorError,
    ForeignFileError,
    InputError,
    ResumableError,
    RunError,
    UnknownNameError,
)
from emulator.runlog import RoundRecord
from emulator.seeding import SCHEME
from executor.ranks import Ranks, Spent
from executor.replicas import ReplicatedExecutor
from experiments.attempt import Attempt, Tally
from experiments.build import (
    World,
    build_emulation,
    build_executor,
    build_world,
    refuse_unfit_arms,
    run_header,
)
from experiments.config import Experiment, Locate, parse_experiment
from experiments.leftovers import clear, sweep
from experiments.locking import RunAtWorkError, seed_locked
from experiments.naming import naming
from experiments.planned_run import PlannedRun, Reached
from experiments.replicas import agree_on, lead_to_draw, lead_to_play, leading
from experiments.run_directory import RunDirectory
from experiments.source_files import Identity, SourceFiles
from experiments.stop import Stop

PACKAGES = ("driftscale", "torch", "numpy", "scikit-learn", "scipy", "pyarrow", "pydantic")

MOST_NAMED = 3


class FailedRunsError(RunError):
    """Some runs are marked FAILED; the progress was told of each and of its reason."""


class Progress(Protocol):
    """What is told how far each run has come. Several may be at work at once; the calls come from one thread.

    A run's story is `drawing` (where its clients are not drawn yet), `begun`, `going_on` (where it has a
    checkpoint), `round_done` any number of times, and `done` or `left`. One that was left may begin again,
    with fewer rounds than it had reached, or be `failed`.
    """

    def drawing(self, run: PlannedRun) -> None:
        """The clients of this run's seed are drawn, which takes a while where they are many."""

    def begun(self, run: PlannedRun) -> None:
        """The run is at work, from its first round unless `going_on` follows."""

    def going_on(self, run: PlannedRun, rounds: int) -> None:
        """The run goes on from a checkpoint with `rounds` done."""

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        """The run has reached so many rounds: one or more beyond what was last told."""

    def done(self, run: PlannedRun) -> None:
        """The run has finished all its rounds, told or not."""

    def left(self, run: PlannedRun) -> None:
        """The run is no longer at work and not done: it was stopped, lost (maybe before it had begun), or is
        about to be `failed`."""

    def skipped(self, run: PlannedRun) -> None:
        """The run was finished earlier, and is kept."""

    def failed(self, run: PlannedRun, reason: str) -> None:
        """The run cannot go on, and is not tried again."""

    def note(self, text: str) -> None:
        """One line about something that went wrong."""


@dataclass(frozen=True)
class Plan:
    """What is to be run where; `file` is the configuration's, for errors to name."""

    experiment: Experiment
    directory: RunDirectory
    arms: Sequence[str]
    locate: Locate
    file: str = ""

    def runs(self) -> list[PlannedRun]:
        """All arms of a seed together, since they share its world."""
        name, rounds = self.experiment.name, self.experiment.round.rounds
        return [PlannedRun(name, arm, seed, rounds) for seed in self.experiment.seeds for arm in self.arms]

    def is_done(self, run: PlannedRun) -> bool:
        return self.directory.is_done(run.arm, run.seed)

    def earlier_s(self) -> dict[PlannedRun, float]:
        """Wall seconds that each run took which is finished already."""
        return {
            run: self.directory.read_timing(run.arm, run.seed)["wall_s"]
            for run in self.runs()
            if self.is_done(run)
        }


def plan_run(
    experiment: Experiment,
    path: Path,
    arms: Sequence[str] | None,
    locate: Locate,
    *,
    fresh: bool,
    file: str = "",
) -> Plan:
    """Prepare the run directory `path`.

    Runs that it holds, finished or with a checkpoint, are kept, with their seeds, if the configuration is the
    same in all else; ConfigurationError names what differs. `fresh` deletes them, once it is clear that the
    new ones can be built. ForeignFileError names what stands in the place of a file of any of them.
    """
    names = [arm.name for arm in experiment.arm]
    for arm in arms or ():
        if arm not in names:
            raise UnknownNameError("arm", arm, names, "--arms")
    directory = RunDirectory(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; a run directory is a folder")
    directory.refuse_foreign((arm, seed) for arm in names for seed in experiment.seeds)
    if fresh and path.exists():
        check(experiment, locate, arms, file, scratch=path)
        clear(directory)
    if not directory.experiment_path.is_file() and directory.holds_runs():
        missing = directory.experiment_path.name
        raise InputError(f"{path} holds runs, but no {missing} that says of what; take another --out")
    recorded = experiment
    # Of runs that failed, or never came to a checkpoint, nothing is kept: they bind nobody.
    if directory.experiment_path.is_file() and (begun := directory.begun_pairs()):
        old = parse_experiment(directory.experiment(), str(path))
        recorded = _united(experiment, old, {arm for arm, _ in begun}, path)
    with naming(file):
        text = recorded.to_toml()
    try:
        make_folder(path)
    except OSError as error:
        raise InputError(f"--out {path}: cannot be made a folder ({error.strerror})") from error
    try:
        directory.delete_torn_files()
        write_durably(directory.experiment_path, text)
    except OSError as error:
        raise InputError(f"--out {path}: cannot be written in ({error.strerror})") from error
    return Plan(experiment, directory, list(dict.fromkeys(arms)) if arms else names, locate, file)


def run_plan(plan: Plan, progress: Progress, stop: Stop | None = None, ranks: Ranks | None = None) -> None:
    """Run what is not finished, each from its last checkpoint. One that cannot go on is marked FAILED and the
    others still run; FailedRunsError at the end names them. So do they when another process is at work on
    one, which is left alone; RunError at the end names those.

    ResumableError when the machine failed a run, CheckpointError or ForeignFileError when one cannot be
    resumed: no other is tried. KeyboardInterrupt once `stop` was asked for, and the run at hand stored.

    With `ranks`, of which this is rank 0, all of them play each run.
    """
    with nullcontext() if ranks is None else leading(ranks):
        failed = _run_all(plan, progress, stop or Stop(), ranks)
    if failed is not None:
        raise failed


def _run_all(plan: Plan, progress: Progress, stop: Stop, ranks: Ranks | None) -> RunError | None:
    """The error that names the runs that failed, or were left alone."""
    failures: list[str] = []
    at_work: list[str] = []
    world: World | None = None
    files = SourceFiles(plan.locate, _recorded_files(plan.directory))
    if plan.directory.begun_pairs() and plan.directory.manifest() is None:
        progress.note(
            f"{plan.directory.path}: without its {plan.directory.manifest_path.name} nobody knows which "
            f"files the runs in it were begun with; they are taken to be those of today"
        )
    sweep(plan.directory, progress.note)
    for run in plan.runs():
        if plan.is_done(run):
            progress.skipped(run)
            continue
        if world is None or world.streams.seed != run.seed:
            is_first, world = world is None, None  # the last one is let go before the next is drawn
            progress.drawing(run)
            if ranks is not None:
                lead_to_draw(ranks, plan.experiment, run.seed)
            with _leaving(run, progress):
                with naming(plan.file):
                    world = build_world(plan.experiment, run.seed, files, plan.directory.path)
                    if is_first:  # what cannot be put together shows before anything trains
                        refuse_unfit_arms(plan.experiment, plan.arms, world)
                if ranks is not None:
                    agree_on(ranks, world)
                _write_manifest(plan, world, files.found)
        try:
            with stop.between_steps() if ranks is None else nullcontext():
                reason = run_one(plan, run, world, progress, stop, ranks)
        except RunAtWorkError:
            at_work.append(f"{run.arm}, seed {run.seed}")
            continue
        if reason is not None:
            progress.failed(run, reason)
            failures.append(f"{run.arm}, seed {run.seed}")
    if failures:
        return FailedRunsError(
            f"{len(failures)} of {len(plan.runs())} runs failed ({_some(failures)}); finished runs are kept "
            f"in {plan.directory.path}"
        )
    if at_work:
        return RunError(
            f"{plan.directory.path}: other processes are at work on {len(at_work)} of {len(plan.runs())} "
            f"runs ({_some(at_work)}); give the command again when they have ended"
        )
    return None


def run_one(
    plan: Plan, run: PlannedRun, world: World, progress: Progress, stop: Stop, ranks: Ranks | None = None
) -> str | None:
    """Run one (arm, seed) under its lock: None when it is DONE, or why it is marked FAILED.

    RunAtWorkError where another process is at work on it, and the errors of `_run_to_end`.
    """
    with seed_locked(plan.directory, run.arm, run.seed):
        if plan.is_done(run):  # by a process that was at work on it until now
            progress.skipped(run)
            return None
        try:
            with nullcontext() if ranks is None else ranks.telling(ends=False):
                _run_to_end(plan, run, world, progress, stop, ranks)
        except (ResumableError, CheckpointError, ForeignFileError):
            raise
        except EmulatorError as error:
            plan.directory.mark_failed(run.arm, run.seed, str(error))
            return str(error)
    return None


def _run_to_end(
    plan: Plan, run: PlannedRun, world: World, progress: Progress, stop: Stop, ranks: Ranks | None
) -> None:
    """Run one (arm, seed) to DONE, from its last checkpoint or from its first round; with `ranks`, by all.

    ResumableError where the machine has no room or memory for it, CheckpointError where it is not to be gone
    on with, KeyboardInterrupt where `stop` was asked for.
    """
    arm = plan.experiment.find_arm(run.arm)
    local = build_executor(plan.experiment, arm, world)
    executor = local if ranks is None else ReplicatedExecutor(local, ranks)
    agreed = stop if ranks is None else ranks
    attempt = Attempt(
        plan.directory,
        run.arm,
        run.seed,
        plan.experiment.checkpoint,
        header=run_header(plan.experiment, arm, world, executor),
        build=lambda log, observers, stopwatch: build_emulation(
            plan.experiment, arm, world, executor, log, observers, stopwatch
        ),
        observer=_teller(run, progress),
        halved=lambda: executor.halved_cohorts,
        note=progress.note,
        others=lambda: Spent() if ranks is None else ranks.others,
    )
    progress.begun(run)
    try:
        with _leaving(run, progress), attempt:
            if attempt.stored is not None:
                progress.going_on(run, attempt.stored)
            if ranks is not None:
                state = None if attempt.stored is None else attempt.emulation.state()
                lead_to_play(ranks, run.arm, state)
            for _ in attempt.emulation.steps():
                if agreed.asked or attempt.is_due:
                    attempt.store()
                if agreed.asked:
                    raise KeyboardInterrupt
            _refuse_empty(attempt.tally, plan.experiment)
            plan.directory.mark_done(run.arm, run.seed, attempt.finish())
    except (OSError, MemoryError, ResumableError) as error:
        last = attempt.stored
        goes_on = "begins again" if last is None else f"goes on from its last checkpoint, round {last},"
        raise ResumableError(
            f"{run.arm}, seed {run.seed} stopped in round {attempt.tally.rounds}: {_machine_problem(error)}. "
            f"It {goes_on} when the command is given again"
        ) from error
    progress.done(run)
    _tell_of_faults(attempt, run, progress)


def check(
    experiment: Experiment,
    locate: Locate,
    arms: Sequence[str] | None = None,
    file: str = "",
    *,
    scratch: Path,
) -> World:
    """Build everything a run of `arms` (all) needs, for its first seed, and train nothing.

    A large trace is laid out in `scratch`, or in the folder above it that exists.
    """
    while not scratch.is_dir() and scratch != scratch.parent:
        scratch = scratch.parent
    with naming(file):
        experiment.to_toml()  # what cannot be recorded is refused before anything is drawn
        world = build_world(experiment, experiment.seeds[0], locate, scratch)
        refuse_unfit_arms(experiment, arms or [arm.name for arm in experiment.arm], world)
    return world


def _teller(run: PlannedRun, progress: Progress) -> Observer:
    """An observer that tells `progress` how far `run` has come."""
    accuracy: float | None = None

    def tell(record: RoundRecord) -> None:
        nonlocal accuracy
        if record.accuracy is not None:
            accuracy = record.accuracy
        progress.round_done(run, Reached(record.round + 1, record.closed_s, accuracy))

    return tell


@contextmanager
def _leaving(run: PlannedRun, progress: Progress) -> Iterator[None]:
    """Tells `progress` that `run` was left where an exception, a stop included, ends what is within."""
    try:
        yield
    except BaseException:
        progress.left(run)
        raise


def _refuse_empty(tally: Tally, experiment: Experiment) -> None:
    """RunError when nothing was learnt in the whole run."""
    if tally.fruitful > 0:
        return
    rounds = f"no update was absorbed in any of {tally.rounds} rounds"
    if tally.rejected > 0:
        fewer = " or fewer faults.corrupt" if experiment.faults.corrupt > 0 else ""
        raise RunError(
            f"training diverged: {rounds}, {tally.rejected} times clients sent some that were not finite; a "
            f"lower training.learning_rate{fewer} may help"
        )
    raise RunError(
        f"{rounds}: every visit was dropped, as its client went offline or crashed, or abandoned; give "
        f"clients more time (devices.availability, pacing.deadline_s, faults.crash), or less to do"
    )


def _tell_of_faults(attempt: Attempt, run: PlannedRun, progress: Progress) -> None:
    """What did not end the run and should still be known."""
    name, tally = f"{run.arm}, seed {run.seed}", attempt.tally
    if tally.rejected:
        progress.note(
            f"{name}: {tally.rejected} times clients sent updates that were not finite; they were left out "
            f"(see `rejected` in its log)"
        )
    if tally.lost_workers:
        progress.note(
            f"{name}: {tally.lost_workers} workers were lost and replaced; their work was done again"
        )
    if tally.halved_cohorts:
        progress.note(
            f"{name}: {tally.halved_cohorts} cohorts were trained in halves, for want of memory; that may "
            f"have changed results by rounding"
        )


def _machine_problem(error: OSError | MemoryError | ResumableError) -> str:
    """One line: the file and what is wrong with it, or what there was no memory for."""
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror or error or type(error).__name__}"
    if isinstance(error, MemoryError):
        return f"out of memory ({error})" if str(error) else "out of memory"
    return str(error)


def _some(items: Sequence[str]) -> str:
    """The first few of `items`, and how many more there are."""
    others = len(items) - MOST_NAMED
    return "; ".join([*items[:MOST_NAMED], *([f"and {others} more"] if others > 0 else [])])


def _united(new: Experiment, old: Experiment, begun: Collection[str], path: Path) -> Experiment:
    """`new` with the seeds of both; ConfigurationError when they differ in what decides a result of an arm
    that has `begun`."""
    before = _deciding(old)
    before["arm"] = {name: arm for name, arm in before["arm"].items() if name in begun}
    differences = list(_differences(before, _deciding(new)))
    if differences:
        raise ConfigurationError(
            f"{path} holds runs of another configuration ({_some(differences)}); "
            f"take another --out, or --fresh to delete them"
        )
    seeds = tuple(sorted({*old.seeds, *new.seeds}))
    kept = [arm for arm in old.arm if arm.name not in {item.name for item in new.arm}]
    return new.model_copy(update={"seeds": seeds, "arm": (*new.arm, *kept)})


def _deciding(experiment: Experiment) -> dict[str, Any]:
    """What decides the result of an (arm, seed): not which seeds there are, how many threads train, what
    happens without memory, when it is stored, or how it is reported."""
    table = experiment.resolved()
    for key in ("threads", "worker_timeout_s", "on_out_of_memory"):
        table["executor"].pop(key)
    arms = {arm["name"]: arm for arm in table.pop("arm")}
    for key in ("seeds", "checkpoint", "report", "training"):  # every arm has its training written out
        table.pop(key)
    return {**table, "arm": arms}


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """`key was X, is Y` of each value that differs; an arm that only one side has is no difference."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            if path == "arm" and not (key in old and key in new):
                continue
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif old != new:
        yield f"{path} was {old!r}, is {new!r}"


def _write_manifest(plan: Plan, world: World, files: Mapping[str, Identity]) -> None:
    """What the runs are made with, and of which files. Of a seed that has begun runs, the world must be as it
    was then: ConfigurationError when the trace, the profile or the availability is another one."""
    seed, fingerprint = world.streams.seed, world.fingerprint()
    manifest = plan.directory.manifest() or {}
    fingerprints = _table(plan.directory, manifest, "sha256")
    begun = plan.directory.begun_pairs()
    has_begun = any(other == seed for _, other in begun)
    known = _table(plan.directory, fingerprints, str(seed))
    for what, sha256 in known.items() if has_begun else ():
        if sha256 != fingerprint.get(what):
            raise ConfigurationError(
                f"{plan.directory.path}: the {what} of seed {seed} is not the one its runs were begun with: "
                f"files, or driftscale itself, changed since; take another --out, or --fresh to delete them"
            )
    versions = {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}
    first = _table(plan.directory, manifest, "versions") if begun else {}
    later = manifest.get("later_versions", []) if begun else []
    if versions not in (first or versions, *later):
        later = [*later, versions]
    manifest = {
        "versions": first or versions,
        **({"later_versions": later} if later else {}),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "profile": {"name": world.profile.name, "source": world.profile.source},
        "availability": dict(world.availability.facts),
        "random_streams": SCHEME,
        "sha256": {**fingerprints, str(seed): fingerprint},
        "files": {**(_table(plan.directory, manifest, "files") if begun else {}), **files},
    }
    write_durably(plan.directory.manifest_path, json.dumps(manifest, indent=2) + "\n")


def _recorded_files(directory: RunDirectory) -> dict[str, Identity]:
    """The files behind the runs that are kept; DataFileError where the manifest is damaged."""
    if not directory.begun_pairs():
        return {}
    files = _table(directory, directory.manifest() or {}, "files")
    for name, identity in files.items():
        if not isinstance(identity, dict) or set(identity) != {"size", "sha256"}:
            raise DataFileError(directory.manifest_path, f"files.{name} must have a size and a sha256")
    return files


def _table(directory: RunDirectory, manifest: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The table `key` of a manifest, empty where it is left out."""
    table = manifest.get(key, {})
    if not isinstance(table, dict):
        raise DataFileError(directory.manifest_path, f"{key} must be a table")
    return table


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
