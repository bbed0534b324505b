"""Registry of triggers by name: when a clusterer that moves drifted clients re-clusters all of them."""

from coordinator.triggers.base import Moved, ReclusteringTrigger
from coordinator.triggers.centre_shift import CentreShift
from coordinator.triggers.learned import Learned
from coordinator.triggers.pairwise import Pairwise
from emulator.plugins import Registry

TRIGGERS: Registry[type[ReclusteringTrigger]] = Registry(
    "trigger",
    "driftscale.trigger",
    {"centre_shift": CentreShift, "learned": Learned, "pairwise": Pairwise},
    base="coordinator.triggers.base:ReclusteringTrigger",
)

__all__ = ["TRIGGERS", "Moved", "ReclusteringTrigger"]
