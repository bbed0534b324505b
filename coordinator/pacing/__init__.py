"""Registry of pacings by name."""

from coordinator.pacing.base import CohortSize, Pacing
from emulator.plugins import Registry

PACINGS: Registry[type[Pacing]] = Registry(
    "pacing",
    "driftscale.pacing",
    {
        "buffered": "coordinator.pacing.buffered:Buffered",
        "fixed": "coordinator.pacing.fixed:Fixed",
        "sync": "coordinator.pacing.sync:Sync",
    },
    base="coordinator.pacing.base:Pacing",
)

__all__ = ["PACINGS", "CohortSize", "Pacing"]
