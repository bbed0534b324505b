"""The trigger of Fielding's analysis: two clients of one cluster report things that are far apart."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.distances import DISTANCES
from coordinator.triggers.base import Moved, ReclusteringTrigger
from emulator.messages import PairwiseTrigger
from emulator.numbers import PositiveFactor
from emulator.plugins import Settings

AT_ONCE = 2**22
"""Distances in a block."""


class PairwiseSettings(Settings):
    """How far apart two members of a cluster may be, and how that limit adapts."""

    delta: PositiveFactor = Field(
        0.1,
        description="the limit at the start, and the step by which it shrinks, in the clusterer's distance",
    )
    rule: Literal["mended", "printed", "fixed"] = Field(
        "mended",
        description="after every drift, the limit is doubled if this drift and the last one re-clustered, or "
        "else lessened by delta; mended: to delta at least; printed: to delta at most, as in the "
        "paper, which ends at 0 or below; fixed: it stays",
    )


class Pairwise(ReclusteringTrigger):
    """Fires when two clients of a cluster are farther apart than a limit that adapts (Fielding, algorithm 4).

    The limit adapts as in the paper's appendix F.2, or as that must have been meant (`rule`). The largest
    distance is computed in full, in time that grows with the square of a cluster's size, and logged.

    State: the present limit, and whether the last drift re-clustered.

    Source: Fielding, algorithm 4 and appendix F.2.

    >>> reports, members = np.array([[0.0], [0.25], [1.0]]), np.array([0, 0, 1])
    >>> centers = np.array([[0.125], [1.0]])
    >>> moved = Moved(reports, members, centers, centers, centers, "l1", rng=np.random.default_rng)
    >>> pairwise = Pairwise(PairwiseSettings())
    >>> [(trigger.delta, trigger.fired) for trigger in map(pairwise.evaluate, [moved] * 4)]
    [(0.1, True), (0.1, True), (0.2, True), (0.4, False)]
    """

    Settings = PairwiseSettings
    settings: PairwiseSettings
    state_fields = ("_delta", "_fired")

    def __init__(self, settings: PairwiseSettings) -> None:
        super().__init__(settings)
        self._delta = settings.delta
        self._fired = False

    def evaluate(self, moved: Moved) -> PairwiseTrigger:
        largest, delta = _largest_distance_within(moved), self._delta
        fired = largest is not None and largest > delta
        self._delta = self._adapted(both_fired=fired and self._fired)
        self._fired = fired
        return PairwiseTrigger(largest, delta, len(moved.centers), fired)

    def _adapted(self, both_fired: bool) -> float:
        delta, step = self._delta, self.settings.delta
        if self.settings.rule == "fixed":
            return delta
        if both_fired:
            # Any distance is above a limit below 0: doubling it changes nothing, but for its overflow.
            return max(delta, 2 * delta)
        return max(step, delta - step) if self.settings.rule == "mended" else min(step, delta - step)


def _largest_distance_within(moved: Moved) -> float | None:
    """The largest distance between two members of one cluster; None if no cluster has two."""
    distance, largest = DISTANCES[moved.distance], -np.inf
    for cluster in range(len(moved.centers)):
        reports = moved.reports[moved.members == cluster]
        step = max(1, AT_ONCE // max(1, len(reports)))
        for start in range(0, len(reports) - 1, step):
            apart = distance(reports[start : start + step], reports[start:])
            apart[np.diag_indices(len(apart))] = -np.inf  # a client and itself
            largest = max(largest, float(apart.max()))
    return None if largest == -np.inf else largest
