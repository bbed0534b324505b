"""What is to be run where: a configuration, its runs, and the run directory prepared for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.errors import ConfigurationError, InputError
from emulator.storage.checkpoints import make_folder, write_durably
from experiments.build import World, build_world, refuse_unfit_arms
from experiments.config import Experiment, Locate, parse_experiment
from experiments.naming import naming
from experiments.results.json_files import Timing
from experiments.results.run_directory import RunDirectory
from experiments.running.leftovers import at_work, clear
from experiments.running.members import refuse_unknown_arms

MOST_NAMED = 3


@dataclass(frozen=True)
class PlannedRun:
    """One (arm, seed) that a command is about to run, or finds finished."""

    experiment: str
    arm: str
    seed: int
    rounds: int


@dataclass(frozen=True)
class Reached:
    """How far a run has come: `rounds` are done, the last of them closed at `closed_s` of virtual time.

    `accuracy` is that of the last evaluated round; None while this attempt at the run has had none.
    """

    rounds: int
    closed_s: float
    accuracy: float | None


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

    def earlier(self) -> dict[PlannedRun, Timing]:
        """What was measured on a wall clock in each run that is finished already."""
        return {
            run: self.directory.read_timing(run.arm, run.seed) for run in self.runs() if self.is_done(run)
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

    Runs that it holds, finished, with a checkpoint or at work, are kept, with their seeds, if the
    configuration is the same in all else; ConfigurationError names what differs. `fresh` deletes them, once
    it is clear that the new ones can be built. ForeignFileError names what stands in the place of a file of
    any of them.
    """
    names = [arm.name for arm in experiment.arm]
    refuse_unknown_arms(arms, names)
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
    # Of runs that failed, or never came to a checkpoint, nothing is kept: they bind nobody. One that is at
    # work may come to its end yet.
    if directory.experiment_path.is_file() and (begun := [*directory.begun_pairs(), *at_work(directory)]):
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


def abbreviated(items: Sequence[str]) -> str:
    """The first few of `items`, and how many more there are."""
    num_more = len(items) - MOST_NAMED
    return "; ".join([*items[:MOST_NAMED], *([f"and {num_more} more"] if num_more > 0 else [])])


def _united(new: Experiment, old: Experiment, begun: Collection[str], path: Path) -> Experiment:
    """`new` with the seeds of both; ConfigurationError when they differ in what decides a result of an arm
    that has `begun`."""
    before = _deciding(old)
    before["arm"] = {name: arm for name, arm in before["arm"].items() if name in begun}
    differences = list(_differences(before, _deciding(new)))
    if differences:
        raise ConfigurationError(
            f"{path} holds runs of another configuration ({abbreviated(differences)}); "
            f"take another --out, or --fresh to delete them"
        )
    seeds = tuple(sorted({*old.seeds, *new.seeds}))
    old_arms = [arm for arm in old.arm if arm.name not in {item.name for item in new.arm}]
    return new.model_copy(update={"seeds": seeds, "arm": (*new.arm, *old_arms)})


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
