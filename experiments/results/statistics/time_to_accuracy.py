"""Accuracy and time-to-accuracy of one run up to a horizon of virtual time.

Defines these figures; knows nothing of files, of intervals or of comparisons between arms. Nothing after the
horizon counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emulator.arrays import Floats
from emulator.errors import InputError
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.medians import Bounds

ACCURACIES: Mapping[str, str] = {
    "accuracy": "accuracy",
    "personal_accuracy": "personal accuracy",
    "trained_accuracy": "accuracy just trained",
    "pooled_accuracy": "pooled accuracy",
}
"""The accuracies of a round, by the fields of `RoundRecord`, and what tables call each."""


def smooth(accuracy: Floats, window: int) -> Floats:
    """(n,) the trailing mean of `accuracy` (n,): at each evaluation, the mean of the last `window`.

    Near the start, where there are fewer, it is the mean of all so far. Raises ValueError if `window` is
    below 1.

    >>> smooth(np.array([0.0, 1.0, 0.5, 0.0]), window=2).tolist()
    [0.0, 0.5, 0.75, 0.25]
    """
    if window < 1:
        raise ValueError(f"window ({window}) must be at least 1")
    spans = (accuracy[max(0, end - window) : end] for end in range(1, len(accuracy) + 1))
    # fsum, not a running sum: equal evaluations must give equal means anywhere in the run.
    return np.array([math.fsum(span) / len(span) for span in spans])


@dataclass(frozen=True)
class AccuracyCurve:
    """The evaluations of a run in order of time: arrays of shape (n_evaluations,), with at least one entry.

    Between two evaluations, the accuracy is that of the earlier one; before the first, it is unknown.
    `smoothed` is the mean of the last `window` evaluations.
    """

    times_s: Floats
    accuracy: Floats
    smoothed: Floats
    window: int = 1

    def mean_accuracy(self, from_s: float, horizon_s: float) -> float | None:
        """The accuracy averaged over virtual time, from `from_s` to the horizon.

        It equals the share of that time at or above a target, averaged over all targets from 0 to 1. None if
        that time is empty or starts before the first evaluation.
        """
        if not self.times_s[0] <= from_s < horizon_s:
            return None
        durations_s = self._durations_s(from_s, horizon_s)
        return math.fsum(durations_s * self.accuracy) / (horizon_s - from_s)

    def area_below_s(self, level: float, from_s: float, until_s: float) -> float | None:
        """The integral over these seconds of how far the accuracy is below `level`, a share times seconds.

        Where it is above, it counts nothing. None if the first evaluation is later than `from_s`.
        """
        if self.times_s[0] > from_s:
            return None
        return math.fsum(self._durations_s(from_s, until_s) * np.maximum(level - self.accuracy, 0.0))

    def time_below_s(self, target: float, horizon_s: float, from_s: float = 0.0) -> float:
        """How long the accuracy is below `target`, in virtual seconds from `from_s` to the horizon.

        The time before the first evaluation counts as below. If no evaluation by the horizon is at or above
        `target`, the result is exactly `horizon_s - from_s`.
        """
        durations_s = self._durations_s(from_s, horizon_s)
        return (horizon_s - from_s) - math.fsum(durations_s[self.accuracy >= target])

    def final(self, horizon_s: float) -> float | None:
        """The smoothed accuracy at the horizon; None without an evaluation by then."""
        count = self.num_evaluations(horizon_s)
        return float(self.smoothed[count - 1]) if count else None

    def num_evaluations(self, until_s: float) -> int:
        """The number of evaluations up to an instant."""
        return int(np.searchsorted(self.times_s, until_s, side="right"))

    def after(self, instant_s: float) -> AccuracyCurve:
        """The evaluations after an instant, with times that count from it; there may be none.

        They are smoothed anew: a mean that began before the instant would mix what it separates.
        """
        later = self.times_s > instant_s
        accuracy = self.accuracy[later]
        return AccuracyCurve(
            self.times_s[later] - instant_s, accuracy, smooth(accuracy, self.window), self.window
        )

    def held_from(self, target: float, horizon_s: float) -> Bounds:
        """The time from which the smoothed accuracy stays at or above `target` up to the horizon.

        If it is below `target` or unknown at the horizon, the bounds are [horizon, inf). If it is at or above
        from the first evaluation on, they are [0, time of that evaluation]. Source: Fielding's "consistently
        surpasses" (section 6); here an accuracy equal to the target counts too, so that a run holds its own
        final accuracy.
        """
        missed = np.flatnonzero(self.smoothed[: self.num_evaluations(horizon_s)] < target)
        return self._instant(int(missed[-1]) + 1 if len(missed) else 0, horizon_s)

    def first_reached(self, target: float, horizon_s: float) -> Bounds:
        """The time at which the smoothed accuracy is first at or above `target`; bounds as in `held_from`."""
        reached = self.smoothed[: self.num_evaluations(horizon_s)] >= target
        return self._instant(int(np.argmax(reached)) if reached.any() else len(reached), horizon_s)

    def _instant(self, position: int, horizon_s: float) -> Bounds:
        """Bounds of the time at which a state begins that is first seen at evaluation `position`.

        If that is the first one after the horizon, so is the time.
        """
        if position == self.num_evaluations(horizon_s):
            return Bounds(horizon_s, math.inf)
        time_s = float(self.times_s[position])
        return Bounds(0.0 if position == 0 else time_s, time_s)

    def _durations_s(self, from_s: float, until_s: float) -> Floats:
        """(n_evaluations,) how long each evaluation is the latest one, between these two instants."""
        known = self._known_durations_s.get((from_s, until_s))
        if known is None:
            known = np.diff(np.clip(np.append(self.times_s, np.inf), from_s, until_s))
            self._known_durations_s[from_s, until_s] = known
        return known

    @cached_property
    def _known_durations_s(self) -> dict[tuple[float, float], Floats]:
        return {}


def accuracy_curve(run: ReportedRun, window: int) -> AccuracyCurve:
    """The accuracy curve of a run; the time of an evaluation is when its round closed.

    Raises InputError if no round was evaluated, or if the rounds in the log are not in order of closing.
    """
    found = curve_of(run, "accuracy", window)
    if found is None:
        which = "no round was evaluated" if run.until is None else f"until {run.until}, none was evaluated"
        raise InputError(f"arm {run.arm!r}, seed {run.seed}: {which}")
    return found


def curve_of(run: ReportedRun, name: str, window: int) -> AccuracyCurve | None:
    """The curve of one of the `ACCURACIES`, of the rounds that have it; None if no round has.

    Raises InputError if the rounds in the log are not in order of closing.
    """
    measured = [(record.closed_s, getattr(record, name)) for record in run.records]
    evaluated = [(closed_s, value) for closed_s, value in measured if value is not None]
    if not evaluated:
        return None
    times_s, accuracy = np.array(evaluated, dtype=np.float64).T
    if (np.diff(times_s) < 0).any():
        raise InputError(f"arm {run.arm!r}, seed {run.seed}: its log is damaged, rounds close out of order")
    return AccuracyCurve(times_s, accuracy, smooth(accuracy, window), window)
