"""Registry of drift detectors by name."""

from coordinator.detectors.base import Detector
from coordinator.detectors.changed import Changed
from coordinator.detectors.distance import Distance
from emulator.plugins import Registry

DETECTORS: Registry[type[Detector]] = Registry(
    "detector",
    "driftscale.detector",
    {"changed": Changed, "distance": Distance},
    base="coordinator.detectors.base:Detector",
)

__all__ = ["DETECTORS", "Detector"]
