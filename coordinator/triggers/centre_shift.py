"""Fielding's trigger: a centre moved far, in relation to the distances between centres."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from coordinator.distances import DISTANCES, paired
from coordinator.triggers.base import Moved, ReclusteringTrigger
from emulator.messages import Trigger
from emulator.numbers import Factor
from emulator.plugins import Settings


def _number_or_never(value: Any) -> Any:
    if isinstance(value, str) and value != "never":
        raise ValueError('must be a number, or "never"')
    return value


ShiftFrom = Annotated[
    Literal["previous", "last_global"],
    Field(
        description="from where a shift is measured: where the centre was before this drift, as published, "
        "or where the last global clustering left it, so that slow drift adds up"
    ),
]
"""Where the shift of a centre begins."""


class CentreShiftSettings(Settings):
    """How far a centre may move, and from where that is measured."""

    threshold: Annotated[Factor | Literal["never"], BeforeValidator(_number_or_never)] = Field(
        1 / 3,
        description="share of the mean distance between centres; 0: at every drift; "
        '"never": clients only move, one by one',
        examples=[0.25],
    )
    shift_from: ShiftFrom = "previous"


class CentreShift(ReclusteringTrigger):
    """Fires when a centre moved at least `threshold` x the mean distance between centres.

    With a single centre there is no such distance: it fires when the reports are not all identical. Between
    squared distances the threshold is squared, so that it is the same share of a length.

    Source: Fielding, algorithm 2; `last_global` is ours.

    >>> import numpy as np
    >>> moved = Moved(
    ...     reports=np.eye(2),
    ...     members=np.array([0, 1]),
    ...     centers=np.array([[0.5, 0.5], [0.0, 1.0]]),
    ...     previous=np.eye(2),
    ...     last_global=np.eye(2),
    ...     distance="l1",
    ...     rng=lambda purpose: np.random.default_rng(0),
    ... )
    >>> trigger = CentreShift(CentreShiftSettings()).evaluate(moved)
    >>> trigger.shift, trigger.mean_distance, trigger.fired
    (1.0, 1.0, True)
    """

    Settings = CentreShiftSettings
    settings: CentreShiftSettings

    def evaluate(self, moved: Moved) -> Trigger:
        threshold = None if self.settings.threshold == "never" else self.settings.threshold
        return compared(moved, threshold, self.settings.shift_from)


def compared(moved: Moved, threshold: float | None, shift_from: ShiftFrom) -> Trigger:
    """Algorithm 2's comparison: fires if a centre moved at least `threshold` x the mean centre distance.

    The fine print is that of `CentreShift`; with a `threshold` of None it never fires.
    """
    origin = moved.previous if shift_from == "previous" else moved.last_global
    shift = float(paired(moved.centers, origin, moved.distance).max())
    clusters = len(moved.centers)
    if clusters == 1:
        mean_distance = None
        too_far = bool((moved.reports != moved.reports[0]).any())
    else:
        distances = DISTANCES[moved.distance](moved.centers, moved.centers)
        mean_distance = float(np.mean(distances[np.triu_indices(clusters, 1)]))
        share = threshold if moved.distance != "squared_euclidean" or threshold is None else threshold**2
        too_far = share is not None and shift >= share * mean_distance
    return Trigger(shift, mean_distance, threshold, clusters, threshold is not None and too_far)
