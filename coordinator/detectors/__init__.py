"""Registry of drift detectors by name."""

from coordinator.detectors.base import Detector
from emulator.plugins import Registry

DETECTORS: Registry[type[Detector]] = Registry(
    "detector",
    "driftscale.detector",
    {
        "adwin": "coordinator.detectors.adwin:Adwin",
        "changed": "coordinator.detectors.changed:Changed",
        "ddm": "coordinator.detectors.ddm:Ddm",
        "distance": "coordinator.detectors.distance:Distance",
        "eddm": "coordinator.detectors.eddm:Eddm",
        "hddm_a": "coordinator.detectors.hddm_a:HddmA",
        "hddm_w": "coordinator.detectors.hddm_w:HddmW",
        "loss_jump": "coordinator.detectors.loss_jump:LossJump",
        "loss_trend": "coordinator.detectors.loss_trend:LossTrend",
        "page_hinkley": "coordinator.detectors.page_hinkley:PageHinkley",
        "stepd": "coordinator.detectors.stepd:Stepd",
    },
    base="coordinator.detectors.base:Detector",
)

__all__ = ["DETECTORS", "Detector"]
