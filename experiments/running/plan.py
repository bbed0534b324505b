"""Plans: which runs of a configuration to play, and the run directory prepared for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from emulator.errors import ConfigurationError, InputError, abbreviated, naming
from emulator.own.code import before_any_run
from emulator.own_parts import is_loaded, named_modules
from emulator.storage.checkpoints import make_folder, write_durably
from experiments.build import World, build_world, check_rounds, world_settings
from experiments.checks.arms import check_arms, late_reporting, refuse_detection_without_truth
from experiments.checks.seeds import CHECKED_OF_ROUNDS, check_seeds
from experiments.checks.uses import trained_alike
from experiments.config import Experiment, parse_experiment
from experiments.devices import unread_names
from experiments.locating import Locate
from experiments.own.identity import unseen_by
from experiments.own.parts import own_parts
from experiments.own.trial import tried_arms, try_arms, try_world
from experiments.results.reading.deciding import deciding, differences
from experiments.results.reading.json_files import Command, SweepCell, Timing
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.leftovers import at_work, clear
from experiments.running.manifest import recorded_files
from experiments.running.members import refuse_unknown_arms
from experiments.running.source_files import SourceFiles
from experiments.shipped import named


@dataclass(frozen=True)
class PlannedRun:
    """One run of a command, (arm, seed) of an experiment, finished or not.

    `rounds` is its length, or that up to --until. With `round.seconds_per_round` these are nominal rounds, as
    are those of `Reached`: how many rounds it will have closed by its end is not known. `uses` are other arms
    that its training serves, too: their runs of the seed are played with it.
    """

    experiment: str
    arm: str
    seed: int
    rounds: int
    uses: tuple[str, ...] = ()

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms that are played."""
        return self.arm, *self.uses

    @property
    def title(self) -> str:
        """Its arms and its seed, for the user."""
        return f"{', '.join(self.arms)}, seed {self.seed}"

    def of(self, arms: Sequence[str]) -> PlannedRun:
        """The same with these of its arms alone."""
        return replace(self, arm=arms[0], uses=tuple(arms[1:]))


@dataclass(frozen=True)
class Reached:
    """How far a run has come.

    Attributes:
        rounds: Rounds done.
        closed_s: Virtual time, in seconds, at which the last of them closed.
        accuracy: Accuracy (0 to 1) in the last evaluated round; None until this attempt has evaluated one.
        word: What that is called.
    """

    rounds: int
    closed_s: float
    accuracy: float | None
    word: str = "accuracy"


@dataclass(frozen=True)
class Plan:
    """The runs of a configuration that a command plays, and their run directory.

    Attributes:
        experiment: The configuration.
        directory: The prepared run directory.
        arms: Names of the arms to run.
        locate: Maps a path in the configuration to a file.
        file: The configuration's file, named in errors; empty if it has none.
        command: The command that plays the runs, for the manifest; None where there is none.
        cell: Its place in a sweep; None without one.
        adopted: By (arm, seed), the run directory of another plan that has the same run: that plan plays it,
            and it is copied (`sharing.py`).
        track: Names of the trackers of its runs; they decide nothing.
        trial: Whether own code is still to be tried before the first run begins.
        until: The number of rounds at which each run is stopped and stored; None for all.
        alike: The arms in groups, each served by one training; those that are in none train for themselves.
    """

    experiment: Experiment
    directory: RunDirectory
    arms: Sequence[str]
    locate: Locate
    file: str = ""
    command: Command | None = None
    cell: SweepCell | None = None
    adopted: Mapping[tuple[str, int], RunDirectory] = field(default_factory=dict)
    track: Sequence[str] = ()
    trial: bool = False
    until: int | None = None
    alike: Sequence[Sequence[str]] = ()

    def own_modules(self) -> list[str]:
        """The modules of parts named by "my_module:MyPart", as far as they are loaded, of the arms to run."""
        table = self.experiment.resolved()
        arms = [arm for arm in table.pop("arm") if arm["name"] in self.arms]
        return sorted(module for module in named_modules([arms, table]) if is_loaded(module))

    def record_code(self, files: SourceFiles) -> None:
        """Record the code of all own parts of the arms to run; DataFileError if it has changed."""
        parts = own_parts(self.experiment, self.arms)  # which loads a device profile
        files.code(self.own_modules(), parts)

    def untried(self) -> list[str]:
        """The arms with own code that no run has begun with, if it is to be tried."""
        arms = tried_arms(self.experiment, self.arms) if self.trial else []
        return [arm for arm in arms if arm not in self.directory.begun_arms()]

    def unmade_reference(self) -> str:
        """The reference arm, if neither this command nor an earlier one runs it; else empty."""
        reference = self.experiment.arm[0].name
        is_made = reference in self.arms or any(
            arm == reference for arm, _ in self.directory.reported_pairs()
        )
        return "" if is_made else reference

    def pairs(self) -> list[tuple[str, int]]:
        """(arm, seed) of all runs, seed by seed, since all arms of a seed share its world."""
        return [(arm, seed) for seed in self.experiment.seeds for arm in self.arms]

    def runs(self) -> list[PlannedRun]:
        """The runs that this plan plays: all but the adopted ones, and those of one training as one.

        They are in the order of `pairs`, by the first arm of each.
        """
        name, rounds = self.experiment.name, self.experiment.round.rounds
        if self.until is not None and self.experiment.round.closed is not None:
            rounds = self.until
        alike = () if self.track else self.alike  # a tracker follows one run of a process at a time
        groups = {arm: group for group in alike for arm in group}
        played: dict[PlannedRun, None] = {}
        for arm, seed in self.pairs():
            group = [other for other in groups.get(arm, [arm]) if (other, seed) not in self.adopted]
            if arm in group:
                played[PlannedRun(name, group[0], seed, rounds, tuple(group[1:]))] = None
        return list(played)

    def is_kept(self, run: PlannedRun) -> bool:
        """Whether the run is finished, or stopped at `until` or later: there is nothing to play of it."""
        return all(self.directory.is_kept(arm, run.seed, self.until) for arm in run.arms)

    def earlier(self) -> dict[PlannedRun, Timing]:
        """Timing of each run that is kept: of its first arm.

        Raises:
            DataFileError: A `timing.json` is damaged.
        """
        return {
            run: self.directory.read_timing(run.arm, run.seed) for run in self.runs() if self.is_kept(run)
        }


def plan_run(
    experiment: Experiment,
    path: Path,
    arms: Sequence[str] | None,
    locate: Locate,
    *,
    fresh: bool,
    file: str = "",
    cell: SweepCell | None = None,
    is_checked: bool = False,
    is_checked_first: bool = False,
    trial: bool = False,
) -> Plan:
    """Prepare the run directory `path`, and plan the runs of `experiment` in it.

    Without `fresh`, existing runs that are finished, have a checkpoint or are at work are kept, and the
    recorded configuration keeps their arms and seeds.

    Args:
        experiment: The configuration.
        path: The run directory, created if it does not exist.
        arms: Names of the arms to run; None for all.
        locate: Maps a path in the configuration to a file.
        fresh: Delete all existing runs, after checking that the new ones can be built.
        file: The configuration's file, which errors name.
        cell: Its place in a sweep; None without one.
        is_checked: Whether the new runs have been checked already.
        is_checked_first: Whether to check the first runs of a run directory too, as with `fresh`: before
            workers start, which takes seconds.
        trial: Whether to try own code that no run has begun with.

    Returns:
        The plan. Its arms are in the given order, without duplicates.

    Raises:
        UnknownNameError: One of `arms` is not in the configuration.
        ConfigurationError: A key that affects the results of existing runs differs, or runs that are checked
            cannot be built.
        ForeignFileError: A file of the run directory, or of a run, is a link or another kind of file.
        InputError: `path` cannot be a run directory or be written, has runs without a configuration, or
            holds run directories; or with `fresh`, a process is at work on a run.
    """
    names, where = [arm.name for arm in experiment.arm], named(file)
    refuse_unknown_arms(arms, names)
    directory = RunDirectory(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; a run directory is a folder")
    directory.refuse_foreign((arm, seed) for arm in names for seed in experiment.seeds)
    replaces = fresh and path.exists()
    if not is_checked and (replaces or (is_checked_first and not directory.experiment_path.is_file())):
        check(experiment, locate, arms, where, scratch=path, trial=trial)
        trial = False
    if replaces:
        clear(directory)
    if not directory.experiment_path.is_file():
        _refuse_other_folders(directory)
    chosen = list(dict.fromkeys(arms)) if arms else names
    with naming(where):
        alike = trained_alike(experiment, chosen)
    plan = Plan(experiment, directory, chosen, locate, file, cell=cell, trial=trial, alike=alike)
    recorded = experiment
    begun: list[tuple[str, int]] = []
    # Runs that failed, or never reached a checkpoint, start over: they do not bind the configuration. A run
    # at work does, since it may still finish.
    if directory.experiment_path.is_file() and (begun := [*directory.resumable_pairs(), *at_work(directory)]):
        _refuse_other_modules(experiment, directory)
        old = parse_experiment(directory.experiment(), str(path))
        recorded = _united(experiment, old, {arm for arm, _ in begun}, path)
        plan.record_code(SourceFiles(plan.locate, recorded_files(directory)))
    with naming(where):
        text = recorded.to_toml()
    is_rewritten = begun and text != directory.experiment_path.read_text(encoding="utf-8")
    if is_rewritten and not is_checked and not all(directory.is_done(*pair) for pair in plan.pairs()):
        # The configuration of existing runs is not replaced by one that cannot be played.
        check(experiment, locate, arms, where, scratch=path)
    try:
        make_folder(path)
    except OSError as error:
        raise InputError(f"--out {path}: cannot be made a folder ({error.strerror})") from error
    try:
        directory.delete_torn_files()
        write_durably(directory.experiment_path, text)
    except OSError as error:
        raise InputError(f"--out {path}: cannot be written in ({error.strerror})") from error
    return plan


def _refuse_other_folders(directory: RunDirectory) -> None:
    """Raise InputError if a folder without a configuration holds runs, or run directories."""
    path = directory.path
    if directory.holds_runs():
        missing = directory.experiment_path.name
        raise InputError(f"{path} holds runs, but no {missing} with their configuration; take another --out")
    if directory.holds_run_directories():
        raise InputError(
            f"{path} holds several run directories, as of a sweep; take another --out for one experiment"
        )


def _refuse_other_modules(experiment: Experiment, directory: RunDirectory) -> None:
    """Raise ConfigurationError if the recorded configuration names a module that `experiment` does not.

    Reading it imports the parts that it names, and a run directory may be a stranger's.
    """
    others = named_modules(directory.experiment()) - named_modules(experiment.resolved())
    if others:
        raise ConfigurationError(
            f"{directory.path} holds runs with a part of the module {min(others)!r}, which this "
            f"configuration does not name, and which is not imported on the word of a run directory; take "
            f"another --out, or --fresh to delete them"
        )


def check(
    experiment: Experiment,
    locate: Locate,
    arms: Sequence[str] | None = None,
    file: str = "",
    *,
    scratch: Path,
    trial: bool = False,
) -> World:
    """Check a configuration: build all that runs of its first seed need, without training.

    Of the other seeds it checks what may differ (`experiments.checks.seeds`).

    Args:
        experiment: The configuration.
        locate: Maps a path in the configuration to a file.
        arms: Names of the arms to check; None or empty for all.
        file: The configuration's file, for errors to name.
        scratch: Folder for the file of a large trace; if it does not exist, the nearest existing parent.
        trial: Whether to play the first round of each arm with own code, twice.

    Returns:
        The world of the first seed.

    Raises:
        ConfigurationError: The configuration cannot be recorded, or its worlds or arms cannot be built, or
            own code fails its trial.
    """
    return Checker().check(experiment, locate, arms, file, scratch=scratch, tried=None if trial else ())


class Checker:
    """Checks several configurations as `check` does, without doing the same work twice.

    It keeps the world that it drew last. An arm is built once among all configurations of which its runs are
    the same, if their `identities` are passed. `note` receives warnings.
    """

    def __init__(self, note: Callable[[str], None] = lambda _: None) -> None:
        self._note = note
        self._world: World | None = None
        self._world_key: tuple[str, Locate] | None = None
        self._built: set[str] = set()
        self._sound: set[tuple[str, Locate]] = set()  # seeds and rounds of worlds that are in order
        self._noted: set[str] = set()

    def check(
        self,
        experiment: Experiment,
        locate: Locate,
        arms: Sequence[str] | None = None,
        where: str = "",
        *,
        scratch: Path,
        identities: Mapping[str, str] | None = None,
        tried: Collection[str] | None = None,
    ) -> World:
        """The world of the first seed of `experiment`, which is checked; see `check`.

        `identities` has, by arm, a text that is the same exactly if the runs of the arm are. Of the arms that
        are `tried`, None for all, the own code is.
        """
        while not scratch.is_dir() and scratch != scratch.parent:
            scratch = scratch.parent
        names = arms or [arm.name for arm in experiment.arm]
        known = identities or {}
        with naming(where), before_any_run():
            experiment.to_toml()  # refuse what cannot be recorded before drawing the world
            world = self._draw(experiment, locate, scratch)
            check_rounds(experiment, world.trace, world.streams)
            refuse_detection_without_truth(experiment, world.trace)
            unbuilt = [arm for arm in names if known.get(arm) not in self._built]
            if unbuilt:
                check_arms(experiment, unbuilt, world)
            self._say(where, unseen_by(own_parts(experiment, names)))
            self._say(where, unread_names(experiment.devices, world.profile, world.trace))
            self._check_seeds(experiment, locate, names, where, world, scratch)
            wanted = [arm for arm in tried_arms(experiment, names) if tried is None or arm in tried]
            if wanted:
                try_world(experiment, world, locate, scratch)
            self._say(where, try_arms(experiment, [arm for arm in wanted if arm in unbuilt], world))
        self._built.update(known.values())
        return world

    def _check_seeds(
        self,
        experiment: Experiment,
        locate: Locate,
        arms: Sequence[str],
        where: str,
        world: World,
        scratch: Path,
    ) -> None:
        """Check the worlds of all seeds, unless those of the same seeds and rounds have been checked."""
        late = late_reporting(experiment, arms)
        rounds = [getattr(experiment.round, name) for name in CHECKED_OF_ROUNDS]
        known = world_settings(experiment), experiment.seeds, rounds, bool(late)
        key = (json.dumps(known, sort_keys=True), locate)
        if key in self._sound:
            return
        self._say(where, check_seeds(experiment, late, experiment.seeds, world, locate, scratch))
        self._sound.add(key)

    def _say(self, where: str, notes: Iterable[str]) -> None:
        for note in notes:
            if note not in self._noted:
                self._note(f"{where}: {note}" if where else note)
            self._noted.add(note)

    def _draw(self, experiment: Experiment, locate: Locate, scratch: Path) -> World:
        """The world of the first seed: the one that was drawn last, if it is the same."""
        key = (world_key(experiment), locate)
        if self._world is None or self._world_key != key:
            self._world = self._world_key = None  # free the memory before the next is drawn
            self._world = build_world(experiment, experiment.seeds[0], locate, scratch)
            self._world_key = key
        return self._world


def world_key(experiment: Experiment) -> str:
    """A text that is the same for two configurations if the worlds of their first seeds are."""
    return json.dumps([world_settings(experiment), experiment.seeds[0]], sort_keys=True)


def _united(new: Experiment, old: Experiment, begun: Collection[str], path: Path) -> Experiment:
    """`new` with the seeds and arms of both, and with what was chosen for either.

    Raises ConfigurationError if they differ in a key that affects the results of an arm that has `begun`.
    """
    before = deciding(old.resolved())
    before["arm"] = {name: arm for name, arm in before["arm"].items() if name in begun}
    changes = list(differences(before, deciding(new.resolved())))
    if changes:
        raise ConfigurationError(
            f"{path} holds runs of another configuration ({abbreviated(changes)}); "
            f"take another --out, or --fresh to delete them"
        )
    seeds = tuple(sorted({*old.seeds, *new.seeds}))
    old_arms = [arm for arm in old.arm if arm.name not in {item.name for item in new.arm}]
    atlas = new.atlas if old.atlas is None or new.atlas is None else old.atlas.but_for(new.atlas)
    return new.model_copy(update={"seeds": seeds, "arm": (*new.arm, *old_arms), "atlas": atlas or old.atlas})
