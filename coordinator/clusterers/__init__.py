"""Clusterers, by name."""

from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.fielding import Fielding
from coordinator.clusterers.single import Single
from coordinator.clusterers.static import Static
from emulator.plugins import Registry

CLUSTERERS: Registry[type[Clusterer]] = Registry(
    "clusterer", "driftscale.clusterer", {"single": Single, "static": Static, "fielding": Fielding}
)

__all__ = ["CLUSTERERS", "Clusterer"]
