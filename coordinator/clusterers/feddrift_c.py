"""FedDrift-C: of the models isolated in one data step one survives, so models hardly outnumber concepts.

FedDrift-C of Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". A client that is
offline when its model is given up, or has no new arrivals, stays in that model until it responds about new
arrivals; meanwhile the model is offered to no client.
"""

from __future__ import annotations

import numpy as np

from coordinator.clusterers.feddrift import FedDrift
from coordinator.view import View
from emulator.arrays import NO_IDS, Ints


class FedDriftC(FedDrift):
    """FedDrift, except that when the isolation of several clients ends, one random model of theirs survives.

    The others end, and the samples claimed for them are forgotten. Their clients get back the accuracy from
    before their drift: with the low accuracy since, a client that no model suits could not drift again.

    >>> from types import SimpleNamespace
    >>> from coordinator.clusterers.feddrift import FedDriftSettings
    >>> view = SimpleNamespace(rng=lambda purpose: np.random.default_rng(0))
    >>> isolated = np.array([2, 5, 7])
    >>> given_up = FedDriftC(FedDriftSettings())._gives_up(view, isolated)
    >>> np.setdiff1d(isolated, given_up)  # one survives
    array([7])
    """

    def _gives_up(self, view: View, isolated: Ints) -> Ints:
        if len(isolated) < 2:
            return NO_IDS
        survivor = view.rng("survivor").integers(len(isolated))
        return np.delete(isolated, survivor)
