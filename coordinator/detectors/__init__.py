"""Registry of drift detectors by name."""

from coordinator.detectors.base import Detector
from coordinator.detectors.changed import Changed
from emulator.plugins import Registry

DETECTORS: Registry[type[Detector]] = Registry("detector", "driftscale.detector", {"changed": Changed})

__all__ = ["DETECTORS", "Detector"]
