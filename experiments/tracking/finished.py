"""Feeds a tracker with finished runs, from their logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from emulator.errors import EmulatorError, RunError
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.tables.summary import summarise_directory
from experiments.tracking.base import Point, RunFacts, Tracker


def track_finished(directory: RunDirectory, name: str, make: Callable[[], Tracker]) -> int:
    """Track all finished runs of a run directory, in place of what the tracker has of them.

    Args:
        directory: The run directory.
        name: The name of the tracker, for errors.
        make: Makes a tracker for one run.

    Returns:
        The number of runs.

    Raises:
        InputError: A file of the run directory is damaged.
        OSError: A file cannot be written.
        RunError: The tracker has failed.
    """
    runs = directory.reported_runs()
    figures = _summaries(directory, runs)
    for run in runs:
        facts = RunFacts.read(directory, run.arm, run.seed)
        try:
            tracker = make()
            tracker.begun(facts)
            for record in run.records:
                tracker.round_done(Point.of(record))
            status = "finished" if run.until is None else "stopped"
            tracker.ended(status, figures.get((run.arm, run.seed), {}))
        except (EmulatorError, OSError):
            raise
        except Exception as error:  # of the tracker's library
            problem = " ".join(f"{type(error).__name__}: {error}".split())
            where = f"{directory.path}: {run.arm}, seed {run.seed}"
            raise RunError(f"{where}: {name} failed: {problem}") from error
    return len(runs)


def _summaries(directory: RunDirectory, runs: list[ReportedRun]) -> dict[tuple[str, int], dict[str, float]]:
    """The figures of `summary.json` that are numbers of a single seed, by (arm, seed)."""
    if not runs:
        return {}
    arms: Any = summarise_directory(directory, runs).as_json()["arms"]
    return {
        (arm, seed): dict(_figures_at(figures, position))
        for arm, figures in arms.items()
        for position, seed in enumerate(figures["seed_ids"])
    }


def _figures_at(figures: Mapping[str, Any], position: int) -> Iterator[tuple[str, float]]:
    for name, figure in figures.items():
        if not isinstance(figure, Mapping) or not isinstance(figure.get("per_seed"), list):
            continue
        value = figure["per_seed"][position]
        if isinstance(value, int | float):
            yield name, float(value)
