"""Registry of selectors by name."""

from coordinator.candidates import Candidates
from coordinator.selectors.base import Selector
from emulator.plugins import Registry

SELECTORS: Registry[type[Selector]] = Registry(
    "selector",
    "driftscale.selector",
    {
        "distance": "coordinator.selectors.distance:Distance",
        "fewest_updates": "coordinator.selectors.fewest_updates:FewestUpdates",
        "oort": "coordinator.selectors.oort:Oort",
        "power_of_choice": "coordinator.selectors.power_of_choice:PowerOfChoice",
        "random": "coordinator.selectors.random:Random",
    },
    base="coordinator.selectors.base:Selector",
)

__all__ = ["SELECTORS", "Candidates", "Selector"]
