"""Registry of adaptations by name."""

from coordinator.adaptations.base import Adaptation, ClientView, Served
from emulator.plugins import Registry

ADAPTATIONS: Registry[type[Adaptation]] = Registry(
    "adaptation",
    "driftscale.adaptation",
    {
        "none": "coordinator.adaptations.none:NoAdaptation",
        "prior": "coordinator.adaptations.prior:Prior",
        "tuned": "coordinator.adaptations.tuned:Tuned",
        "relabelled": "coordinator.adaptations.relabelled:Relabelled",
        "transformed": "coordinator.adaptations.transformed:Transformed",
        "alone": "coordinator.adaptations.alone:Alone",
    },
    base="coordinator.adaptations.base:Adaptation",
)

__all__ = ["ADAPTATIONS", "Adaptation", "ClientView", "Served"]
