"""`driftscale export`: frames as files, or finished runs to a tracker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.errors import InputError, UnknownNameError
from emulator.storage.own_files import path_below
from experiments.cli.output import OutputFormat, print_json, say
from experiments.cli.tables import print_path
from experiments.results.many_runs.directories import run_directories
from experiments.results.reading.recorded import EXPERIMENT_FILE
from experiments.results.reading.run_directory import RunDirectory
from experiments.tracking.registry import FOLDERS, TRACKERS, make_tracker, require_trackers

if TYPE_CHECKING:
    import pandas as pd

FILES = ("csv", "parquet")
OF_FEW_RUNS = ("detection", "drifts", "model_accuracy")
"""Frames of detectors, and of models by concept: most runs have none."""

EXPORT = "export"
"""Default name of the folder in DIR."""


@dataclass(frozen=True)
class ExportCommand:
    """The arguments of `driftscale export`; without `frames`, all that were recorded are written."""

    directory: Path
    to: str
    out: Path | None
    frames: Sequence[str] | None
    output: OutputFormat


def run_export(command: ExportCommand) -> None:
    """Export the finished runs, and print what was written where.

    Raises:
        UnknownNameError: There is no such format or frame.
        InputError: A tracker is not installed, no run is finished, a frame that --frames names was not
            recorded, or a run directory is damaged.
        ForeignFileError: A link or another kind of file is in the way.
        OSError: A file cannot be written.
        RunError: A tracker has failed.
    """
    if command.to not in (*FILES, *TRACKERS):
        raise UnknownNameError("format", command.to, (*FILES, *TRACKERS), "--to")
    if command.to in TRACKERS:
        require_trackers([command.to], "--to")
        if command.frames is not None:
            raise InputError(
                f"--frames: {command.to} gets the rounds of each run; frames are for csv and parquet"
            )
    _refuse_run_directory(command)
    directories = run_directories(command.directory) or [RunDirectory(command.directory)]
    if not any(directory.reported_pairs() for directory in directories):
        raise InputError(f"{command.directory}: no run is finished, so there is nothing to export")
    if command.to in TRACKERS:
        _export_to_tracker(command, directories)
    else:
        _export_frames(command)


def _refuse_run_directory(command: ExportCommand) -> None:
    """InputError if the files would land in a run directory, which has a rounds.parquet of its own."""
    folder = command.directory / EXPORT if command.out is None else command.out
    if command.out is not None and folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: is a file; a folder is needed")
    if (folder / EXPERIMENT_FILE).exists():
        raise InputError(f"{folder}: is a run directory; give another folder with --out")


def _export_frames(command: ExportCommand) -> None:
    from experiments.results.frames.frame_files import write_frames

    frames, left_out = _recorded_frames(command)
    if command.out is None:
        paths = write_frames(frames, command.to, command.directory, EXPORT)
    else:
        paths = write_frames(frames, command.to, command.out)
    if command.output is OutputFormat.JSON:
        print_json({"files": [str(path) for path in paths], "left_out": left_out})
        return
    for name, path in zip(frames, paths, strict=True):
        print_path(name, path)
    for name, why in left_out.items():
        say(f"left out: {name}: {why}")


def _recorded_frames(command: ExportCommand) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """The frames by name, and why others are left out, by name.

    Frames that most runs do not have are left out without a word unless --frames names them.

    Raises:
        UnknownNameError: --frames names something else.
        NotRecordedError: --frames names a frame that was not recorded.
    """
    from experiments.results.frames.result_frames import FRAMES, ResultFrames
    from experiments.results.reading.not_recorded import NotRecordedError

    for name in command.frames or ():
        if name not in FRAMES:
            raise UnknownNameError("frame", name, FRAMES, "--frames")
    results = ResultFrames.read(command.directory)
    frames: dict[str, pd.DataFrame] = {}
    left_out: dict[str, str] = {}
    for name in dict.fromkeys(FRAMES if command.frames is None else command.frames):
        try:
            frames[name] = results.frame(name)
        except NotRecordedError as error:
            if command.frames is not None:
                raise
            if name not in OF_FEW_RUNS:
                left_out[name] = str(error)
    return frames, left_out


def _export_to_tracker(command: ExportCommand, directories: Sequence[RunDirectory]) -> None:
    """Track the finished runs of each run directory.

    TensorBoard tells runs apart by their folders: by default each run directory has its own, which --track of
    `driftscale run` writes too; below --out, each of several has a folder of its name. MLflow tells them
    apart by its experiments, in one store.
    """
    from experiments.tracking.finished import track_finished
    from experiments.tracking.mlflow import address_in_force

    is_folder = directories[0].path != command.directory
    where: dict[str, None] = {}
    count = 0
    for directory in directories:
        if command.out is not None:
            root, names = command.out, [directory.path.name] if is_folder else []
        else:
            root = directory.path if command.to == "tensorboard" else command.directory
            names = [*FOLDERS[command.to]]
        if command.to == "mlflow" and command.out is not None:
            names = []
        count += track_finished(directory, command.to, partial(make_tracker, command.to, root, *names))
        folder = path_below(root, *names, is_folder=True)
        where[address_in_force(folder) if command.to == "mlflow" else str(folder)] = None
    if command.output is OutputFormat.JSON:
        print_json({"to": command.to, "at": list(where), "runs": count})
        return
    at = command.directory if len(where) > 1 else next(iter(where))
    say(f"{command.to}: {count} run{'s' if count > 1 else ''} at {at}")
