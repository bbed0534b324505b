"""Registry of schedules by name."""

from coordinator.schedules.base import Schedule
from emulator.plugins import Registry

SCHEDULES: Registry[type[Schedule]] = Registry(
    "schedule",
    "driftscale.schedule",
    {
        "adaptive_lr": "coordinator.schedules.adaptive_lr:AdaptiveLearningRate",
        "by_cluster": "coordinator.schedules.by_cluster:ByCluster",
    },
    base="coordinator.schedules.base:Schedule",
)

__all__ = ["SCHEDULES", "Schedule"]
