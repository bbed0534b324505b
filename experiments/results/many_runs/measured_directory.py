"""Finished runs of a run directory, reduced to the figures of a table of many runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from emulator.arrays import Floats, Ints
from experiments.results.accuracy_tables import MeasuredRun
from experiments.results.drift_figures import drift_figures
from experiments.results.json_files import Finished, Timing
from experiments.results.many_runs.differing_keys import leaves
from experiments.results.run_directory import FinishedRun, RunDirectory
from experiments.results.time_to_accuracy import AccuracyCurve, accuracy_curve, smooth


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
    """

    arm: str
    seed: int
    curve: AccuracyCurve
    closed_s: Floats
    total_bytes: Floats
    steps: Ints

    @classmethod
    def of(cls, run: FinishedRun, window: int) -> PlayedRun:
        """The reduced run; `window` is the number of evaluations over which its accuracy is smoothed."""
        records = run.records
        sent = [record.download_bytes + record.upload_bytes + record.control_bytes for record in records]
        return cls(
            run.arm,
            run.seed,
            accuracy_curve(run, window),
            np.array([record.closed_s for record in records], dtype=np.float64),
            np.array(sent, dtype=np.float64),
            np.array([record.step for record in records], dtype=np.int64),
        )

    def smoothed(self, window: int) -> PlayedRun:
        """The same run with its accuracy smoothed over `window` evaluations."""
        curve = replace(self.curve, smoothed=smooth(self.curve.accuracy, window))
        return replace(self, curve=curve)

    def measured(self, arm: str | None = None) -> MeasuredRun:
        """The run as `accuracy_tables` takes it, without its records; `arm` replaces its arm's name."""
        run = FinishedRun(arm or self.arm, self.seed, {}, [], Timing(wall_s=0.0))
        return MeasuredRun(run, self.curve, event_s=None)

    def bytes_by(self, time_s: float) -> float:
        """Bytes sent in the rounds that closed by `time_s`."""
        count = int(np.searchsorted(self.closed_s, time_s, side="right"))
        return float(self.total_bytes[count - 1]) if count else 0.0

    def steps_by(self, time_s: float) -> int:
        """Data steps reached in the rounds that closed by `time_s`."""
        return int(np.max(self.steps[self.closed_s <= time_s] + 1, initial=0))

    def results_by(self, time_s: float) -> bytes:
        """A text that is the same for two runs with the same evaluations and bytes sent up to `time_s`."""
        seen = self.curve.times_s <= time_s
        sent = np.float64(self.bytes_by(time_s))
        return b"".join(
            part.tobytes() for part in (self.curve.times_s[seen], self.curve.accuracy[seen], sent)
        )


@dataclass(frozen=True)
class MeasuredDirectory:
    """The finished runs of a run directory, and what decides how they may be compared with others.

    Attributes:
        name: Its name in tables.
        experiment: The recorded configuration.
        runs: Its finished runs, by arm and then by seed, in the configured order.
        worlds: The hashes of each seed's world, by seed as text and by part of the world.
        swept: The keys of the sweep that it is a cell of, with their values; empty if it is of none.
        sweep: Name of that sweep; empty if it is of none.
        finished: The figures of all its finished runs.
    """

    name: str
    experiment: Mapping[str, Any]
    runs: Sequence[PlayedRun]
    worlds: Mapping[str, Mapping[str, str]]
    swept: Mapping[str, Any]
    sweep: str
    finished: Finished

    @classmethod
    def read(
        cls, directory: RunDirectory, name: str, runs: Sequence[FinishedRun] | None = None
    ) -> MeasuredDirectory:
        """The directory's finished `runs`, which are read unless they are given.

        Raises:
            InputError: A file is damaged, or a run was never evaluated.
        """
        experiment, manifest = directory.experiment(), directory.manifest()
        runs = directory.finished_runs() if runs is None else runs
        sweep = None if manifest is None else manifest.sweep
        return cls(
            name=name,
            experiment=experiment,
            runs=[PlayedRun.of(run, experiment["report"]["window"]) for run in runs],
            worlds={} if manifest is None else manifest.sha256,
            swept={} if sweep is None else sweep.keys,
            sweep="" if sweep is None else sweep.of,
            finished=drift_figures(runs, experiment["arm"][0]["name"]),
        )

    @property
    def arms(self) -> list[str]:
        """The names of the arms in the configured order; the first is the reference arm."""
        return [arm["name"] for arm in self.experiment["arm"]]

    @property
    def has_reference(self) -> bool:
        """Whether a run of the reference arm is finished."""
        return any(run.arm == self.arms[0] for run in self.runs)

    @property
    def trace(self) -> str:
        """A text that is the same for directories with the same trace, apart from swept keys of the trace."""
        others = {
            ".".join(path): value
            for path, value in leaves(self.experiment.get("trace", {}), ("trace",)).items()
            if not _is_below(path, self.swept_trace_keys)
        }
        return json.dumps([others, self.swept_trace_keys], sort_keys=True, default=str)

    @property
    def swept_trace_keys(self) -> list[str]:
        """The swept keys that belong to the trace."""
        return sorted(key for key in self.swept if key == "trace" or key.startswith("trace."))


def _is_below(path: Sequence[str], keys: Sequence[str]) -> bool:
    """Whether the path is one of these keys, or of a table that is."""
    return any(".".join(path[: key.count(".") + 1]) == key for key in keys)
