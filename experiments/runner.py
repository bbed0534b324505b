"""Runs an experiment into a run directory: every (arm, seed) that is not finished there, then the report."""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from emulator.errors import ConfigurationError, EmulatorError, InputError, RunError, UnknownNameError
from emulator.runlog import RoundRecord, RunLog
from emulator.seeding import SCHEME
from experiments.build import (
    World,
    build_emulation,
    build_executor,
    build_world,
    refuse_unfit_arms,
    run_header,
)
from experiments.config import Experiment, Locate, parse_experiment
from experiments.naming import naming
from experiments.planned_run import PlannedRun
from experiments.run_directory import RunDirectory, write_atomically
from experiments.stopwatch import Stopwatch

PACKAGES = ("driftscale", "torch", "numpy", "scikit-learn", "scipy", "pyarrow", "pydantic")


MOST_NAMED = 3


class FailedRunsError(RunError):
    """Some runs are marked FAILED; the progress was told of each and of its reason."""


class Progress(Protocol):
    """What is told how far a run has come."""

    def drawing(self, run: PlannedRun) -> None: ...

    def run(self, run: PlannedRun) -> AbstractContextManager[None]: ...

    def round_done(self, record: RoundRecord) -> None: ...

    def skipped(self, run: PlannedRun) -> None: ...

    def failed(self, run: PlannedRun, reason: str) -> None: ...


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

    Finished runs that it holds are kept, with their seeds, if the configuration is the same in all else;
    ConfigurationError names what differs. `fresh` deletes them, once it is clear that the new ones can be
    built.
    """
    names = [arm.name for arm in experiment.arm]
    for arm in arms or ():
        if arm not in names:
            raise UnknownNameError("arm", arm, names, "--arms")
    directory = RunDirectory(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; a run directory is a folder")
    if fresh and path.exists():
        check(experiment, locate, arms, file, scratch=path)
        directory.clear()
    if not directory.experiment_path.is_file() and any(path.glob("*/seed-*/DONE")):
        raise InputError(
            f"{path} holds finished runs, but no {directory.experiment_path.name} that says of what; "
            f"take another --out"
        )
    recorded = experiment
    # Of runs that never finished nothing is kept, so they bind nobody to their configuration.
    if directory.experiment_path.is_file() and directory.finished_pairs():
        recorded = _united(experiment, parse_experiment(directory.experiment(), str(path)), path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {path}: cannot be made a folder ({error.strerror})") from error
    write_atomically(directory.experiment_path, recorded.to_toml())
    return Plan(experiment, directory, list(dict.fromkeys(arms)) if arms else names, locate, file)


def run_plan(plan: Plan, progress: Progress) -> None:
    """Run what is not finished. A run that cannot go on is marked FAILED and the others still run;
    FailedRunsError at the end names them."""
    failures: list[str] = []
    world: World | None = None
    for run in plan.runs():
        if plan.is_done(run):
            progress.skipped(run)
            continue
        if world is None or world.streams.seed != run.seed:
            is_first, world = world is None, None  # the last one is let go before the next is drawn
            progress.drawing(run)
            with naming(plan.file):
                world = build_world(plan.experiment, run.seed, plan.locate, plan.directory.path)
                if is_first:  # what cannot be put together shows before anything trains
                    refuse_unfit_arms(plan.experiment, plan.arms, world)
            _write_manifest(plan, world)
        try:
            run_one(plan, run, world, progress)
        except EmulatorError as error:
            plan.directory.mark_failed(run.arm, run.seed, str(error))
            progress.failed(run, str(error))
            failures.append(f"{run.arm}, seed {run.seed}")
    if failures:
        others = len(failures) - MOST_NAMED
        named = [*failures[:MOST_NAMED], *([f"and {others} more"] if others > 0 else [])]
        raise FailedRunsError(
            f"{len(failures)} of {len(plan.runs())} runs failed ({'; '.join(named)}); finished runs are kept "
            f"in {plan.directory.path}"
        )


def run_one(plan: Plan, run: PlannedRun, world: World, progress: Progress) -> None:
    """Run one (arm, seed) from its first round to DONE."""
    arm = plan.experiment.find_arm(run.arm)
    plan.directory.start(run.arm, run.seed)
    stopwatch = Stopwatch()
    start, cpu_start = time.perf_counter(), time.process_time()
    executor = build_executor(plan.experiment, arm, world)
    with (
        progress.run(run),
        RunLog(
            plan.directory.log_path(run.arm, run.seed), run_header(plan.experiment, arm, world, executor)
        ) as log,
    ):
        kept = 0

        def count_kept(record: RoundRecord) -> None:
            nonlocal kept
            kept += len(record.kept)

        observers = (progress.round_done, count_kept)
        build_emulation(plan.experiment, arm, world, executor, log, observers, stopwatch).run()
        if kept == 0:
            raise RunError(
                f"no update was absorbed in any of {run.rounds} rounds: every visit was dropped, as its "
                f"client went offline, or abandoned; give clients more time (devices.availability, "
                f"pacing.deadline_s), or less to do"
            )
    timing = {
        "wall_s": time.perf_counter() - start,
        **stopwatch.seconds,
        "cpu_s": time.process_time() - cpu_start,
        "peak_memory_bytes": _peak_memory_bytes(),
    }
    plan.directory.mark_done(run.arm, run.seed, timing)


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
        world = build_world(experiment, experiment.seeds[0], locate, scratch)
        refuse_unfit_arms(experiment, arms or [arm.name for arm in experiment.arm], world)
    return world


def _united(new: Experiment, old: Experiment, path: Path) -> Experiment:
    """`new` with the seeds of both; ConfigurationError when they differ in what decides a result."""
    difference = _first_difference(_deciding(old), _deciding(new))
    if difference is not None:
        raise ConfigurationError(
            f"{path} holds runs of another configuration ({difference}); "
            f"take another --out, or --fresh to delete them"
        )
    seeds = tuple(sorted({*old.seeds, *new.seeds}))
    kept = [arm for arm in old.arm if arm.name not in {item.name for item in new.arm}]
    return new.model_copy(update={"seeds": seeds, "arm": (*new.arm, *kept)})


def _deciding(experiment: Experiment) -> dict[str, Any]:
    """What decides the result of an (arm, seed): not which seeds there are, how many threads train, or how it
    is reported."""
    table = experiment.resolved()
    table["executor"].pop("threads")
    arms = {arm["name"]: arm for arm in table.pop("arm")}
    for key in ("seeds", "report", "training"):  # every arm has its training written out
        table.pop(key)
    return {**table, "arm": arms}


def _first_difference(old: Any, new: Any, path: str = "") -> str | None:
    """`key was X, is Y` of the first value that differs; an arm that only one side has is no difference."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            if path == "arm" and not (key in old and key in new):
                continue
            inner = f"{path}.{key}" if path else str(key)
            found = _first_difference(old.get(key), new.get(key), inner)
            if found is not None:
                return found
        return None
    return None if old == new else f"{path} was {old!r}, is {new!r}"


def _write_manifest(plan: Plan, world: World) -> None:
    """What the runs are made with. Of a seed that has finished runs, the world must be as it was then:
    ConfigurationError when a file behind the trace, the profile or the availability has changed."""
    seed, fingerprint = world.streams.seed, world.fingerprint()
    fingerprints = (plan.directory.manifest() or {}).get("sha256", {})
    has_finished = any(finished == seed for _, finished in plan.directory.finished_pairs())
    for what, sha256 in fingerprints.get(str(seed), {}).items() if has_finished else ():
        if sha256 != fingerprint[what]:
            raise ConfigurationError(
                f"{plan.directory.path}: the {what} of seed {seed} is not the one its finished runs were "
                f"made with: a file has changed since; take another --out, or --fresh to delete them"
            )
    manifest = {
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "profile": {"name": world.profile.name, "source": world.profile.source},
        "availability": dict(world.availability.facts),
        "random_streams": SCHEME,
        "sha256": {**fingerprints, str(seed): fingerprint},
    }
    write_atomically(plan.directory.manifest_path, json.dumps(manifest, indent=2) + "\n")


def _peak_memory_bytes() -> float:
    """The most memory this process has held so far, in earlier runs too."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
