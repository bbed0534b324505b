"""How much longer a command will take: the wall time of its rounds so far, arm by arm.

Arms differ in speed by an order of magnitude, so each is judged by its own rounds, in this command or in
earlier ones; one that has not run yet, by its experiment's; a new experiment, by all.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.planned_run import PlannedRun

Arm = tuple[str, str]  # of an experiment


@dataclass
class Pace:
    """Rounds, and the wall seconds they took."""

    rounds: float = 0.0
    wall_s: float = 0.0


class TimeLeft:
    """Follows the runs of a command. `earlier_s` is what runs that were already finished took."""

    def __init__(
        self,
        runs: Sequence[PlannedRun],
        earlier_s: Mapping[PlannedRun, float],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._todo = Counter[Arm]()
        self._paces: dict[Arm, Pace] = {}
        for run in runs:
            if run in earlier_s:
                self._add((run.experiment, run.arm), run.rounds, earlier_s[run])
            else:
                self._todo[run.experiment, run.arm] += run.rounds
        self._all = sum(self._todo.values())
        self._run: PlannedRun | None = None
        self._done = 0
        self._since_s = 0.0

    def begin(self, run: PlannedRun) -> None:
        self._run, self._done, self._since_s = run, 0, self._clock()

    def skip(self, rounds: int) -> None:
        """So many rounds of the run were done in an earlier command."""
        assert self._run is not None
        self._done += rounds
        self._since_s = self._clock()
        self._todo[self._run.experiment, self._run.arm] -= rounds
        self._all -= rounds

    def round_done(self) -> None:
        assert self._run is not None
        now_s = self._clock()
        arm = (self._run.experiment, self._run.arm)
        self._add(arm, 1, now_s - self._since_s)
        self._done, self._since_s = self._done + 1, now_s
        self._todo[arm] -= 1

    def end(self) -> None:
        """The run is over, however far it came."""
        assert self._run is not None
        self._todo[self._run.experiment, self._run.arm] -= self._run.rounds - self._done
        self._run = None

    @property
    def fraction(self) -> float:
        """The share of this command's rounds that are done; 1 where it has none to do."""
        return 1 - sum(self._todo.values()) / self._all if self._all else 1.0

    @property
    def seconds(self) -> float | None:
        """Wall seconds until all is done; None while nothing says how long a round takes."""
        left = {arm: rounds for arm, rounds in self._todo.items() if rounds > 0}
        if not left:
            return 0.0
        if not self._paces:
            return None
        return sum(rounds * self._round_s(arm) for arm, rounds in left.items())

    def _add(self, arm: Arm, rounds: float, wall_s: float) -> None:
        pace = self._paces.setdefault(arm, Pace())
        pace.rounds += rounds
        pace.wall_s += wall_s

    def _round_s(self, arm: Arm) -> float:
        """Wall seconds of one round of `arm`; one that is new is taken for the mean of those most like it."""
        if arm in self._paces:
            return self._paces[arm].wall_s / self._paces[arm].rounds
        paces = [pace for other, pace in self._paces.items() if other[0] == arm[0]] or [*self._paces.values()]
        return sum(pace.wall_s / pace.rounds for pace in paces) / len(paces)
