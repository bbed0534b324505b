"""Registry of drift detectors by name."""

from coordinator.detectors.base import Detector
from emulator.plugins import Registry

DETECTORS: Registry[type[Detector]] = Registry(
    "detector",
    "driftscale.detector",
    {
        "changed": "coordinator.detectors.changed:Changed",
        "distance": "coordinator.detectors.distance:Distance",
    },
    base="coordinator.detectors.base:Detector",
)

__all__ = ["DETECTORS", "Detector"]
