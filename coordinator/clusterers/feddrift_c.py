"""FedDrift-C: of the models isolated in one step, only one survives, so there are hardly more than concepts.

FedDrift-C of Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". A client that is
offline when its model is given up, or has no new arrivals, stays in it until it answers about some; meanwhile
the model is offered to nobody.
"""

from __future__ import annotations

import numpy as np

from coordinator.clusterers.feddrift import FedDrift
from coordinator.view import View
from emulator.arrays import NO_IDS, Ints


class FedDriftC(FedDrift):
    """FedDrift, but when the isolation of several clients ends, one of their models is kept at random.

    The others end, and what was claimed for them is forgotten. Their clients get back the accuracy of before
    their drift: with the low one since, they could not find it again where no model suits them.
    """

    def _gives_up(self, view: View, isolated: Ints) -> Ints:
        if len(isolated) < 2:
            return NO_IDS
        survivor = view.rng("survivor").integers(len(isolated))
        return np.delete(isolated, survivor)
