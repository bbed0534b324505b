"""The frames of a run directory, or of a folder of them, read when they are asked for.

A folder's frames begin with a column `experiment`, followed by one for each key in which its configurations
differ. Runs that are not finished are left out, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from emulator.errors import DataFileError, InputError, abbreviated
from experiments.results.frames.client_frames import clients_frame, visits_frame
from experiments.results.frames.columns import IN_FOLDERS, Column, described, frame_columns
from experiments.results.frames.detection_frames import (
    Scored,
    detection_frame,
    drifts_frame,
    scored_detectors,
)
from experiments.results.frames.round_frames import model_accuracy_frame, rounds_frame, triggers_frame
from experiments.results.frames.summary_frames import summary_frame, table_frame
from experiments.results.frames.typed_columns import below_each_other, kind_of, with_keys, with_run
from experiments.results.many_runs.directories import column_names, run_directories
from experiments.results.many_runs.folder_table import how_many_runs, run_counts
from experiments.results.reading.detection import detection_settings
from experiments.results.reading.differing_keys import differing_keys, key_values, short_names
from experiments.results.reading.not_recorded import (
    DETECTION,
    LOG_CLIENTS,
    LOG_VISITS,
    NotRecordedError,
    refuse_without_model_accuracy,
)
from experiments.results.reading.recorded import squared_distances
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.statistics.detection.scores import is_recorded
from experiments.results.statistics.summary import Summary
from experiments.results.tables.summary import summarise_directory
from experiments.results.wording import Words, told


@dataclass(frozen=True)
class RecordedExperiment:
    """A run directory with its finished runs, which are read at the first use.

    Attributes:
        name: Its name among several, in `experiment` columns.
        directory: The run directory.
    """

    name: str
    directory: RunDirectory

    @cached_property
    def config(self) -> dict[str, Any]:
        """The configuration as it was recorded, with all defaults."""
        return self.directory.experiment()

    @property
    def arms(self) -> list[str]:
        """The names of all arms in the configured order; the first is the reference arm."""
        return [str(arm["name"]) for arm in self.config["arm"]]

    @cached_property
    def finished(self) -> list[tuple[str, int]]:
        """(arm, seed) of its finished runs."""
        return self.directory.reported_pairs()

    @cached_property
    def runs(self) -> list[ReportedRun]:
        """Its finished runs; InputError if a file is damaged, or of another version that wrote others."""
        try:
            return self.directory.reported_runs()
        except DataFileError as error:
            raise _of_version(error, self.directory) from error

    @cached_property
    def summary(self) -> Summary:
        """Their summary, from their logs."""
        return summarise_directory(self.directory, self.runs)

    @property
    def unfinished(self) -> list[str]:
        """The runs that were asked for and are not finished, as "arm, seed 3 (failed)"."""
        return [
            f"{arm}, seed {seed}{' (failed)' if self.directory.failure(arm, seed) is not None else ''}"
            for arm, seed in self.directory.asked_pairs()
            if (arm, seed) not in self.finished
        ]

    def run(self, arm: str, seed: int) -> ReportedRun:
        """One of its finished runs; InputError with the choices if there is no such run."""
        self.refuse_unknown(arm, seed)
        return next(run for run in self.runs if (run.arm, run.seed) == (arm, seed))

    def refuse_unknown(self, arm: str, seed: int) -> None:
        """Raise InputError with the choices if no run of this arm and seed is finished."""
        if (arm, seed) in self.finished:
            return
        choices = ", ".join(f"{name} {number}" for name, number in self.finished)
        raise InputError(
            f"{self.directory.path}: no finished run of arm {arm!r}, seed {seed}; finished: {choices}"
        )

    def clients(self, arm: str, seed: int) -> pd.DataFrame:
        """The frame of the clients of one run (`clients_frame`), with its arm and seed."""
        run, devices = self.run(arm, seed), self.directory.read_clients(arm, seed)
        return with_run(clients_frame(run, self.summary.horizon, devices), arm, seed, self.arms)

    def visits(self, arm: str, seed: int) -> pd.DataFrame:
        """The frame of the visits of one run, with its arm and seed.

        Raises:
            NotRecordedError: They were not recorded.
            InputError: There is no such finished run.
        """
        self.refuse_unknown(arm, seed)
        visits = self.directory.read_visits(arm, seed)
        if visits is None:
            raise NotRecordedError(str(self.directory.path), "visits", LOG_VISITS)
        devices = self.directory.read_clients(arm, seed)
        return with_run(visits_frame(visits, devices), arm, seed, self.arms)

    def model_accuracy(self) -> pd.DataFrame:
        """The frame of the models of its finished runs (`model_accuracy_frame`).

        Raises:
            NotRecordedError: The runs did not record it.
        """
        refuse_without_model_accuracy(self.config, self.directory.path, self.summary.words)
        return model_accuracy_frame(self.runs, self.arms)

    @cached_property
    def detectors(self) -> list[Scored]:
        """The detectors of its finished runs, scored.

        Raises:
            NotRecordedError: The runs did not record decisions of detectors.
        """
        settings = detection_settings(self.config)
        if settings is None or not all(map(is_recorded, self.runs)):
            raise NotRecordedError(str(self.directory.path), "decisions of detectors", DETECTION)
        return scored_detectors(self.runs, settings)


MADE: Mapping[str, Callable[[RecordedExperiment], pd.DataFrame]] = {
    "summary": lambda of: summary_frame(of.summary, of.arms),
    "table": lambda of: table_frame(of.summary, of.arms),
    "rounds": lambda of: rounds_frame(of.runs, of.arms),
    "clients": lambda of: below_each_other([of.clients(*pair) for pair in of.finished]),
    "visits": lambda of: below_each_other([of.visits(*pair) for pair in of.finished]),
    "triggers": lambda of: triggers_frame(of.runs, of.arms, squared_distances(of.config)),
    "detection": lambda of: detection_frame(of.detectors, of.arms),
    "drifts": lambda of: drifts_frame(of.detectors, of.arms, of.directory.read_clients),
    "model_accuracy": RecordedExperiment.model_accuracy,
}
"""How each frame of an experiment is made, by name."""

FRAMES = tuple(name for name in MADE if name != "table")
"""The names of the frames that are exported."""


@dataclass(frozen=True)
class ResultFrames:
    """The frames of finished runs; each is read when it is first asked for, and kept.

    Attributes:
        path: The run directory, or the folder of run directories.
        experiments: The run directories that have finished runs, by the names of their folders.
        unfinished: The runs that are left out since they are not finished, with their experiment in a folder.
        is_folder: Whether `path` is a folder of run directories.
    """

    path: Path
    experiments: tuple[RecordedExperiment, ...]
    unfinished: tuple[str, ...]
    is_folder: bool
    _known: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(cls, path: Path) -> ResultFrames:
        """The frames of the run directory or the folder of run directories at `path`.

        Raises:
            InputError: There is no such directory, it is neither, or no run is finished.
            DataFileError: A configuration is damaged.
        """
        found = run_directories(path)
        directories, is_folder = found or [RunDirectory(path)], bool(found)
        recorded = list(map(RecordedExperiment, column_names(directories), directories))
        if not any(item.finished for item in recorded):
            one = run_counts(how_many_runs(directories[0]))
            raise InputError(
                f"{path}: no run is finished: {f'{len(recorded)} experiments' if is_folder else one}"
            )
        unfinished = [
            f"{item.name}: {run}" if is_folder else run for item in recorded for run in item.unfinished
        ]
        return cls(path, tuple(item for item in recorded if item.finished), tuple(unfinished), is_folder)

    def frame(self, name: str) -> pd.DataFrame:
        """The frame called `name`: that of each experiment below each other, made when it is first asked for.

        Raises:
            InputError: There is no such frame; the message has the choices.
            NotRecordedError: A finished run did not record what is in it.
        """
        if name not in MADE:
            raise InputError(f"no frame {name!r}; choices: {', '.join(frame_columns())}")
        if name not in self._known:
            self._known[name] = self._joined([MADE[name](item) for item in self.experiments])
        return self._known[name]

    def columns(self, name: str) -> pd.DataFrame:
        """A row per column of the frame called `name`: column, unit, meaning, missing; raises as `frame`."""
        key = IN_FOLDERS["<key>"] if self.is_folder else Column("")
        found = {column: described(name, column) or key for column in self.frame(name).columns}
        rows = [
            (column, known.unit, *told(self._words, [known.meaning, known.missing]))
            for column, known in found.items()
        ]
        return pd.DataFrame(rows, columns=["column", "unit", "meaning", "missing"])

    @property
    def missing_columns(self) -> str | None:
        """A sentence on columns that `clients` lacks, with the option that records them; None without."""
        lacking = [
            item.name
            for item in self.experiments
            if not item.config.get("round", {}).get("log_client_accuracy", False)
        ]
        if not lacking:
            return None
        of_some = "" if len(lacking) == len(self.experiments) else f"{abbreviated(lacking, ', ')}: "
        lines = f"{of_some}clients have no accuracy and no label: {LOG_CLIENTS} = true records them"
        return told(self._words, lines)

    @property
    def _words(self) -> Words:
        """The words of its experiments, one after the other, and their names."""
        found = [item.summary.words for item in self.experiments]
        names = [name for words in found for name in words.names]
        return Words(" or ".join(dict.fromkeys(words.word for words in found)), names)

    def _joined(self, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """The frames of all experiments below each other; of a folder with the experiment and its keys.

        The column of a key has its short name, or the whole one if a frame has a column of that name.
        """
        if not self.is_folder:
            return frames[0]
        taken = {"experiment", *(name for frame in frames for name in frame.columns)}
        short = zip(self._paths, short_names(self._paths), strict=True)
        names = [".".join(path) if name in taken else name for path, name in short]
        return below_each_other(
            [
                with_keys(frame, item.name, dict(zip(names, keys, strict=True)))
                for frame, item, keys in zip(frames, self.experiments, self._keys, strict=True)
            ]
        )

    @cached_property
    def _keys(self) -> list[list[tuple[list[Any], Any]]]:
        """For each experiment, (value for each of its arms, type) of each key in which configurations differ.

        A value may be missing in some experiments, and the type is the same in all.
        """
        found = []
        for item in self.experiments:
            values = key_values(item.config, self._paths)
            found.append(
                [
                    list(map(_plain, of_key))
                    for of_key in zip(*(values[arm] for arm in item.arms), strict=True)
                ]
            )
        kinds = [kind_of(list(chain(*of_key))) for of_key in zip(*found, strict=True)]
        return [list(zip(keys, kinds, strict=True)) for keys in found]

    @cached_property
    def _paths(self) -> list[tuple[str, ...]]:
        return differing_keys([item.config for item in self.experiments])


def _plain(value: Any) -> Any:
    """A value of a configuration as a cell: lists and tables, by which nothing is grouped, as text."""
    return str(value) if isinstance(value, list | Mapping) else value


def _of_version(error: DataFileError, directory: RunDirectory) -> InputError:
    """The error, with the versions if the run directory was recorded by another one than this."""
    manifest = directory.manifest()
    recorded = None if manifest is None else manifest.versions.get("driftscale")
    ours = version("driftscale")
    if recorded is None or recorded == ours:
        return error
    return InputError(f"{error}; driftscale {recorded} recorded it, and this is {ours}")
