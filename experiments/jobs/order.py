"""The queue of an experiment's runs, or of a folder's: which one a free worker gets.

Pure: knows neither processes nor clocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence

from experiments.running.plan import PlannedRun

World = tuple[str, int]
"""An experiment and a seed: what has to be drawn once for all arms of it."""


def world_of(run: PlannedRun) -> World:
    return run.experiment, run.seed


class RunQueue:
    """Runs that wait for a worker.

    A worker gets runs of the world that it has drawn; else of a world that no other worker has, the one with
    most work left. Of a world, the slowest arm goes first, so that no long run is left for the end; an arm
    that has not been measured counts as slow. Ties go by the order in which `runs` were given.
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
        """A run of this arm took that long: as long as its others are expected to."""
        self._seconds[run.experiment, run.arm] = wall_s

    def take(self, run: PlannedRun) -> None:
        self._waiting.remove(run)

    def put_back(self, run: PlannedRun) -> None:
        """The run is to be begun again."""
        self._waiting.add(run)

    def drop(self, experiment: str) -> None:
        """None of this experiment's runs is to be begun any more."""
        self._waiting = {run for run in self._waiting if run.experiment != experiment}

    def candidates(
        self,
        drawn_here: World | None,
        drawn_elsewhere: Collection[World],
        may_begin: Callable[[World], bool] = lambda world: True,
    ) -> Sequence[PlannedRun]:
        """Runs for a worker that has drawn the world `own`, the one to be taken first.

        Args:
            own: None if the worker has not drawn any.
            others: Worlds that other workers have drawn.
            may_begin: Whether runs of a world may be handed to this worker now.
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
