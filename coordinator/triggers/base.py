"""The protocol of triggers: whether all clients are re-clustered after drifted clients moved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coordinator.distances import DistanceName
from coordinator.view import Part
from emulator.arrays import Floats, Ints
from emulator.messages import AnyTrigger, Updates
from emulator.plugins import returns


@dataclass(frozen=True)
class Moved:
    """The clusters after drifted clients moved to their nearest centres: N clients, k clusters.

    The clients are those that hold data, the ones that have just joined among the drifted. A cluster without
    members keeps its centre.
    """

    reports: Floats  # (N, D) the last report of each client
    members: Ints  # (N,) the cluster of each client after the moves
    centers: Floats  # (k, D) the centres after the moves
    previous: Floats  # (k, D) the centres before the moves
    last_global: Floats  # (k, D) the centres that the last global clustering left
    distance: DistanceName  # the distance in which clients are clustered
    rng: Callable[..., np.random.Generator]  # `View.rng`: streams keyed by purpose and round


class ReclusteringTrigger(Part):
    """Base of triggers; built with its own frozen settings."""

    chance: ClassVar[str] = 'draw from moved.rng("my purpose")'

    @abstractmethod
    @returns("coordinator.checks:trigger")
    def evaluate(self, moved: Moved) -> AnyTrigger:
        """Decide whether all clients are re-clustered.

        Called at every opening of a round at which a client was found drifted.

        Args:
            moved: the clusters after the drifted clients moved.

        Returns:
            What was compared, for the log; all clients are re-clustered if it has `fired`.
        """

    def observe(self, updates: Updates) -> None:
        """See the updates of a server step; by default they are ignored.

        Called after each server step that brought usable updates. Metrics are there only if `needs` names
        them.

        Args:
            updates: the usable updates, which are in the models already.
        """
