"""Tracks a run while it is played: an observer of its rounds, which stops no run and changes none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from emulator.errors import EmulatorError
from emulator.storage.runlog import RoundRecord, read_log
from experiments.results.reading.run_directory import RunDirectory
from experiments.tracking.base import Point, RunFacts, Tracker
from experiments.tracking.guarded import GuardedTracker
from experiments.tracking.registry import FOLDERS, make_tracker

Make = Callable[[str, RunDirectory], Tracker]


def _into_run_directory(name: str, directory: RunDirectory) -> Tracker:
    return make_tracker(name, directory.path, *FOLDERS[name])


class LiveTracking(AbstractContextManager["LiveTracking"]):
    """The trackers of one run: a context around its rounds, and their observer.

    Nothing that goes wrong with a tracker is raised: it is noted, and the tracker is dropped for the run.

    Args:
        names: Names of the trackers; none tracks nothing.
        directory: The run directory.
        arm: Name of the arm.
        seed: The seed.
        note: Receives a line for each tracker that is dropped.
        make: Makes a tracker by its name.
    """

    def __init__(
        self,
        names: Sequence[str],
        directory: RunDirectory,
        arm: str,
        seed: int,
        note: Callable[[str], None],
        make: Make = _into_run_directory,
    ) -> None:
        self._names = tuple(dict.fromkeys(names))
        self._directory, self._arm, self._seed = directory, arm, seed
        self._note, self._make = note, make
        self._trackers: list[GuardedTracker] = []

    def begin(self, *, is_resumed: bool) -> None:
        """Begin the run; the rounds of a resumed one are told again, from its log up to the checkpoint.

        A tracker discards what it has of an earlier attempt, so that no round is tracked twice.
        """
        if not self._names:
            return
        try:
            facts = RunFacts.read(self._directory, self._arm, self._seed)
            records = (
                read_log(self._directory.run_file(self._arm, self._seed, "log.jsonl"))[1]
                if is_resumed
                else []
            )
        except (EmulatorError, OSError, MemoryError) as error:
            self._note(f"{self._arm}, seed {self._seed} is not tracked: {error}")
            return
        for name in self._names:
            title = f"{self._arm}, seed {self._seed} in {name}"
            try:
                tracker = GuardedTracker(title, self._make(name, self._directory), self._note)
            except RuntimeError as error:  # no further thread can be started
                self._note(f"{title} is not tracked: {error}")
                continue
            self._trackers.append(tracker)
            tracker.begun(facts)
            tracker.rounds_done([Point.of(record) for record in records])

    def round_done(self, record: RoundRecord) -> None:
        """Pass a round on to the trackers; returns at once."""
        if self._trackers:
            point = Point.of(record)
            for tracker in self._trackers:
                tracker.round_done(point)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        status = "finished" if kind is None else "stopped" if kind is KeyboardInterrupt else "failed"
        if kind is None and self._directory.until(self._arm, self._seed) is not None:
            status = "stopped"
        for tracker in self._trackers:
            tracker.ended(status, {})
