"""The protocol of aggregators: new models from updates."""

from __future__ import annotations

from abc import abstractmethod

from coordinator.view import Part, View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import Updates


class Aggregator(Part):
    """Base of aggregators; built with its own frozen settings."""

    def weights(self, model: Ints, num_samples: Ints, view: View) -> Floats | None:
        """(M, n) what `aggregate` will weigh the updates of n tasks by, once, if all of them are finite; None
        where it does otherwise, or cannot say before they are trained.

        Said beforehand, since executors elsewhere then send sums instead of updates, at once.
        """
        return None

    @abstractmethod
    def aggregate(self, updates: Updates, view: View) -> Floats32:
        """(M, P) the bank's models after `updates`; a model without updates stays as it is."""
