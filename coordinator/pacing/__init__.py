"""Registry of pacings by name."""

from coordinator.pacing.base import CohortSize, Pacing
from coordinator.pacing.fixed import Fixed
from coordinator.pacing.sync import Sync
from emulator.plugins import Registry

PACINGS: Registry[type[Pacing]] = Registry(
    "pacing",
    "driftscale.pacing",
    {"fixed": Fixed, "sync": Sync},
    base="coordinator.pacing.base:Pacing",
)

__all__ = ["PACINGS", "CohortSize", "Pacing"]
