"""The queue of unfinished runs: which one a free worker gets next.

Pure: knows neither processes nor clocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence

from experiments.running.plan import PlannedRun

World = tuple[str, int]
"""(experiment, seed): identifies a world, which all arms of the seed share."""


def world_of(run: PlannedRun) -> World:
    return run.experiment, run.seed


class RunQueue:
    """The runs that wait for a worker.

    Order of preference for a worker: first runs of the world that it has drawn, then of worlds that no other
    worker has drawn, then of the rest; among these, of the world with the most remaining work, in expected
    wall seconds. Within a world, the slowest arm goes first, so that no long run is left for the end; an arm
    that has not been measured counts as infinitely slow. Ties go to the run that comes first in `runs`.
    """

    def __init__(self, runs: Iterable[PlannedRun]) -> None:
        self._rank = {run: rank for rank, run in enumerate(runs)}
        self._waiting = set(self._rank)
        self._seconds: dict[tuple[str, str], float] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, run: PlannedRun) -> bool:
        return run in self._waiting

    def took(self, run: PlannedRun, wall_s: float) -> None:
        """Take note that a run of this arm took `wall_s`, as other runs of the arm are expected to."""
        self._seconds[run.experiment, run.arm] = wall_s

    def take(self, run: PlannedRun) -> None:
        """Remove a waiting run, which is about to begin."""
        self._waiting.remove(run)

    def put_back(self, run: PlannedRun) -> None:
        """Let a run that was taken wait again."""
        self._waiting.add(run)

    def drop(self, experiment: str) -> None:
        """Remove all waiting runs of this experiment."""
        self._waiting = {run for run in self._waiting if run.experiment != experiment}

    def runs_for(
        self,
        drawn_here: World | None,
        drawn_elsewhere: Collection[World],
        may_begin: Callable[[World], bool] = lambda world: True,
    ) -> Sequence[PlannedRun]:
        """The waiting runs in order of preference for a worker.

        Args:
            drawn_here: The world that the worker has drawn; None without one.
            drawn_elsewhere: Worlds that other workers have drawn.
            may_begin: Whether runs of a world may be given to this worker now.
        """
        worlds: dict[World, list[PlannedRun]] = {}
        for run in self._waiting:
            worlds.setdefault(world_of(run), []).append(run)

        def preference(world: World) -> tuple[bool, bool, float, int]:
            runs = worlds[world]
            work = sum(self._expected_s(run) for run in runs)
            return world != drawn_here, world in drawn_elsewhere, -work, min(self._rank[run] for run in runs)

        return [
            run
            for world in sorted(worlds, key=preference)
            if may_begin(world)
            for run in sorted(worlds[world], key=lambda run: (-self._expected_s(run), self._rank[run]))
        ]

    def _expected_s(self, run: PlannedRun) -> float:
        return self._seconds.get((run.experiment, run.arm), math.inf)
