"""The queue of unfinished runs: which one a free worker gets next.

Pure: knows neither processes nor clocks.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Iterator

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
        self._waiting: dict[World, set[PlannedRun]] = {}
        self._standings: dict[World, tuple[float, int]] = {}  # see `_standing`; only of worlds that wait
        self._worlds_of: dict[str, set[World]] = {}  # by experiment
        self._number = 0
        self._seconds: dict[tuple[str, str], float] = {}
        for run in self._rank:
            self.put_back(run)

    def __len__(self) -> int:
        return self._number

    def __contains__(self, run: PlannedRun) -> bool:
        return run in self._waiting.get(world_of(run), ())

    def took(self, run: PlannedRun, wall_s: float) -> None:
        """Take note that a run of this arm took `wall_s`, as other runs of the arm are expected to."""
        self._seconds[run.experiment, run.arm] = wall_s
        for world in self._worlds_of.get(run.experiment, ()):
            self._standings.pop(world, None)

    def take(self, run: PlannedRun) -> None:
        """Remove a waiting run, which is about to begin."""
        world = world_of(run)
        self._waiting[world].remove(run)
        self._standings.pop(world, None)
        self._number -= 1
        if not self._waiting[world]:
            del self._waiting[world]

    def put_back(self, run: PlannedRun) -> None:
        """Let a run that was taken wait again."""
        if run in self:
            return
        world = world_of(run)
        self._waiting.setdefault(world, set()).add(run)
        self._worlds_of.setdefault(run.experiment, set()).add(world)
        self._standings.pop(world, None)
        self._number += 1

    def drop(self, experiment: str) -> None:
        """Remove all waiting runs of this experiment."""
        for world in self._worlds_of.get(experiment, ()):
            self._number -= len(self._waiting.pop(world, ()))
            self._standings.pop(world, None)

    def runs_for(
        self,
        drawn_here: World | None,
        drawn_elsewhere: Collection[World],
        may_begin: Callable[[World], bool] = lambda world: True,
    ) -> Iterator[PlannedRun]:
        """The waiting runs in order of preference for a worker.

        NOTE: only as much of the order is made as is asked for, since there may be many runs.

        Args:
            drawn_here: The world that the worker has drawn; None without one.
            drawn_elsewhere: Worlds that other workers have drawn.
            may_begin: Whether runs of a world may be given to this worker now.
        """

        def preference(world: World) -> tuple[bool, bool, float, int]:
            return world != drawn_here, world in drawn_elsewhere, *self._standing(world)

        worlds = [(preference(world), world) for world in self._waiting]
        heapq.heapify(worlds)
        while worlds:
            _, world = heapq.heappop(worlds)
            if may_begin(world):
                yield from sorted(
                    self._waiting[world], key=lambda run: (-self._expected_s(run), self._rank[run])
                )

    def _standing(self, world: World) -> tuple[float, int]:
        """The order of a world among its equals: minus its remaining seconds, and its first run's rank."""
        if world not in self._standings:
            runs = self._waiting[world]
            work = sum(self._expected_s(run) for run in runs)
            self._standings[world] = -work, min(self._rank[run] for run in runs)
        return self._standings[world]

    def _expected_s(self, run: PlannedRun) -> float:
        return self._seconds.get((run.experiment, run.arm), math.inf)
