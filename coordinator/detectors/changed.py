"""Any change is drift."""

from __future__ import annotations

from coordinator.detectors.base import Detector
from emulator.arrays import Bools, Floats
from emulator.plugins import NoSettings


class Changed(Detector):
    """Fielding's test for label histograms: any difference from the one last reported."""

    Settings = NoSettings

    def detect(self, signal: Floats, last: Floats) -> Bools:
        changed: Bools = (signal != last).any(axis=1)
        return changed
