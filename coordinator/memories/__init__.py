"""Registry of memories by name."""

from coordinator.memories.base import Memory
from emulator.plugins import Registry

MEMORIES: Registry[type[Memory]] = Registry(
    "memory",
    "driftscale.memory",
    {"held": "coordinator.memories.held:Held", "claimed": "coordinator.memories.claimed:Claimed"},
    base="coordinator.memories.base:Memory",
)

__all__ = ["MEMORIES", "Memory"]
