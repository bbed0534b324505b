"""The protocol of drift detectors: which clients drifted since their last report."""

from __future__ import annotations

from abc import abstractmethod

from coordinator.view import Part
from emulator.arrays import Bools, Floats


class Detector(Part):
    """Base of detectors; built with its own frozen settings."""

    @abstractmethod
    def detect(self, signal: Floats, last: Floats) -> Bools:
        """Which of n clients drifted since their last report.

        The rows are clients that have reported before, in an arbitrary order; clients that have not are not
        tested, but always report.

        Args:
            signal: (n, D) the representation that each client measures now.
            last: (n, D) the representation that it reported last.

        Returns:
            (n,) bools.
        """
