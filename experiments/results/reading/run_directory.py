"""The layout of a run directory: all paths into it are made here, except those of single checkpoints.

    experiment.toml            the configuration, every default written out
    manifest.json              versions of the first attempt and any later ones, commands with their dates and
                               git commits, hashes of trace and profile, files that were read, seed streams
    <arm>/seed-<n>/log.jsonl   the log of a run: virtual quantities only
    <arm>/seed-<n>/clients.parquet the name and the device of each client
    <arm>/seed-<n>/visits.parquet  its visits, with `round.log_visits`; visits.arrow while it is unfinished
    <arm>/seed-<n>/models.safetensors   the models of a finished run, as `output.models` has it
    <arm>/seed-<n>/timing.json wall times and memory, and the machine they were measured on
    <arm>/seed-<n>/checkpoint/ the checkpoints from which an unfinished run resumes
    <arm>/seed-<n>/DONE        or FAILED, with the reason; neither while a run is unfinished
    <arm>/seed-<n>/traceback.txt   of code of the user's own in which a run has FAILED
    <arm>/seed-<n>/UNTIL       the number of rounds at which --until last stopped an unfinished run
    <arm>/.seed-<n>.lock       held by the process that is at work on this run, and deleted at its end
    rounds.parquet, summary.json, report.html
    .lock                      held by the process that runs into the directory

DONE is written last: a run that has it has all its files. Its checkpoints are deleted only after that. So is
UNTIL: up to there the run is reported until it ends, also while it is played on.

A run directory may come from somebody else. If an entry with one of these names is of another kind, such as a
link or a pipe, every operation refuses it with an error that names it.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

import pyarrow as pa

from emulator.errors import DataFileError, InputError
from emulator.storage import recorded_tables
from emulator.storage.bounded import read_text, toml_document, toml_text
from emulator.storage.checkpoints import (
    ASIDE,
    CheckpointFolder,
    copy_durably,
    delete_folder,
    make_folder,
    sync_folder,
    write_durably,
)
from emulator.storage.own_files import entries, path_below
from emulator.storage.runlog import RoundRecord, read_log
from experiments.results.reading.json_files import Manifest, Timing, Until
from experiments.results.reading.recorded import (
    EXPERIMENT_FILE,
    MOST_EXPERIMENT_BYTES,
    refuse_unreadable,
    require,
)

MOST_REASON_BYTES = 2**16
"""Largest FAILED that is read."""

SHARED_FILES = ("manifest.json", "rounds.parquet", "summary.json", "report.html", EXPERIMENT_FILE)
"""The files that all runs share, except the lock, in the order in which they are deleted."""

RunFile = Literal[
    "log.jsonl",
    "visits.arrow",
    "visits.parquet",
    "clients.parquet",
    "models.safetensors",
    "timing.json",
    "DONE",
    "FAILED",
    "UNTIL",
    "traceback.txt",
]
"""The files of one run, in its folder."""

MAY_BE_MISSING: Final = ("clients.parquet", "visits.parquet", "visits.arrow", "models.safetensors")
"""Those of them that a run may be reported without."""

RUN_NAME = re.compile(r"seed-(?P<folder>0|[1-9][0-9]{0,18})|\.seed-(?P<lock>0|[1-9][0-9]{0,18})\.lock")
"""Matches the names of the folder and of the lock of a run."""


@dataclass(frozen=True)
class ReportedRun:
    """A run that is finished, or was stopped `until` a round: its log up to there, and its timing."""

    arm: str
    seed: int
    header: dict[str, Any]
    records: list[RoundRecord]
    timing: Timing
    until: Until | None = None

    @cached_property
    def offline_clients_heard(self) -> bool:
        """Whether offline clients could report after the first round, in which all clients register.

        By its log: `round.hear` was "everyone", and clients checked their data for drift.
        """
        return self.header.get("hear") == "everyone" and any(record.changed for record in self.records[1:])


@dataclass(frozen=True)
class RunDirectory:
    """The files below `path`, and the runs whose folders are there.

    Every path that it returns is that of a regular file (or of a folder), or does not exist yet; an entry of
    another kind raises ForeignFileError. `path` itself is trusted, and may be a link.

    `results` is another folder for `rounds.parquet`, `summary.json` and `report.html`, where `path` cannot be
    written in.
    """

    path: Path
    results: Path | None = None

    @property
    def experiment_path(self) -> Path:
        """The configuration, with all defaults written out."""
        return path_below(self.path, EXPERIMENT_FILE)

    @property
    def manifest_path(self) -> Path:
        """Versions, hashes and files that the runs were made with."""
        return path_below(self.path, "manifest.json")

    @property
    def lock_path(self) -> Path:
        """The lock of the process that runs into the directory."""
        return path_below(self.path, ".lock")

    @property
    def rounds_path(self) -> Path:
        """The rounds of all finished runs as a table."""
        return path_below(self.results or self.path, "rounds.parquet")

    @property
    def summary_path(self) -> Path:
        """The figures of all arms."""
        return path_below(self.results or self.path, "summary.json")

    @property
    def report_path(self) -> Path:
        """The report, a web page."""
        return path_below(self.results or self.path, "report.html")

    def seed_path(self, arm: str, seed: int) -> Path:
        """The folder of one run.

        Raises:
            InputError: The arm's name cannot be the name of a folder in the run directory, as with "..". All
                methods with an arm raise it.
        """
        return path_below(self.path, *_folders(arm, seed), is_folder=True)

    def seed_lock_path(self, arm: str, seed: int) -> Path:
        """The lock of one run: beside its folder, because `start` deletes the folder."""
        folder, name = _folders(arm, seed)
        return path_below(self.path, folder, f".{name}.lock")

    def run_file(self, arm: str, seed: int, name: RunFile) -> Path:
        """The file of one run that is called so; the layout above says what is in it."""
        return path_below(self.path, *_folders(arm, seed), name)

    def checkpoints(self, arm: str, seed: int) -> CheckpointFolder:
        """The checkpoints of one run."""
        return CheckpointFolder(path_below(self.path, *_folders(arm, seed), "checkpoint", is_folder=True))

    def refuse_foreign(self, planned: Iterable[tuple[str, int]] = ()) -> None:
        """Refuse links and other entries of the wrong kind before any work is done, rather than half-way.

        Checks the shared files, all files of the runs that exist, and the folders of those that are planned.

        Args:
            planned: (arm, seed) of the runs that are going to be played.

        Raises:
            ForeignFileError: One of them is of another kind, such as a link.
        """
        self._shared_files()
        for arm, seed in planned:
            self.seed_path(arm, seed)
            self.seed_lock_path(arm, seed)
        for arm, seed in self.existing_runs():
            folder = self.seed_path(arm, seed)
            self.seed_lock_path(arm, seed)
            for name in get_args(RunFile):
                path_below(folder, name)
            checkpoints = self.checkpoints(arm, seed)
            checkpoints.files()
            checkpoints.torn()

    # -- reading -----------------------------------------------------------------------------------------

    def experiment(self) -> dict[str, Any]:
        """The configuration as it was recorded, without retired settings.

        Returns:
            The content of `experiment.toml`. The keys that a report uses are checked (`recorded.py`).

        Raises:
            InputError: There is no such directory, or it has no `experiment.toml`.
            DataFileError: `experiment.toml` cannot be read, or breaks a rule.
        """
        return copy.deepcopy(self.shared_experiment())

    def shared_experiment(self) -> dict[str, Any]:
        """As `experiment`, and not to be changed: it is shared by all who read the same text."""
        if not self.path.is_dir():
            is_file = f"; it is a file, and driftscale run {self.path} plays a configuration"
            raise InputError(f"{self.path}: no such run directory{is_file if self.path.is_file() else ''}")
        if not self.experiment_path.is_file():
            name = self.experiment_path.name
            around = [folder for folder in self.path.parents[:2] if (folder / name).is_file()]
            hint = f"; did you mean {around[0]}, which it is in?" if around else ""
            raise InputError(f"{self.path}: not a run directory, it has no {name}{hint}")
        try:
            text = toml_text(self.experiment_path, MOST_EXPERIMENT_BYTES)
        except (OSError, ValueError) as error:
            raise DataFileError(self.experiment_path, f"cannot be read as TOML ({error})") from error
        try:
            return _experiment(text)
        except ValueError as error:
            raise DataFileError(self.experiment_path, str(error)) from error

    def manifest(self) -> Manifest | None:
        """The manifest, or None if there is none yet; DataFileError if it cannot be read or breaks a rule."""
        return Manifest.read(self.manifest_path) if self.manifest_path.is_file() else None

    def arms(self) -> list[str]:
        """The names of the arms in the configured order; the first is the reference arm."""
        return [str(arm["name"]) for arm in self.shared_experiment()["arm"]]

    def left_out(self) -> list[str]:
        """The arms that no recorded command asked for, and that have no run, in the configured order.

        None is left out where a command asked for all, or none is recorded. DataFileError for a damaged
        manifest.
        """
        asked = [command.arms for command in (self.manifest() or Manifest()).commands]
        if not asked or None in asked:
            return []
        known = {arm for arm, _ in self.existing_runs()}.union(*filter(None, asked))
        return [arm for arm in self.arms() if arm not in known]

    def asked_pairs(self) -> list[tuple[str, int]]:
        """(arm, seed) of all runs but those of the arms that are `left_out`, in the configured order."""
        left_out = self.left_out()
        return [pair for pair in self._configured_pairs() if pair[0] not in left_out]

    def seeds(self) -> list[int]:
        """The seeds in the configured order."""
        return [int(seed) for seed in self.shared_experiment()["seeds"]]

    def is_done(self, arm: str, seed: int) -> bool:
        """Whether the run is finished."""
        return self.run_file(arm, seed, "DONE").is_file()

    def failure(self, arm: str, seed: int) -> str | None:
        """The reason for which the run failed; None if it did not fail.

        Raises DataFileError if FAILED cannot be read.
        """
        path = self.run_file(arm, seed, "FAILED")
        try:
            return read_text(path, MOST_REASON_BYTES).strip() if path.is_file() else None
        except (OSError, ValueError) as error:
            if not path.exists():  # deleted since: the run is begun again
                return None
            raise DataFileError(path, f"cannot be read ({error})") from error

    def until(self, arm: str, seed: int) -> Until | None:
        """Where --until stopped the run; None if it is finished, or was never stopped so.

        Raises DataFileError if UNTIL is damaged.
        """
        path = self.run_file(arm, seed, "UNTIL")
        return Until.read(path) if path.is_file() and not self.is_done(arm, seed) else None

    def is_reported(self, arm: str, seed: int) -> bool:
        """Whether the run is finished, or was stopped by --until; see `until`."""
        return self.is_done(arm, seed) or self.until(arm, seed) is not None

    def is_kept(self, arm: str, seed: int, until: int | None) -> bool:
        """Whether a command with --until `until`, or without for None, has nothing to play of the run."""
        stopped = self.until(arm, seed)
        is_so_far = stopped is not None and until is not None and stopped.rounds >= until
        return is_so_far or self.is_done(arm, seed)

    def read_run(self, arm: str, seed: int) -> ReportedRun:
        """The log and timing of a run that is finished or, of one that was stopped by --until, up to there.

        Raises:
            InputError: The run is neither, or one of its files is damaged.
        """
        until = self.until(arm, seed)
        if until is None and not self.is_done(arm, seed):
            raise InputError(f"{self.path}: arm {arm!r}, seed {seed} is not finished")
        rounds = None if until is None else until.rounds
        header, records = read_log(self.run_file(arm, seed, "log.jsonl"), rounds)
        return ReportedRun(arm, seed, header, records, self.read_timing(arm, seed), until)

    def read_timing(self, arm: str, seed: int) -> Timing:
        """The timing of a run that is reported; DataFileError if it cannot be read or breaks a rule."""
        return Timing.read(self.run_file(arm, seed, "timing.json"))

    def read_visits(self, arm: str, seed: int) -> pa.Table | None:
        """The visits of a run, with the columns `recorded_tables.VISITS`; None if they were not logged.

        Raises DataFileError if the file is damaged.
        """
        path = self.run_file(arm, seed, "visits.parquet")
        return recorded_tables.read_visits(path) if path.exists() else None

    def read_clients(self, arm: str, seed: int) -> pa.Table | None:
        """The devices of the clients of a run, with the columns `recorded_tables.CLIENTS`.

        None if they are not there. Raises DataFileError if the file
        is damaged.
        """
        path = self.run_file(arm, seed, "clients.parquet")
        return recorded_tables.read_clients(path) if path.exists() else None

    def reported_pairs(self) -> list[tuple[str, int]]:
        """(arm, seed) of all runs that are finished or were stopped by --until.

        By arm and then by seed, in the configured order.
        """
        return [pair for pair in self._configured_pairs() if self.is_reported(*pair)]

    def holds_runs(self) -> bool:
        """Whether any run, in the configuration or not, is finished or has a checkpoint."""
        return any(
            self.run_file(*run, "DONE").exists() or entries(self.seed_path(*run), "checkpoint/round-*")
            for run in self.existing_runs()
        )

    def holds_run_directories(self) -> bool:
        """Whether any folder directly below is a run directory, as of the cells of a sweep."""
        return bool(entries(self.path, f"*/{EXPERIMENT_FILE}"))

    def existing_runs(self) -> list[tuple[str, int]]:
        """(arm, seed) of all runs with a folder or a lock, in the configuration or not; sorted."""
        runs = set()
        for path in (*entries(self.path, "*/seed-*"), *entries(self.path, "*/.seed-*.lock")):
            match = RUN_NAME.fullmatch(path.name)
            if match is not None and _can_name_a_folder(path.parent.name):
                runs.add((path.parent.name, int(match["folder"] or match["lock"])))
        return sorted(runs)

    def has_leftovers(self, arm: str, seed: int) -> bool:
        """Whether there may be leftovers of a killed process in the files of the run.

        These are its lock (which is also there while a process is at work on the run), temporary files, and
        the checkpoints and the visit log of a finished run.
        """
        if self.seed_lock_path(arm, seed).exists() or _torn(self.seed_path(arm, seed), get_args(RunFile)):
            return True
        resumed_from = (self.checkpoints(arm, seed).path, self.run_file(arm, seed, "visits.arrow"))
        return self.is_done(arm, seed) and any(path.exists() for path in resumed_from)

    def resumable_pairs(self) -> list[tuple[str, int]]:
        """(arm, seed) of the configured runs that are finished, or have a checkpoint and have not failed."""
        return [
            run
            for run in self._configured_pairs()
            if self.is_done(*run)
            or (not self.run_file(*run, "FAILED").is_file() and self.checkpoints(*run).files())
        ]

    def begun_arms(self) -> set[str]:
        """The arms of `resumable_pairs`."""
        return {arm for arm, _ in self.resumable_pairs()}

    def reported_runs(self) -> list[ReportedRun]:
        """The runs of `reported_pairs`.

        Raises:
            InputError: A file of one of them is damaged.
        """
        return [self.read_run(arm, seed) for arm, seed in self.reported_pairs()]

    # -- writing -----------------------------------------------------------------------------------------

    def delete_run(self, arm: str, seed: int) -> None:
        """Delete the folder of the run, its DONE and UNTIL first: a run with one must have all its files."""
        folder = self.seed_path(arm, seed)
        for mark in (self.run_file(arm, seed, "DONE"), self.run_file(arm, seed, "UNTIL")):
            if mark.exists():
                mark.unlink()
                sync_folder(folder)
        if folder.exists():
            delete_folder(folder)

    def delete_shared_files(self) -> None:
        """Delete the files that all runs share, the configuration last."""
        for file in self._shared_files():
            file.unlink(missing_ok=True)

    def delete_torn_files(self) -> None:
        """Delete the temporary files of processes that were killed while they wrote a shared file."""
        for file in _torn(self.path, SHARED_FILES):
            file.unlink(missing_ok=True)

    def delete_leftovers(self, arm: str, seed: int) -> None:
        """Delete the temporary files of killed processes that wrote files of the run.

        If the run is finished, its checkpoints and its visit log are deleted too.
        """
        for file in _torn(self.seed_path(arm, seed), get_args(RunFile)):
            file.unlink(missing_ok=True)
        if self.is_done(arm, seed):
            self._delete_resumable(arm, seed)

    def start(self, arm: str, seed: int) -> Path:
        """Make an empty folder for the run, and return its path; files of an earlier attempt are deleted."""
        self.delete_run(arm, seed)
        folder = self.seed_path(arm, seed)
        make_folder(folder)
        return folder

    def mark_done(
        self, arm: str, seed: int, timing: Mapping[str, float | str], until: Until | None = None
    ) -> None:
        """Write `timing`, the values of a `Timing` by key, then DONE, then delete what a run resumes from.

        Of a run that is stored and stopped `until` a round, write UNTIL instead of DONE, and delete nothing.

        Raises:
            ValueError: A number of `timing` is not finite.
        """
        content = json.dumps(dict(timing), allow_nan=False, indent=2) + "\n"
        write_durably(self.run_file(arm, seed, "timing.json"), content)
        if until is not None:
            write_durably(self.run_file(arm, seed, "UNTIL"), until.model_dump_json() + "\n")
            return
        write_durably(self.run_file(arm, seed, "DONE"), "")
        self._delete_resumable(arm, seed)

    def unmark_until(self, arm: str, seed: int) -> None:
        """Delete UNTIL, as before anything is changed of what it states."""
        self.run_file(arm, seed, "UNTIL").unlink(missing_ok=True)

    def copy_run(self, source: RunDirectory, arm: str, seed: int) -> None:
        """Copy a run that is reported from `source`, in place of all that there is of it here.

        It is copied with what it resumes from, if it is stopped. DONE or UNTIL is written last.

        Raises:
            OSError: A file cannot be read or written; the error has its name.
        """
        folder, run = self.start(arm, seed), (arm, seed)
        mark = source.run_file(*run, "DONE" if source.is_done(*run) else "UNTIL")
        others = [source.run_file(*run, name) for name in MAY_BE_MISSING]
        copied = [source.run_file(*run, "log.jsonl"), *(file for file in others if file.exists())]
        if stored := source.checkpoints(*run).files():
            make_folder(folder / stored[0].parent.name)
        for file in (*copied, *stored, source.run_file(*run, "timing.json"), mark):
            copy_durably(file, folder / file.relative_to(source.seed_path(*run)))

    def mark_failed(self, arm: str, seed: int, reason: str) -> None:
        """Delete the checkpoints, then write FAILED with `reason`: the next attempt starts the run over."""
        make_folder(self.seed_path(arm, seed))  # the run may have failed before it had a folder
        self.unmark_until(arm, seed)
        self.checkpoints(arm, seed).delete()
        write_durably(self.run_file(arm, seed, "FAILED"), reason + "\n")

    # -- names ---------------------------------------------------------------------------------------

    def _configured_pairs(self) -> list[tuple[str, int]]:
        seeds = self.seeds()
        return [(arm, seed) for arm in self.arms() for seed in seeds]

    def _delete_resumable(self, arm: str, seed: int) -> None:
        """Delete what an unfinished run resumes from, and a finished one needs no more."""
        self.checkpoints(arm, seed).delete()
        self.run_file(arm, seed, "visits.arrow").unlink(missing_ok=True)

    def _shared_files(self) -> list[Path]:
        return [path_below(self.path, name) for name in SHARED_FILES]


def _folders(arm: str, seed: int) -> tuple[str, str]:
    """The names of the folders from the run directory down to the run: (arm, "seed-<n>").

    Raises InputError if `arm` cannot be the name of a folder.
    """
    if not _can_name_a_folder(arm):
        raise InputError(f"arm {arm!r}: its name must serve as the name of a folder")
    return arm, f"seed-{seed}"


def _can_name_a_folder(arm: str) -> bool:
    return arm not in ("", ".", "..") and not set(arm) & set("/\\\0")


def _torn(folder: Path, names: Collection[str]) -> list[Path]:
    """The temporary files of processes that were killed while they wrote one of `names` in `folder`."""
    return [
        path_below(folder, file.name)
        for file in entries(folder, ".*")
        if (torn := ASIDE.fullmatch(file.name)) is not None
        and torn["name"] in names
        and not _is_alive(int(torn["pid"]))
    ]


@lru_cache(maxsize=64)
def _experiment(text: str) -> dict[str, Any]:
    """The configuration in an `experiment.toml`; ValueError states which rule it breaks.

    NOTE: remembered, since a command reads a file up to thirty times, and to parse it takes milliseconds.
    """
    try:
        experiment = toml_document(text)
    except ValueError as error:
        raise ValueError(f"cannot be read as TOML ({error})") from error
    for key in ("name", "seeds", "arm", "report"):
        require(key in experiment, f"key {key!r} is missing")
    require(_is_list_of(int, experiment["seeds"]), "seeds must be a list of whole numbers")
    arms, report = experiment["arm"], experiment["report"]
    are_named = _is_list_of(dict, arms) and _is_list_of(str, [arm.get("name") for arm in arms])
    require(are_named, "arm must be a list of tables that have a name")
    require(isinstance(report, dict) and "window" in report, "report must be a table that has a window")
    refuse_unreadable(experiment)
    return experiment


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, kind) for item in value)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        return True
    return True
