"""How long a run takes to reach an accuracy, in virtual seconds.

Owns the definition of time-to-accuracy; knows nothing of files, arms or intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats
from emulator.errors import InputError
from experiments.run_directory import FinishedRun


def smooth(accuracy: Floats, window: int) -> Floats:
    """(n,) the mean of the last `window` evaluations up to each one; of all there are, at the start.

    >>> smooth(np.array([0.0, 1.0, 0.5, 0.0]), window=2).tolist()
    [0.0, 0.5, 0.75, 0.25]
    """
    if window < 1:
        raise ValueError(f"window ({window}) must be at least 1")
    spans = (accuracy[max(0, end - window) : end] for end in range(1, len(accuracy) + 1))
    # fsum, not a running sum: equal evaluations give equal means wherever in the run they stand.
    return np.array([math.fsum(span) / len(span) for span in spans])


def time_to_accuracy(
    times_s: Floats, smoothed: Floats, target: float, end_s: float | None = None
) -> tuple[float, bool]:
    """(time_s, reached): when the smoothed accuracy is at or above `target` and stays there to the end.

    `times_s` and `smoothed` have shape (n_evaluations,), n at least 1. A run that does not end at or above
    the target is censored: (`end_s`, False), where `end_s` is the run's end (by default its last evaluation).
    Source: Fielding's "consistently surpasses"; we count "at" the target as reached, so
    that a method compared with itself reaches its own final accuracy.
    """
    below = np.flatnonzero(smoothed < target)
    first = int(below[-1]) + 1 if len(below) else 0
    if first == len(smoothed):
        return float(times_s[-1] if end_s is None else end_s), False
    return float(times_s[first]), True


@dataclass(frozen=True)
class AccuracyCurve:
    """The evaluations of a run, in order. Arrays of shape (n_evaluations,), n at least 1."""

    times_s: Floats
    accuracy: Floats
    smoothed: Floats
    end_s: float

    @property
    def final(self) -> float:
        return float(self.smoothed[-1])

    def time_to(self, target: float) -> tuple[float, bool]:
        """`time_to_accuracy` of this run."""
        return time_to_accuracy(self.times_s, self.smoothed, target, self.end_s)


def accuracy_curve(run: FinishedRun, window: int) -> AccuracyCurve:
    """The curve of a run; an evaluation counts when its round closed. InputError when there is none."""
    evaluated = [(record.closed_s, record.accuracy) for record in run.records if record.accuracy is not None]
    if not evaluated:
        raise InputError(f"arm {run.arm!r}, seed {run.seed}: no round was evaluated")
    times_s, accuracy = np.array(evaluated, dtype=np.float64).T
    return AccuracyCurve(times_s, accuracy, smooth(accuracy, window), run.records[-1].closed_s)
