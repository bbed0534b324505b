"""The protocol of detectors: which clients drifted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from emulator.arrays import Bools, Floats
from emulator.plugins import Parameters
from emulator.stateful import Stateful


class Detector(Stateful, ABC):
    """Base of detectors; built with its own frozen parameters."""

    Parameters: ClassVar[type[Parameters]]

    @abstractmethod
    def detect(self, signal: Floats, last: Floats) -> Bools:
        """(n,) which clients drifted: `signal` (n, D) against what each measured at its `last` report."""
