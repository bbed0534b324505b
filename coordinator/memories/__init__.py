"""Registry of memories by name."""

from coordinator.memories.base import Memory
from coordinator.memories.claimed import Claimed
from coordinator.memories.held import Held
from emulator.plugins import Registry

MEMORIES: Registry[type[Memory]] = Registry(
    "memory",
    "driftscale.memory",
    {"held": Held, "claimed": Claimed},
    base="coordinator.memories.base:Memory",
)

__all__ = ["MEMORIES", "Memory"]
