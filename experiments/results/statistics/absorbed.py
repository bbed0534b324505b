"""The updates that the server steps of a run absorbed, round by round, and how stale they were.

A round of which the log has no `steps` has one server step, which absorbs updates at staleness 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from emulator.storage.runlog import RoundRecord
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import Columns, Comparison, once


def has_steps(records: Iterable[RoundRecord]) -> bool:
    """Whether rounds of these records may have several server steps."""
    return any(record.steps is not None for record in records)


def arms_of_steps(arms: Iterable[Comparison]) -> list[str]:
    """The names of the arms of which rounds may have several server steps."""
    return [arm.arm for arm in arms if any(has_steps(run.log.records) for run in arm.measured)]


@once
def absorbed(run: ReportedRun) -> Columns:
    """What the rounds of a run absorbed, from its log.

    `steps` are its server steps, `updates` the updates that they absorbed, those of completed visits;
    `staleness` is the mean staleness of these updates, and `largest` the largest, NaN without any.
    """
    rows = [
        (
            record.closed_s,
            1 if record.steps is None else record.steps,
            len(record.completed),
            *_staleness(record),
        )
        for record in run.records
    ]
    columns = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    return dict(zip(("closed_s", "steps", "updates", "staleness", "largest"), columns, strict=True))


def _staleness(record: RoundRecord) -> tuple[float, float]:
    """(mean, largest) staleness of the updates of a round; NaN without any."""
    if record.steps is None:
        return (0.0, 0.0) if record.completed else (math.nan, math.nan)
    mean, largest = record.staleness, record.largest_staleness
    return math.nan if mean is None else mean, math.nan if largest is None else float(largest)
