"""Tables of evenly spaced targets, for the figures over every target."""

from __future__ import annotations

import numpy as np

from experiments.results.tables.accuracy_tables import TargetTable, target_table
from experiments.results.tables.summary import Summary

MOST_DRAWN_TARGETS = 50


def every_target(summary: Summary) -> list[TargetTable]:
    """Tables of evenly spaced targets, over the accuracies that are reached by the horizon; for plots.

    Targets are whole percentages, at most about `MOST_DRAWN_TARGETS` of them.
    """
    accuracies = np.concatenate(
        [
            curve.accuracy[curve.times_s <= summary.horizon.horizon_s]
            for arm in summary.compared
            for curve in arm.curves
        ]
    )
    if not len(accuracies):
        return []
    first, last = max(1, int(100 * accuracies.min())), min(100, int(100 * accuracies.max()) + 1)
    step = 1 + (last - first) // MOST_DRAWN_TARGETS
    return [
        target_table(percent / 100, summary.compared, summary.horizon)
        for percent in range(first, last + 1, step)
    ]
