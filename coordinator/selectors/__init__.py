"""Registry of selectors by name."""

from coordinator.candidates import Candidates
from coordinator.selectors.base import Selector
from coordinator.selectors.distance import Distance
from coordinator.selectors.oort import Oort
from coordinator.selectors.power_of_choice import PowerOfChoice
from coordinator.selectors.random import Random
from emulator.deprecated import keep_old_names
from emulator.plugins import Registry

SELECTORS: Registry[type[Selector]] = Registry(
    "selector",
    "driftscale.selector",
    {"random": Random, "oort": Oort, "distance": Distance, "power_of_choice": PowerOfChoice},
)

__all__ = ["SELECTORS", "Candidates", "Selector"]

keep_old_names(__name__)
