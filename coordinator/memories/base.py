"""The protocol of memories: which (client, model) pairs train, and on which samples."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from coordinator.assignment import Assignment
from coordinator.view import Part, View
from emulator.arrays import Bools, Ints
from emulator.messages import SampleRanges


class Memory(Part):
    """Base of memories; built with its own frozen settings."""

    def models_changed(self, assignment: Assignment) -> None:
        """The models change: what belongs to an old one passes to its successor."""

    def claim(self, view: View) -> None:
        """The newest arrivals of every client belong to its members of now."""

    @abstractmethod
    def samples(self, clients: Ints, model: int, view: View) -> SampleRanges:
        """What each of `clients` holds for row `model` of the bank; no range where it holds nothing."""

    @abstractmethod
    def rows(self, clients: Ints, view: View) -> tuple[Ints, Ints, SampleRanges]:
        """Of participants `clients` (ascending): client and model row of each pair, sorted; its samples."""

    def trains(self, clients: Ints, view: View) -> Bools:
        """(n,) whether each of `clients`, distinct and in any order, has a pair in `rows`: only such a client
        is a candidate. Between two data steps it changes with `view.members` alone, never with the round."""
        found, _, _ = self.rows(np.sort(clients), view)
        return np.isin(clients, found)
