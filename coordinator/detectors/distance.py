"""The detector for which a representation that moved far enough is a drift."""

from __future__ import annotations

from pydantic import Field

from coordinator.detectors.base import Detector
from coordinator.distances import DistanceName, paired
from emulator.arrays import Bools, Floats, Ints
from emulator.numbers import PositiveFactor
from emulator.plugins import Settings


class DistanceSettings(Settings):
    """How far a representation may move, in which distance."""

    eps: PositiveFactor = Field(
        description="a client drifted if it is farther than this from its last report", examples=[0.1]
    )
    distance: DistanceName = Field(
        "squared_euclidean",
        description="distance between representations; clients may be clustered in another one",
    )


class Distance(Detector):
    """Fielding's test for embeddings and gradients: the distance from the last report is above `eps`.

    Source: Fielding, algorithm 2, for embeddings and gradients; the paper leaves `eps` open.

    >>> import numpy as np
    >>> detector = Distance(DistanceSettings(eps=0.04))
    >>> signal, last = np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.6, 0.4], [0.6, 0.4]])
    >>> detector.detect(np.array([7, 8]), signal, last)
    array([False,  True])
    """

    Settings = DistanceSettings
    settings: DistanceSettings
    threshold = "eps"

    def detect(self, clients: Ints, signal: Floats, last: Floats | None) -> Bools:
        assert last is not None, "it watches representations"
        far: Bools = paired(signal, last, self.settings.distance) > self.settings.eps
        return far
