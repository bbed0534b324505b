"""Finished runs of a run directory, reduced to the figures of a table of many runs."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.errors import naming
from emulator.storage.own_files import open_file
from experiments.results.reading.configured_arms import headline_arm
from experiments.results.reading.deciding import run_identities
from experiments.results.reading.differing_keys import Path as KeyPath
from experiments.results.reading.differing_keys import key_values, leaves
from experiments.results.reading.json_files import Timing, Until
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.statistics.comparisons import MeasuredRun
from experiments.results.statistics.drift.accuracy import drift_accuracies
from experiments.results.statistics.horizon import (
    Horizon,
    event_rounds,
    events_s,
    seconds_per_round,
)
from experiments.results.statistics.time_to_accuracy import AccuracyCurve, accuracy_curve, smooth
from experiments.results.tables import all_tables


@dataclass(frozen=True)
class PlayedRun:
    """A finished run, reduced to the figures of a table.

    Attributes:
        arm: Name of the arm.
        seed: The seed.
        curve: Its evaluations.
        closed_s: (n_rounds,) virtual time at which each round closed, ascending.
        total_bytes: (n_rounds,) bytes sent by then, both ways, for training and control.
        steps: (n_rounds,) data step of each round.
        events_s: Virtual times at which the rounds of its mass events opened, ascending.
        drift: For each figure of `published.COMPARED`, its value over the whole run; None if it is unknown,
            as of a run that is not finished.
        offline_clients_heard: As in `ReportedRun`.
        reduced: The data of tables from its records, by the functions `InManyRuns.reductions`.
        until: Where --until stopped it; None if it is finished.
    """

    arm: str
    seed: int
    curve: AccuracyCurve
    closed_s: Floats
    total_bytes: Floats
    steps: Ints
    events_s: tuple[float, ...]
    drift: Mapping[str, float | None]
    offline_clients_heard: bool = False
    reduced: Mapping[Callable[[ReportedRun], Any], Any] = field(default_factory=dict)
    until: Until | None = None

    @classmethod
    def of(
        cls,
        run: ReportedRun,
        window: int,
        event_rounds: Collection[int] = (),
        seconds_per_round: float | None = None,
    ) -> PlayedRun:
        """The reduced run.

        Its accuracy is smoothed over `window` evaluations; mass events are in the rounds `event_rounds`,
        nominal ones if `seconds_per_round`, their virtual seconds, is given.
        """
        records = run.records
        sent = [record.download_bytes + record.upload_bytes + record.control_bytes for record in records]
        return cls(
            run.arm,
            run.seed,
            accuracy_curve(run, window),
            np.array([record.closed_s for record in records], dtype=np.float64),
            np.array(sent, dtype=np.float64),
            np.array([record.step for record in records], dtype=np.int64),
            tuple(events_s(records, event_rounds, seconds_per_round)),
            drift_accuracies(records if run.until is None else []),
            run.offline_clients_heard,
            reduced(run),
            run.until,
        )

    @property
    def event_s(self) -> float | None:
        """Virtual time at which its first mass event opened; None without one."""
        return self.events_s[0] if self.events_s else None

    def smoothed(self, window: int) -> PlayedRun:
        """The same run with its accuracy smoothed over `window` evaluations."""
        curve = replace(self.curve, smoothed=smooth(self.curve.accuracy, window), window=window)
        return replace(self, curve=curve)

    def without_records(self, arm: str | None = None) -> ReportedRun:
        """The run without its records; `arm` replaces its arm's name."""
        return ReportedRun(arm or self.arm, self.seed, {}, [], Timing(wall_s=0.0), self.until)

    def measured(self, horizon: Horizon) -> MeasuredRun:
        """The run as tables take it, compared up to this horizon."""
        event_s = next((time_s for time_s in self.events_s if time_s < horizon.horizon_s), None)
        return MeasuredRun(self.arm, self.seed, self.curve, horizon, None, event_s, dict(self.reduced))

    def bytes_by(self, time_s: float) -> float:
        """Bytes sent in the rounds that closed by `time_s`."""
        count = int(np.searchsorted(self.closed_s, time_s, side="right"))
        return float(self.total_bytes[count - 1]) if count else 0.0

    def steps_by(self, time_s: float) -> int:
        """Data steps reached in the rounds that closed by `time_s`."""
        return int(np.max(self.steps[self.closed_s <= time_s] + 1, initial=0))

    def results_by(self, time_s: float) -> bytes | None:
        """Equal for two runs with the same evaluations and bytes up to `time_s`; None without evaluations."""
        seen = self.curve.times_s <= time_s
        if not seen.any():
            return None
        sent_bytes = np.float64(self.bytes_by(time_s))
        parts = (self.curve.times_s[seen], self.curve.accuracy[seen], sent_bytes)
        return b"".join(part.tobytes() for part in parts)


def reduced(run: ReportedRun) -> dict[Callable[[ReportedRun], Any], Any]:
    """The data of all tables from the records of a run, by the functions `InManyRuns.reductions`."""
    return {reduce: reduce(run) for table in all_tables() for reduce in table.in_many_runs.reductions}


class RunReader:
    """Reads finished runs; of copies of one log, as the cells of a sweep have them, it parses the first."""

    def __init__(self) -> None:
        self._runs: dict[tuple[object, ...], PlayedRun] = {}

    def read(
        self,
        directory: RunDirectory,
        arm: str,
        seed: int,
        window: int,
        event_rounds: Collection[int],
        seconds_per_round: float | None = None,
    ) -> PlayedRun:
        """The run, reduced as by `PlayedRun.of`; InputError if one of its files is damaged."""
        how = (window, event_rounds, seconds_per_round)
        try:
            with open_file(directory.run_file(arm, seed, "log.jsonl")) as file:
                digest = hashlib.sha256()
                while part := file.read(2**20):
                    digest.update(part)
        except OSError:  # `read_run` states what is wrong
            return PlayedRun.of(directory.read_run(arm, seed), *how)
        key = (digest.digest(), directory.until(arm, seed), arm, seed, *how[::2], *event_rounds)
        if key not in self._runs:
            self._runs[key] = PlayedRun.of(directory.read_run(arm, seed), *how)
        return self._runs[key]


@dataclass(frozen=True)
class MeasuredDirectory:
    """The finished runs of a run directory, and what decides how they may be compared with others.

    Attributes:
        name: Its name in tables.
        experiment: The recorded configuration.
        runs: Its finished runs, by arm in the configured order and then by seed.
        worlds: The hashes of each seed's world, by seed as text and by part of the world.
        swept: The keys of the sweep that it is a cell of, with their values; empty if it is of none.
        sweep: Name of that sweep; empty if it is of none.
        command: The command that began its runs, as a shell takes it; None if it was not recorded.
        order: The values of swept keys in the order given, as far as it was recorded.
    """

    name: str
    experiment: Mapping[str, Any]
    runs: Sequence[PlayedRun]
    worlds: Mapping[str, Mapping[str, str]]
    swept: Mapping[str, Any]
    sweep: str
    command: str | None = None
    order: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: RunDirectory, name: str, reader: RunReader | None = None) -> MeasuredDirectory:
        """The directory's finished runs, read by `reader`.

        Raises:
            InputError: A file is damaged, or a run was never evaluated.
        """
        reader = reader or RunReader()
        experiment, manifest = directory.experiment(), directory.manifest()
        sweep = None if manifest is None else manifest.sweep
        order = [arm["name"] for arm in experiment["arm"]]
        with naming(name):
            how = (experiment["report"]["window"], event_rounds(experiment), seconds_per_round(experiment))
            played = [reader.read(directory, arm, seed, *how) for arm, seed in directory.reported_pairs()]
        return cls(
            name=name,
            experiment=experiment,
            runs=sorted(played, key=lambda run: (order.index(run.arm), run.seed)),
            worlds={} if manifest is None else manifest.sha256,
            swept={} if sweep is None else sweep.keys,
            sweep="" if sweep is None else sweep.of,
            command=shlex.join(manifest.commands[0].arguments) if manifest and manifest.commands else None,
            order={} if sweep is None else sweep.order,
        )

    @property
    def arms(self) -> list[str]:
        """The names of the arms in the configured order; the first is the reference arm."""
        return [arm["name"] for arm in self.experiment["arm"]]

    @property
    def headline(self) -> str | None:
        """The arm of its report's headline; None for a headline on all arms."""
        return headline_arm(self.experiment)

    @property
    def has_reference(self) -> bool:
        """Whether a run of the reference arm is finished."""
        return any(run.arm == self.arms[0] for run in self.runs)

    @cached_property
    def identities(self) -> dict[str, str]:
        """`run_identities` of its configuration."""
        return run_identities(self.experiment)

    @property
    def swept_paths(self) -> list[KeyPath]:
        """The swept keys that have a value in the configuration, as paths of `differing_keys`."""
        parts = [tuple(key.split(".")) for key in self.swept]
        paths: list[KeyPath] = [("arm", *path[2:]) if path[0] == "arm" else path for path in parts]
        by_arm = key_values(self.experiment, paths).values()
        return [
            path for index, path in enumerate(paths) if any(values[index] is not None for values in by_arm)
        ]

    @cached_property
    def swept_trace_keys(self) -> tuple[str, ...]:
        """The swept keys that belong to the trace."""
        return tuple(sorted(key for key in self.swept if key == "trace" or key.startswith("trace.")))

    @cached_property
    def trace(self) -> str:
        """A text that is the same for two directories with the same settings of the trace but swept ones."""
        others = {
            ".".join(path): value
            for path, value in leaves(self.experiment.get("trace", {}), ("trace",)).items()
            if not _is_below(path, self.swept_trace_keys)
        }
        return json.dumps([others, self.swept_trace_keys], sort_keys=True, default=str)

    def hashes(self, seed: int) -> tuple[str, str, str] | None:
        """The hashes of a seed's trace, fleet and availability; None unless all three are recorded."""
        world = self.worlds.get(str(seed), {})
        trace, fleet, availability = (world.get(part) for part in ("trace", "fleet", "availability"))
        if trace is None or fleet is None or availability is None:
            return None
        return trace, fleet, availability

    def has_trace_of(self, other: MeasuredDirectory) -> bool:
        """Whether differences between the two are between methods, or values of a swept key of the trace.

        That is so if the traces of all seeds that both have are the same by their hashes, or otherwise if the
        settings of the traces are the same but for keys that were swept in both.
        """
        seeds = {run.seed for run in self.runs} & {run.seed for run in other.runs}
        hashes = [(self.hashes(seed), other.hashes(seed)) for seed in seeds]
        if hashes and all(
            mine is not None and theirs is not None and mine[0] == theirs[0] for mine, theirs in hashes
        ):
            return True
        return self.trace == other.trace


def _is_below(path: Sequence[str], keys: Sequence[str]) -> bool:
    """Whether the path is one of these keys, or of a table that is."""
    return any(".".join(path[: key.count(".") + 1]) == key for key in keys)
