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
    """FedDrift, but of several models whose isolation ends together, one drawn at random survives.

    The other models are given up: each ends once its client has responded and moved to another model, and the
    samples claimed for it are forgotten. The accuracy with which such a client's next one is compared is that
    from before its drift: compared with the low one since, a client that no remaining model suits would not
    be found to drift again.

    Source: FedDrift (Jothimurugesan et al., AISTATS 2023), FedDrift-C.

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
