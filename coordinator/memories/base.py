"""The protocol of memories: which (client, model) pairs train, and on which samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from coordinator.view import View
from emulator.arrays import Ints
from emulator.messages import SampleRanges
from emulator.plugins import Parameters


class Memory(ABC):
    """Base of memories; built with its own frozen parameters."""

    Parameters: ClassVar[type[Parameters]]

    @abstractmethod
    def rows(self, clients: Ints, view: View) -> tuple[Ints, Ints, SampleRanges]:
        """Of participants `clients` (ascending): client and model row of each pair, sorted; its samples."""
