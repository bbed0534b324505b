"""The layout of a run directory; nothing else spells its file names.

    experiment.toml            the configuration, every default written out
    manifest.json              versions, hashes of trace and profile, seed streams
    <arm>/seed-<n>/log.jsonl   virtual quantities only
    <arm>/seed-<n>/timing.json what was measured on a wall clock
    <arm>/seed-<n>/DONE        or FAILED, with the reason; neither while a run is unfinished
    rounds.parquet, summary.json, report.html

DONE is written last: a run that has it has all its files.
"""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.errors import DataFileError, InputError
from emulator.runlog import RoundRecord, read_log


@dataclass(frozen=True)
class FinishedRun:
    """One (arm, seed) that ran to its end. `timing` has `wall_s`, `train_s`, `evaluate_s`, … ."""

    arm: str
    seed: int
    header: dict[str, Any]
    records: list[RoundRecord]
    timing: dict[str, float]


@dataclass(frozen=True)
class RunDirectory:
    """What is where under `path`, and what has been finished there."""

    path: Path

    @property
    def experiment_path(self) -> Path:
        return self.path / "experiment.toml"

    @property
    def manifest_path(self) -> Path:
        return self.path / "manifest.json"

    @property
    def rounds_path(self) -> Path:
        return self.path / "rounds.parquet"

    @property
    def summary_path(self) -> Path:
        return self.path / "summary.json"

    @property
    def report_path(self) -> Path:
        return self.path / "report.html"

    def seed_path(self, arm: str, seed: int) -> Path:
        """The folder of one run; InputError when the arm's name would lead out of the run directory."""
        if arm in ("", ".", "..") or set(arm) & set("/\\\0"):
            raise InputError(f"arm {arm!r}: its name must serve as the name of a folder")
        return self.path / arm / f"seed-{seed}"

    def log_path(self, arm: str, seed: int) -> Path:
        return self.seed_path(arm, seed) / "log.jsonl"

    def timing_path(self, arm: str, seed: int) -> Path:
        return self.seed_path(arm, seed) / "timing.json"

    def done_path(self, arm: str, seed: int) -> Path:
        return self.seed_path(arm, seed) / "DONE"

    def failed_path(self, arm: str, seed: int) -> Path:
        return self.seed_path(arm, seed) / "FAILED"

    # -- reading -----------------------------------------------------------------------------------------

    def experiment(self) -> dict[str, Any]:
        """The configuration of the run, as TOML reads it."""
        if not self.path.is_dir():
            raise InputError(f"{self.path}: no such run directory")
        if not self.experiment_path.is_file():
            raise InputError(f"{self.path}: not a run directory, it has no {self.experiment_path.name}")
        try:
            experiment = tomllib.loads(self.experiment_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataFileError(self.experiment_path, f"cannot be read as TOML ({error})") from error
        for key in ("name", "seeds", "arm", "report"):
            if key not in experiment:
                raise DataFileError(self.experiment_path, f"key {key!r} is missing")
        if not _is_list_of(int, experiment["seeds"]):
            raise DataFileError(self.experiment_path, "seeds must be a list of whole numbers")
        arms = experiment["arm"]
        if not _is_list_of(dict, arms) or not _is_list_of(str, [arm.get("name") for arm in arms]):
            raise DataFileError(self.experiment_path, "arm must be a list of tables that have a name")
        if not isinstance(experiment["report"], dict) or "window" not in experiment["report"]:
            raise DataFileError(self.experiment_path, "report must be a table that has a window")
        return experiment

    def manifest(self) -> dict[str, Any] | None:
        """The manifest, or None where the run wrote none."""
        return _read_json(self.manifest_path) if self.manifest_path.is_file() else None

    def arms(self) -> list[str]:
        """The arms' names in the configured order; the first is the reference."""
        return [str(arm["name"]) for arm in self.experiment()["arm"]]

    def seeds(self) -> list[int]:
        return [int(seed) for seed in self.experiment()["seeds"]]

    def is_done(self, arm: str, seed: int) -> bool:
        return self.done_path(arm, seed).is_file()

    def failure(self, arm: str, seed: int) -> str | None:
        """Why the run failed; None when it did not."""
        path = self.failed_path(arm, seed)
        return path.read_text(encoding="utf-8").strip() if path.is_file() else None

    def read_run(self, arm: str, seed: int) -> FinishedRun:
        """A finished run; InputError when it is not finished or damaged."""
        if not self.is_done(arm, seed):
            raise InputError(f"{self.path}: arm {arm!r}, seed {seed} is not finished")
        header, records = read_log(self.log_path(arm, seed))
        return FinishedRun(arm, seed, header, records, self.read_timing(arm, seed))

    def read_timing(self, arm: str, seed: int) -> dict[str, float]:
        """What was measured on a wall clock in a finished run."""
        return _read_json(self.timing_path(arm, seed))

    def finished_pairs(self) -> list[tuple[str, int]]:
        """(arm, seed) of all finished runs, by arm and then by seed as configured."""
        seeds = self.seeds()
        return [(arm, seed) for arm in self.arms() for seed in seeds if self.is_done(arm, seed)]

    def finished_runs(self) -> list[FinishedRun]:
        """All finished runs, in that order."""
        return [self.read_run(arm, seed) for arm, seed in self.finished_pairs()]

    # -- writing -----------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Delete the runs and all that was made of them; whatever else is in the folder stays, and with it
        the folder. InputError for a folder that is no run directory."""
        if not self.path.exists() or (self.path.is_dir() and not any(self.path.iterdir())):
            return
        if not self.experiment_path.is_file():
            missing = self.experiment_path.name
            raise InputError(f"{self.path}: not a run directory (it has no {missing}), so it is not deleted")
        for folder in sorted(self.path.glob("*/seed-*")):
            shutil.rmtree(folder)
            _remove_if_empty(folder.parent)
        for file in (
            self.manifest_path,
            self.rounds_path,
            self.summary_path,
            self.report_path,
            self.experiment_path,
        ):
            file.unlink(missing_ok=True)
        _remove_if_empty(self.path)

    def start(self, arm: str, seed: int) -> Path:
        """An empty folder for the run; whatever an earlier attempt left there is deleted."""
        folder = self.seed_path(arm, seed)
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        return folder

    def mark_done(self, arm: str, seed: int, timing: dict[str, float]) -> None:
        """Write the timing, then DONE."""
        write_atomically(self.timing_path(arm, seed), json.dumps(timing, allow_nan=False, indent=2) + "\n")
        write_atomically(self.done_path(arm, seed), "")

    def mark_failed(self, arm: str, seed: int, reason: str) -> None:
        write_atomically(self.failed_path(arm, seed), reason + "\n")


def write_atomically(path: Path, content: str | bytes) -> None:
    """The whole of `content` stands at `path`, or what was there before: never a part of it."""
    data = content.encode() if isinstance(content, str) else content
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, kind) for item in value)


def _remove_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataFileError(path, f"cannot be read as JSON ({error})") from error
    if not isinstance(content, dict):
        raise DataFileError(path, "must hold a JSON object")
    return content
