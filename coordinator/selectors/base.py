"""The protocol of selectors: who takes part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from coordinator.view import View
from emulator.arrays import Ints
from emulator.plugins import Parameters


@dataclass(frozen=True)
class Pool:
    """The clients that could take part now: online, idle, and in a lane."""

    lanes: Sequence[Ints]  # of each lane, the ids, ascending

    def ids(self, lane: int) -> Ints:
        return self.lanes[lane]


class Selector(ABC):
    """Base of selectors; built with its own frozen parameters."""

    Parameters: ClassVar[type[Parameters]]

    @abstractmethod
    def select(self, pool: Pool, wanted: Ints, view: View) -> Ints:
        """Ids, ascending and distinct: of each lane, `wanted` (lanes,) clients, or all there are."""
