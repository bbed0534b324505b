"""Registry of triggers by name: when a clusterer that moves drifted clients re-clusters all of them."""

from coordinator.triggers.base import Moved, ReclusteringTrigger
from emulator.plugins import Registry

TRIGGERS: Registry[type[ReclusteringTrigger]] = Registry(
    "trigger",
    "driftscale.trigger",
    {
        "centre_shift": "coordinator.triggers.centre_shift:CentreShift",
        "learned": "coordinator.triggers.learned:Learned",
        "pairwise": "coordinator.triggers.pairwise:Pairwise",
    },
    base="coordinator.triggers.base:ReclusteringTrigger",
)

__all__ = ["TRIGGERS", "Moved", "ReclusteringTrigger"]
