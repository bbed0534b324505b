"""The protocol of selectors: who takes part."""

from __future__ import annotations

from abc import abstractmethod

from coordinator.candidates import Candidates
from coordinator.view import Part, View
from emulator.arrays import Ints


class Selector(Part):
    """Base of selectors; built with its own frozen settings."""

    @abstractmethod
    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        """Ids, ascending and distinct: of each lane, `wanted` (lanes,) clients, or all there are.

        What it asks clients through `view` delays the visits until the slowest answer.
        """
