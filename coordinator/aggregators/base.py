"""The protocol of aggregators: new models from updates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from coordinator.view import View
from emulator.arrays import Floats32
from emulator.messages import Updates
from emulator.plugins import Parameters


class Aggregator(ABC):
    """Base of aggregators; built with its own frozen parameters."""

    Parameters: ClassVar[type[Parameters]]

    @abstractmethod
    def aggregate(self, updates: Updates, view: View) -> Floats32:
        """(M, P) the bank's models after `updates`; a model without updates stays as it is."""
