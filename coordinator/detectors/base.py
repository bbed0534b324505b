"""The protocol of detectors: which clients drifted."""

from __future__ import annotations

from abc import abstractmethod

from coordinator.view import Part
from emulator.arrays import Bools, Floats


class Detector(Part):
    """Base of detectors; built with its own frozen settings."""

    @abstractmethod
    def detect(self, signal: Floats, last: Floats) -> Bools:
        """(n,) which clients drifted: `signal` (n, D) against what each measured at its `last` report (n, D).

        The rows are clients that have reported before, in no order that a detector may rely on; the others
        report without being asked.
        """
