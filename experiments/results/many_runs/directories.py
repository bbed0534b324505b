"""Run directories, each with what tables of many runs keep of its finished runs."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from emulator.errors import InputError, abbreviated, naming
from emulator.storage.own_files import open_file, path_below
from experiments.results.reading.configured_arms import ConfiguredArm, configured_arms, headline_arm
from experiments.results.reading.deciding import run_identities
from experiments.results.reading.differing_keys import Path as KeyPath
from experiments.results.reading.differing_keys import key_values, leaves
from experiments.results.reading.json_files import Manifest, SweepCell
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.statistics.comparisons import Columns, Compared, Comparison, Run, let_go, once
from experiments.results.statistics.horizon import common_horizon, event_rounds, seconds_per_round
from experiments.results.statistics.targets import after_events
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.results.statistics.whole_runs import (
    Finished,
    data_steps,
    drift_of_run,
    figures_of_finished,
    models_sent,
    objective,
)
from experiments.results.tables import all_tables
from experiments.results.tables.accuracy import mean_accuracy
from experiments.results.tables.quantities import Quantity
from experiments.results.tables.summary import measure, triggers

KnownRuns = dict[tuple[object, ...], Run]
"""Runs by the content of their logs, and by how they are read: cells of a sweep have copies of one log."""


@dataclass(frozen=True)
class MeasuredDirectory:
    """A run directory by its `name` in tables, with its finished runs, whose logs were let go.

    Runs are by arm in the configured order, and then by seed. The further properties are what decides how
    they may be compared with those of others.
    """

    name: str
    directory: RunDirectory
    experiment: Mapping[str, Any]
    manifest: Manifest
    runs: Sequence[Run]

    @classmethod
    def read(cls, directory: RunDirectory, name: str, known: KnownRuns | None = None) -> MeasuredDirectory:
        """The directory's finished runs; of copies of a log in `known`, none is parsed again.

        Raises:
            InputError: A file is damaged, or a run was never evaluated.
        """
        experiment, known = directory.experiment(), {} if known is None else known
        configured = configured_arms(experiment)
        how = (experiment["report"]["window"], tuple(event_rounds(experiment)), seconds_per_round(experiment))
        with naming(name):
            runs = [
                _read(directory, arm, seed, known, configured[arm], *how)
                for arm, seed in directory.reported_pairs()
            ]
        order = list(configured)
        runs.sort(key=lambda run: (order.index(run.arm), run.seed))
        return cls(name, directory, experiment, directory.manifest() or Manifest(), runs)

    @property
    def arms(self) -> list[str]:
        """The names of the arms in the configured order; the first is the reference arm."""
        return [arm["name"] for arm in self.experiment["arm"]]

    @cached_property
    def configured(self) -> dict[str, ConfiguredArm]:
        """The arms as tables use them, by name."""
        return configured_arms(self.experiment)

    @cached_property
    def headline(self) -> str | None:
        """The arm of its report's headline; None for a headline on all arms."""
        return headline_arm(self.experiment)

    @property
    def has_reference(self) -> bool:
        """Whether a run of the reference arm is finished."""
        return any(run.arm == self.arms[0] for run in self.runs)

    @property
    def objective(self) -> tuple[str, str]:
        """The kind of its objective and the word for the mean of hits, by the first run; it must have one."""
        return objective(self.runs[0].log)

    @property
    def finished(self) -> Finished:
        """The figures of its whole runs; seeds are in the configured order."""
        seeds: list[int] = self.experiment["seeds"]
        logs = sorted((run.log for run in self.runs), key=lambda log: seeds.index(log.seed))
        arms = [log for arm in self.arms for log in logs if log.arm == arm]
        return figures_of_finished(arms, self.arms[0], triggers(self.configured))

    @cached_property
    def identities(self) -> dict[str, str]:
        """`run_identities` of its configuration."""
        return run_identities(self.experiment)

    @property
    def cell(self) -> SweepCell:
        """The cell of a sweep that it is; without a name and keys if it is of none."""
        return self.manifest.sweep or SweepCell(of="", keys={})

    @property
    def command(self) -> str | None:
        """The command that began its runs, as a shell takes it; None if it was not recorded."""
        return shlex.join(self.manifest.commands[0].arguments) if self.manifest.commands else None

    @property
    def swept_paths(self) -> list[KeyPath]:
        """The swept keys that have a value in the configuration, as paths of `differing_keys`."""
        parts = [tuple(key.split(".")) for key in self.cell.keys]
        paths: list[KeyPath] = [("arm", *path[2:]) if path[0] == "arm" else path for path in parts]
        by_arm = key_values(self.experiment, paths).values()
        return [
            path for index, path in enumerate(paths) if any(values[index] is not None for values in by_arm)
        ]

    @cached_property
    def swept_trace_keys(self) -> tuple[str, ...]:
        """The swept keys that belong to the trace."""
        return tuple(sorted(key for key in self.cell.keys if key == "trace" or key.startswith("trace.")))

    @cached_property
    def trace(self) -> str:
        """A text that is the same for two directories with the same settings of the trace but swept ones."""
        others = {
            ".".join(path): value
            for path, value in leaves(self.experiment.get("trace", {}), ("trace",)).items()
            if not any(".".join(path[: key.count(".") + 1]) == key for key in self.swept_trace_keys)
        }
        return json.dumps([others, self.swept_trace_keys], sort_keys=True, default=str)

    def hashes(self, seed: int) -> tuple[str, str, str] | None:
        """The hashes of a seed's trace, fleet and availability; None unless all three are recorded."""
        world = self.manifest.sha256.get(str(seed), {})
        trace, fleet, availability = (world.get(part) for part in ("trace", "fleet", "availability"))
        if trace is None or fleet is None or availability is None:
            return None
        return trace, fleet, availability

    def has_world_of(self, other: MeasuredDirectory) -> bool:
        """Whether differences between the two are between methods, or values of a swept key of the trace.

        That is so if their objectives are the same, and the traces of all seeds that both have are the same
        by their hashes, or otherwise if the settings of the traces are the same but for keys that were swept
        in both.
        """
        if self.objective != other.objective:
            return False
        seeds = {run.seed for run in self.runs} & {run.seed for run in other.runs}
        hashes = [(self.hashes(seed), other.hashes(seed)) for seed in seeds]
        if hashes and all(
            mine is not None and theirs is not None and mine[0] == theirs[0] for mine, theirs in hashes
        ):
            return True
        return self.trace == other.trace


def run_directories(folder: Path, into: Path | None = None) -> list[RunDirectory]:
    """The run directories directly under `folder`, sorted by name; their results are below `into`, if given.

    Empty if `folder` does not exist or is a run directory itself. Raises ForeignFileError for a link to a run
    directory.
    """
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    if RunDirectory(folder).experiment_path.is_file():
        return []
    names = [path.name for path in paths if RunDirectory(path).experiment_path.is_file()]
    return [RunDirectory(path_below(folder, name, is_folder=True), into and into / name) for name in names]


def column_names(directories: Sequence[RunDirectory]) -> list[str]:
    """The name of each column: that of its configuration.

    If two configurations share a name, the names are those of the folders.
    """
    names = [str(directory.shared_experiment()["name"]) for directory in directories]
    return names if len(set(names)) == len(names) else [directory.path.name for directory in directories]


def read_folder(directories: Sequence[RunDirectory]) -> list[MeasuredDirectory]:
    """These run directories by the names of their columns, in the order of their folders' names.

    Raises InputError if a file of a finished run is damaged.
    """
    ordered, known = sorted(directories, key=lambda item: item.path.name), KnownRuns()
    return [
        MeasuredDirectory.read(directory, name, known)
        for directory, name in zip(ordered, column_names(ordered), strict=True)
    ]


def refuse_unfinished(directory: RunDirectory) -> None:
    """InputError that names the unfinished runs of the directory, if there are any.

    An arm of which no run was begun, as --arms leaves them, has none.
    """
    begun, seeds = {arm for arm, _ in directory.existing_runs()}, directory.seeds()
    missing = [
        f"{arm}, seed {seed}{' (failed)' if directory.failure(arm, seed) is not None else ''}"
        for arm in directory.arms()
        for seed in seeds
        if not directory.is_reported(arm, seed) and (arm in begun or not begun)
    ]
    if missing:
        raise InputError(
            f"{directory.path}: not finished: {abbreviated(missing)}; finish them with driftscale run, or "
            f"driftscale report shows what there is"
        )


def measured_alone(arm: Comparison) -> Comparison:
    """The arm with its mean accuracy and the figures of `in_many_runs`, as if it were compared with no other.

    Differences are from the reference arm of the same directory, without a test.
    """
    alone = arm.with_figures({})
    measure(Compared([alone], arm.measured[0].horizon), [mean_accuracy, *_shown()])
    return alone


def _shown() -> list[Quantity]:
    """The quantities of all tables that tables of many runs have."""
    return [quantity for table in all_tables() for quantity in table.in_many_runs]


@once
def progress(log: ReportedRun) -> Columns:
    """By the end of each round the `bytes` sent, for training and control, both ways, and its data `step`."""
    rows = [
        (record.closed_s, record.download_bytes + record.upload_bytes + record.control_bytes, record.step)
        for record in log.records
    ]
    columns = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return dict(zip(("closed_s", "bytes", "step"), columns, strict=True))


def bytes_by_the_horizon(run: Run) -> float:
    """Bytes sent in the rounds that closed by the horizon."""
    sent = run.rounds(progress)["bytes"]
    return float(sent[-1]) if len(sent) else 0.0


def steps_by_the_horizon(run: Run) -> int:
    """Data steps reached in the rounds that closed by the horizon."""
    return int(np.max(run.rounds(progress)["step"] + 1, initial=0))


def _read(directory: RunDirectory, arm: str, seed: int, known: KnownRuns, *how: Any) -> Run:
    """A run whose log was let go, `reduced` unless it is among the known; InputError if a file is damaged."""
    try:
        with open_file(directory.run_file(arm, seed, "log.jsonl")) as file:
            digest = hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]  # it is a file
    except OSError:  # `read_run` states what is wrong
        return reduced(directory.read_run(arm, seed), *how)
    key = (digest, directory.until(arm, seed), arm, seed, *how[1:])
    if key not in known:
        known[key] = reduced(directory.read_run(arm, seed), *how)
    return known[key]


def reduced(
    log: ReportedRun,
    configured: ConfiguredArm | None,
    window: int,
    rounds: Sequence[int] = (),
    seconds: float | None = None,
) -> Run:
    """The run without its log, smoothed over `window` evaluations; `rounds` are those of mass events.

    All that a row has of it is measured up to its own end, and so is known `once` of the log, and kept.
    """
    curve = accuracy_curve(log, window)
    own = common_horizon([log], [curve], event_rounds=rounds, seconds_per_round=seconds)
    run = Run.of(log, curve, own)
    alone = Comparison(log.arm, [run], [run], is_reference=False, configured=configured)
    compared = Compared([alone], own)
    for quantity in _shown():
        if quantity.of_run is not None:
            quantity(run)  # an estimate of one seed would be for nothing
    measure(compared, [quantity for quantity in _shown() if quantity.of_run is None])
    after_events(compared)
    heard: Callable[[ReportedRun], object] = attrgetter("offline_clients_heard")
    for fact in (progress, drift_of_run, models_sent, data_steps, heard, objective):
        fact(log)
    return Run(let_go(log), curve, own, run.events_s)
