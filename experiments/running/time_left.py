"""Estimates how much longer a command will take, from the wall time of past rounds.

Arms differ in speed by an order of magnitude, so the estimate for an arm uses its own rounds, in this command
or in earlier ones; for an arm that has not run yet, the mean over the arms of its experiment; for a new
experiment, the mean over all arms.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.running.plan import PlannedRun

Arm = tuple[str, str]  # experiment, arm


@dataclass
class Pace:
    """Rounds of an arm and the wall seconds they took, summed over its runs."""

    rounds: int = 0
    wall_s: float = 0.0


@dataclass
class Work:
    """The rounds of one run: `done` so far, of which `earlier` were done before this command.

    `stored_before`: rounds in the checkpoint that this command first resumed the run from (0: it started
    over); None until that is known. `since_s`: wall time of the last call about the run.
    """

    done: int = 0
    earlier: int = 0
    stored_before: int | None = None
    since_s: float = 0.0


class TimeLeft:
    """Follows the runs of a command, and estimates its progress and remaining time.

    `at_once` of the `runs` may be at work at the same time. `earlier_s` has the wall seconds of those that
    were already finished. The methods follow the other runs as those of `experiments.running.runner.Progress`
    do; the rounds of a run that was left count until it begins again.
    """

    def __init__(
        self,
        runs: Sequence[PlannedRun],
        earlier_s: Mapping[PlannedRun, float],
        at_once: int = 1,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._at_once = at_once
        self._clock = clock
        self._paces: dict[Arm, Pace] = {}
        self._works = {run: Work() for run in runs}
        for run, wall_s in earlier_s.items():
            self._add(run, run.rounds, wall_s)
            self._works[run] = Work(run.rounds, run.rounds)

    def begun(self, run: PlannedRun) -> None:
        """Take note that a run has begun: from its first round, unless `resumed` is called next.

        Rounds that it had done before no longer count as done.
        """
        work = self._works[run]
        work.done, work.earlier, work.since_s = 0, 0, self._clock()

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        """Take note that the run resumes from a checkpoint with `rounds` done.

        They were done by an earlier command, or by this one before the run was lost.
        """
        work = self._works[run]
        work.stored_before = rounds if work.stored_before is None else work.stored_before
        work.done, work.earlier, work.since_s = rounds, min(rounds, work.stored_before), self._clock()

    def round_done(self, run: PlannedRun, rounds: int) -> None:
        """Take note that the run has done `rounds` rounds in all, one or more since the last call."""
        work, now_s = self._works[run], self._clock()
        work.stored_before = work.stored_before or 0
        if rounds > work.done:
            self._add(run, rounds - work.done, now_s - work.since_s)
        work.done, work.since_s = rounds, now_s

    def done(self, run: PlannedRun) -> None:
        """Take note that all rounds of the run are done."""
        self.round_done(run, run.rounds)

    def drop(self, run: PlannedRun) -> None:
        """Take note that the run is given up: none of its rounds is left to do."""
        self._works[run].done = run.rounds

    @property
    def fraction(self) -> float:
        """Fraction of this command's rounds that are done, 0 to 1; 1 if it has none to do."""
        to_do = sum(run.rounds - work.done for run, work in self._works.items())
        in_all = sum(run.rounds - work.earlier for run, work in self._works.items())
        return 1 - to_do / in_all if in_all else 1.0

    @property
    def seconds(self) -> float | None:
        """Wall seconds until all runs are done; None before any round has been timed.

        The remaining work divided by `at_once`, but at least the time of the longest remaining run.
        """
        left = [
            ((run.experiment, run.arm), run.rounds - work.done)
            for run, work in self._works.items()
            if work.done < run.rounds
        ]
        if not left:
            return 0.0
        if not self._paces:
            return None
        round_s = {arm: self._round_s(arm) for arm in {arm for arm, _ in left}}
        runs_s = [rounds * round_s[arm] for arm, rounds in left]
        return max(sum(runs_s) / self._at_once, max(runs_s))

    def _add(self, run: PlannedRun, rounds: int, wall_s: float) -> None:
        pace = self._paces.setdefault((run.experiment, run.arm), Pace())
        pace.rounds += rounds
        pace.wall_s += wall_s

    def _round_s(self, arm: Arm) -> float:
        """Wall seconds of one round of `arm`, on average.

        If none of its rounds has been timed, the mean over the arms of its experiment, or else over all arms.
        """
        if arm in self._paces:
            return self._paces[arm].wall_s / self._paces[arm].rounds
        paces = [pace for (experiment, _), pace in self._paces.items() if experiment == arm[0]] or [
            *self._paces.values()
        ]
        return sum(pace.wall_s / pace.rounds for pace in paces) / len(paces)
