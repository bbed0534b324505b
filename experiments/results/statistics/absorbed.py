"""The updates that the server steps of a run absorbed, round by round, and how stale they were.

A round of which the log has no `steps` has one server step, which absorbs updates at staleness 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import NO_IDS, Floats, Ints
from emulator.storage.runlog import RoundRecord
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import Comparison, once


def has_steps(records: Iterable[RoundRecord]) -> bool:
    """Whether rounds of these records may have several server steps."""
    return any(record.steps is not None for record in records)


def arms_of_steps(arms: Iterable[Comparison]) -> list[str]:
    """The names of the arms of which rounds may have several server steps."""
    return [arm.arm for arm in arms if any(has_steps(run.log.records) for run in arm.measured)]


@dataclass(frozen=True)
class Absorbed:
    """What the rounds of a run absorbed: arrays of shape (n_rounds,).

    Attributes:
        closed_s: Virtual time at which the round closed, ascending.
        steps: Its server steps.
        updates: The updates that they absorbed, those of completed visits.
        staleness: The mean staleness of these updates; NaN without any.
        largest: The largest staleness; NaN without any.
    """

    closed_s: Floats
    steps: Ints
    updates: Ints
    staleness: Floats
    largest: Floats

    def until(self, horizon_s: float) -> Absorbed:
        """The same of the rounds that closed by the horizon."""
        count = int(np.searchsorted(self.closed_s, horizon_s, side="right"))
        return Absorbed(
            self.closed_s[:count],
            self.steps[:count],
            self.updates[:count],
            self.staleness[:count],
            self.largest[:count],
        )

    @property
    def mean_staleness(self) -> float | None:
        """The mean over all updates; None without any."""
        known = ~np.isnan(self.staleness)
        total = int(self.updates[known].sum())
        return math.fsum(self.updates[known] * self.staleness[known]) / total if total else None

    @property
    def largest_staleness(self) -> float | None:
        """The largest of all updates; None without any."""
        known = self.largest[~np.isnan(self.largest)]
        return float(known.max()) if len(known) else None


@once
def absorbed(run: ReportedRun) -> Absorbed:
    """What the rounds of a run absorbed, from its log."""
    records = run.records
    stale = [_staleness(record) for record in records]
    return Absorbed(
        np.array([record.closed_s for record in records], dtype=np.float64),
        np.array([1 if record.steps is None else record.steps for record in records], dtype=np.int64),
        np.array([len(record.completed) for record in records], dtype=np.int64),
        np.array([mean for mean, _ in stale], dtype=np.float64),
        np.array([largest for _, largest in stale], dtype=np.float64),
    )


def _staleness(record: RoundRecord) -> tuple[float, float]:
    """(mean, largest) staleness of the updates of a round; NaN without any."""
    if record.steps is None:
        return (0.0, 0.0) if record.completed else (math.nan, math.nan)
    mean, largest = record.staleness, record.largest_staleness
    return math.nan if mean is None else mean, math.nan if largest is None else float(largest)


def absorbed_by_client(records: Sequence[RoundRecord]) -> Ints:
    """(k,) the client of each update that these rounds absorbed: a client is in it once for each update."""
    return np.concatenate([NO_IDS, *(np.array(record.completed, dtype=np.int64) for record in records)])
