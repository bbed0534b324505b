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
        self._unfinished = {run: work for run, work in self._works.items() if run.rounds > 0}
        self._in_all = self._to_do = sum(run.rounds for run in self._works)  # rounds of this command
        for run, wall_s in earlier_s.items():
            self._add(run, run.rounds, wall_s)
            self._set(run, run.rounds, earlier=run.rounds)

    def begun(self, run: PlannedRun) -> None:
        """Take note that a run has begun: from its first round, unless `resumed` is called next.

        Rounds that it had done before no longer count as done.
        """
        self._set(run, 0, earlier=0)
        self._works[run].since_s = self._clock()

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        """Take note that the run resumes from a checkpoint with `rounds` done.

        They were done by an earlier command, or by this one before the run was lost.
        """
        work = self._works[run]
        work.stored_before = rounds if work.stored_before is None else work.stored_before
        self._set(run, rounds, earlier=min(rounds, work.stored_before))
        work.since_s = self._clock()

    def round_done(self, run: PlannedRun, rounds: int) -> None:
        """Take note that the run has done `rounds` rounds in all.

        These may be as many as at the last call, if they are nominal ones; the wall time since then is later
        counted with that of the next round.
        """
        work, now_s = self._works[run], self._clock()
        work.stored_before = work.stored_before or 0
        if rounds > work.done:
            self._add(run, rounds - work.done, now_s - work.since_s)
            work.since_s = now_s
        self._set(run, rounds, earlier=work.earlier)

    def done(self, run: PlannedRun) -> None:
        """Take note that all rounds of the run are done."""
        self.round_done(run, run.rounds)

    def drop(self, run: PlannedRun) -> None:
        """Take note that the run is given up: none of its rounds is left to do."""
        self._set(run, run.rounds, earlier=self._works[run].earlier)

    @property
    def fraction(self) -> float:
        """Fraction of this command's rounds that are done, 0 to 1; 1 if it has none to do."""
        return 1 - self._to_do / self._in_all if self._in_all else 1.0

    @property
    def seconds(self) -> float | None:
        """Wall seconds until all runs are done; None before any round has been timed.

        The remaining work divided by `at_once`, but at least the time of the longest remaining run.
        """
        if not self._unfinished:
            return 0.0
        if not self._paces:
            return None
        round_s = self._round_s()
        runs_s = [
            (run.rounds - work.done) * round_s[run.experiment, run.arm]
            for run, work in self._unfinished.items()
        ]
        return max(sum(runs_s) / self._at_once, max(runs_s))

    def _set(self, run: PlannedRun, done: int, *, earlier: int) -> None:
        work = self._works[run]
        done, earlier = min(done, run.rounds), min(earlier, run.rounds)  # it may have gone beyond --until
        self._to_do -= done - work.done
        self._in_all -= earlier - work.earlier
        work.done, work.earlier = done, earlier
        if done < run.rounds:
            self._unfinished[run] = work
        else:
            self._unfinished.pop(run, None)

    def _add(self, run: PlannedRun, rounds: int, wall_s: float) -> None:
        pace = self._paces.setdefault((run.experiment, run.arm), Pace())
        pace.rounds += rounds
        pace.wall_s += wall_s

    def _round_s(self) -> dict[Arm, float]:
        """Wall seconds of one round, on average, of each arm with unfinished runs.

        If none of its rounds has been timed, the mean over the arms of its experiment, or else over all arms.
        """
        timed = {arm: pace.wall_s / pace.rounds for arm, pace in self._paces.items()}
        of_experiment: dict[str, list[float]] = {}
        for (experiment, _), seconds in timed.items():
            of_experiment.setdefault(experiment, []).append(seconds)
        mean = sum(timed.values()) / len(timed)
        means = {experiment: sum(times) / len(times) for experiment, times in of_experiment.items()}
        arms = {(run.experiment, run.arm) for run in self._unfinished}
        return {arm: timed.get(arm, means.get(arm[0], mean)) for arm in arms}
