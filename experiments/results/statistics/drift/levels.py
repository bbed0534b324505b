"""What a drift does to the accuracies of arms: their levels before and after it, and their recovery.

The drift of a run is its first mass event (`first_events_s`). It takes effect when its round opens. Other
onsets do not count, and later ones may lie in the stretch after it.

All runs are measured over an equally long stretch of virtual time from their drift on, as areas of stretches
of unequal length could not be compared: the time that `ROUNDS_AFTER` rounds take in the reference arm, a mean
over its seeds, or less, so that no stretch ends after the horizon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from emulator.storage.runlog import RoundRecord
from experiments.results.statistics.comparisons import Compared, Run, once
from experiments.results.statistics.drift.mass_events import first_events_s
from experiments.results.statistics.time_to_accuracy import AccuracyCurve

EVALUATIONS_BEFORE = 10
"""Most evaluations of which the mean is the level before."""

ROUNDS_AFTER = 100

EVALUATIONS_RECOVERED = 5
"""Consecutive evaluations whose mean must be near the level before, or above it."""

NEAR = 0.02
"""How far below the level before their mean may be."""

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class Recovery:
    """How far a run had come, counted from its drift, when it had recovered.

    Attributes:
        delay_s: Virtual seconds from the drift to the last of the evaluations by which it had.
        first_round: Index of the round that the drift opened.
        end_round: Index of the round after that evaluation.
        num_bytes: Bytes of downloads, uploads and control in these rounds.
    """

    delay_s: float
    first_round: int
    end_round: int
    num_bytes: float


@dataclass(frozen=True)
class DriftLevels:
    """One accuracy of a run before and after its drift; None where it is not known.

    Attributes:
        before: The mean of its last `EVALUATIONS_BEFORE` evaluations before; of all, if they are fewer.
        after: Its mean over virtual time in the stretch from the drift on.
        area_lost_pp_h: The integral over the stretch of how far it is below `before`, in percentage points
            times hours of virtual time; where it is above, it counts nothing.
        recovery: The first time after the drift at which `EVALUATIONS_RECOVERED` consecutive evaluations have
            a mean of at least `before` - `NEAR`; None also if there is none by the horizon.
    """

    before: float | None
    after: float | None
    area_lost_pp_h: float | None
    recovery: Recovery | None

    @property
    def difference_pp(self) -> float | None:
        """`after` - `before` in percentage points."""
        return None if self.before is None or self.after is None else 100.0 * (self.after - self.before)


@dataclass(frozen=True)
class Drift:
    """The drifts of all runs that are compared.

    Attributes:
        stretch_s: The length of the stretch after it.
        levels: By run, those of each of the `ACCURACIES` that the run has; of the personal one, if
            some run has it, that of what its clients use.
    """

    stretch_s: float
    levels: Mapping[Run, Mapping[str, DriftLevels]]

    def of(self, run: Run, name: str) -> DriftLevels | None:
        """The levels of one of the accuracies of a run; None if the run does not have it."""
        return self.levels[run].get(name)


@once
def find_drift(compared: Compared) -> Drift | None:
    """The drifts of the runs; None without runs, and unless every run has one before the horizon."""
    known = first_events_s(compared)
    if known is None:
        return None
    personal = compared.has_personal
    reference = compared.reference.arm
    lengths_s = [_rounds_after_s(run, drift_s) for run, drift_s in known.items() if run.arm == reference]
    left_s = [run.horizon.horizon_s - drift_s for run, drift_s in known.items()]
    stretch_s = min(float(np.mean(lengths_s)), *left_s)
    return Drift(
        stretch_s,
        {
            run: {
                name: drift_levels(run, curve, drift_s, drift_s + stretch_s)
                for name, curve in (
                    run.curves | ({"personal_accuracy": run.used} if personal else {})
                ).items()
            }
            for run, drift_s in known.items()
        },
    )


def drift_levels(run: Run, curve: AccuracyCurve, drift_s: float, until_s: float) -> DriftLevels:
    """The levels of the accuracy that has this curve, over the stretch from the drift to `until_s`."""
    count = int(np.searchsorted(curve.times_s, drift_s, side="right"))
    after = curve.mean_accuracy(drift_s, until_s)
    if not count:
        return DriftLevels(None, after, None, None)
    before = float(np.mean(curve.accuracy[max(0, count - EVALUATIONS_BEFORE) : count]))
    area_s = curve.area_below_s(before, drift_s, until_s)
    return DriftLevels(
        before,
        after,
        None if area_s is None else 100.0 * area_s / SECONDS_PER_HOUR,
        _recovery(run, curve, before, drift_s),
    )


def _recovery(run: Run, curve: AccuracyCurve, before: float, drift_s: float) -> Recovery | None:
    within = (curve.times_s > drift_s) & (curve.times_s <= run.horizon.horizon_s)
    times_s, accuracy = curve.times_s[within], curve.accuracy[within]
    if len(accuracy) < EVALUATIONS_RECOVERED:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(accuracy, EVALUATIONS_RECOVERED)
    reached = np.flatnonzero(windows.mean(axis=1) >= before - NEAR)
    if not len(reached):
        return None
    closed_s = float(times_s[int(reached[0]) + EVALUATIONS_RECOVERED - 1])
    records = run.records
    first, end = _first_round(records, drift_s), sum(record.closed_s <= closed_s for record in records)
    before_bytes = _bytes(records[first - 1]) if first else 0.0
    return Recovery(closed_s - drift_s, first, end, _bytes(records[end - 1]) - before_bytes)


def _rounds_after_s(run: Run, drift_s: float) -> float:
    """How long `ROUNDS_AFTER` rounds take from the drift on, as a configuration counts them, in seconds.

    If the run has fewer, as long as it lasts.
    """
    if run.horizon.seconds_per_round is not None:
        return ROUNDS_AFTER * run.horizon.seconds_per_round
    records = run.log.records
    last = min(_first_round(records, drift_s) + ROUNDS_AFTER, len(records)) - 1
    return records[last].closed_s - drift_s


def _first_round(records: list[RoundRecord], drift_s: float) -> int:
    """The index of the first of these rounds that opened with the drift or after it."""
    return sum(record.opened_s < drift_s for record in records)


def _bytes(record: RoundRecord) -> float:
    return record.download_bytes + record.upload_bytes + record.control_bytes
