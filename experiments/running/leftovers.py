"""Deletes what nobody needs any more in a run directory: files of each run under the lock of that run alone.

A process that was thought dead may still be at work on a run, on another host of a cluster say.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from emulator.errors import InputError
from experiments.results.run_directory import RunDirectory
from experiments.running.locking import RunAtWorkError, seed_locked


def clear(directory: RunDirectory) -> None:
    """Delete the runs and all that was made of them; whatever else is in the folder stays, and with it the
    folder.

    InputError, before anything is deleted, where a process is at work on a run, or where there are runs and
    no configuration: they may be anybody's.
    """
    if not directory.experiment_path.is_file():
        if not directory.holds_runs():  # nothing is here yet, or an earlier `clear` came to its end
            return
        missing = directory.experiment_path.name
        raise InputError(f"{directory.path}: not a run directory (it has no {missing}), so it is not deleted")
    directory.refuse_foreign()
    runs = directory.runs_there()
    try:
        for arm, seed in runs:  # one by one: there may be more runs than a process may have files open
            with seed_locked(directory, arm, seed):
                pass
    except RunAtWorkError as error:
        raise InputError(f"{directory.path} is not deleted: {error}") from error
    for arm, seed in runs:
        with seed_locked(directory, arm, seed):
            directory.delete_run(arm, seed)
    for arm in {arm: None for arm, _ in runs}:
        _delete_if_empty(directory.path / arm)
    directory.delete_files_of_all()
    _delete_if_empty(directory.path)


def sweep(directory: RunDirectory, note: Callable[[str], None]) -> None:
    """Delete what killed processes have left of runs; `note` is told of runs that are left alone, since a
    process is at work on them."""
    for arm, seed in directory.runs_there():
        if directory.has_leftovers(arm, seed):
            try:
                with seed_locked(directory, arm, seed):
                    directory.delete_leftovers(arm, seed)
            except RunAtWorkError as error:
                note(f"{error}; its files are left alone")


def at_work(directory: RunDirectory) -> list[tuple[str, int]]:
    """(arm, seed) of all runs that a process is at work on, such as a worker whose command was killed."""
    busy = []
    for arm, seed in directory.runs_there():
        if directory.seed_lock_path(arm, seed).exists():
            try:
                with seed_locked(directory, arm, seed):
                    pass
            except RunAtWorkError:
                busy.append((arm, seed))
    return busy


def _delete_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()
