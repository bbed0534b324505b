"""Registry of representations by name."""

from coordinator.representations.base import At, LocalData, Representation
from emulator.plugins import Registry

REPRESENTATIONS: Registry[type[Representation]] = Registry(
    "representation",
    "driftscale.representation",
    {
        "label": "coordinator.representations.label:Label",
        "embedding": "coordinator.representations.embedding:Embedding",
        "gradient": "coordinator.representations.gradient:Gradient",
    },
    base="coordinator.representations.base:Representation",
)

__all__ = ["REPRESENTATIONS", "At", "LocalData", "Representation"]
