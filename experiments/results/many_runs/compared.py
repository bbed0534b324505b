"""Several run directories, read and compared in one section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from emulator.errors import InputError, abbreviated
from experiments.results.many_runs.folder_table import run_directories
from experiments.results.many_runs.measured_directory import MeasuredDirectory, RunReader
from experiments.results.many_runs.rows import Section
from experiments.results.many_runs.sections import compare, in_order
from experiments.results.reading.run_directory import RunDirectory


def compared(paths: Sequence[Path]) -> Section:
    """The section of these run directories, and of those in the folders among `paths`.

    A folder's run directories are in the order of the keys in which they differ. A run directory that is
    named twice counts once.

    Raises:
        InputError: There are fewer than two run directories, one has unfinished runs, or they cannot be
            compared.
    """
    groups = [run_directories(path) or [RunDirectory(path)] for path in paths]
    for directory in (directory for group in groups for directory in group):
        directory.experiment()  # refuse what is no run directory
    if len({directory.path.resolve() for group in groups for directory in group}) < 2:
        raise InputError(
            f"compare {' '.join(map(str, paths))}: a single run directory; compare needs two or more, or a "
            f"folder of them"
        )
    measured, reader = dict[Path, MeasuredDirectory](), RunReader()
    for group in groups:
        for directory in group:
            _refuse_unfinished(directory)
        for item in in_order([MeasuredDirectory.read(item, str(item.path), reader) for item in group]):
            measured.setdefault(Path(item.name).resolve(), item)
    section = compare(list(measured.values()))
    if absent := _without_runs(list(measured.values())):
        section = replace(section, notes=[*section.notes, absent])
    return section


def _refuse_unfinished(directory: RunDirectory) -> None:
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


def _without_runs(directories: Sequence[MeasuredDirectory]) -> str:
    """A clause on the arms without a run in some of the directories; empty if there is no such arm."""
    played = [{run.arm for run in directory.runs} for directory in directories]
    absent = dict.fromkeys(
        arm
        for directory, arms in zip(directories, played, strict=True)
        for arm in directory.arms
        if arm not in arms
    )
    return f"no run was begun of {', '.join(absent)}" if absent else ""
