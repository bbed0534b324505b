"""The detector for which any change of the representation is a drift."""

from __future__ import annotations

from coordinator.detectors.base import Detector
from emulator.arrays import Bools, Floats, Ints
from emulator.plugins import NoSettings


class Changed(Detector):
    """Fielding's test for label histograms: any difference from the histogram reported last.

    Source: Fielding, algorithm 2, for label distributions.

    >>> import numpy as np
    >>> signal = np.array([[0.5, 0.5], [0.4, 0.6]])
    >>> Changed(NoSettings()).detect(np.array([7, 8]), signal, last=np.array([[0.5, 0.5], [0.5, 0.5]]))
    array([False,  True])
    """

    Settings = NoSettings

    def detect(self, clients: Ints, signal: Floats, last: Floats | None) -> Bools:
        assert last is not None, "it watches representations"
        changed: Bools = (signal != last).any(axis=1)
        return changed
