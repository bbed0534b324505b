"""Deletes obsolete files of a run directory, those of a run only under that run's lock.

A process that seems dead may still be at work on a run, for example on another host of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.errors import InputError
from emulator.storage.own_files import delete_if_empty
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.locking import RunAtWorkError, seed_locked


def clear(directory: RunDirectory) -> None:
    """Delete all runs and the results made from them. Other files stay, and the folder if it has any.

    Raises InputError, before it deletes anything, if a process is at work on a run, or if the folder holds
    runs but no configuration: driftscale may not have written them.
    """
    if not directory.experiment_path.is_file():
        if not directory.holds_runs():  # a new folder, or one that is already cleared
            return
        missing = directory.experiment_path.name
        raise InputError(f"{directory.path}: not a run directory (it has no {missing}), so it is not deleted")
    directory.refuse_foreign()
    runs = directory.existing_runs()
    try:
        for arm, seed in runs:  # one by one: there may be more runs than a process may open files
            with seed_locked(directory, arm, seed):
                pass
    except RunAtWorkError as error:
        raise InputError(f"{directory.path} is not deleted: {error}") from error
    for arm, seed in runs:
        with seed_locked(directory, arm, seed):
            directory.delete_run(arm, seed)
    for arm in {arm: None for arm, _ in runs}:
        delete_if_empty(directory.path / arm)
    directory.delete_shared_files()
    delete_if_empty(directory.path)


def delete_leftovers(directory: RunDirectory, note: Callable[[str], None]) -> None:
    """Delete the files that killed processes have left behind.

    A run that a process is at work on is left alone, and reported by `note`.
    """
    for arm, seed in directory.existing_runs():
        if directory.has_leftovers(arm, seed):
            try:
                with seed_locked(directory, arm, seed):
                    directory.delete_leftovers(arm, seed)
            except RunAtWorkError as error:
                note(f"{error}; its files are left alone")


def at_work(directory: RunDirectory) -> list[tuple[str, int]]:
    """(arm, seed) of the runs that a process is at work on, for example a worker whose command was killed."""
    busy = []
    for arm, seed in directory.existing_runs():
        if directory.seed_lock_path(arm, seed).exists():
            try:
                with seed_locked(directory, arm, seed):
                    pass
            except RunAtWorkError:
                busy.append((arm, seed))
    return busy
