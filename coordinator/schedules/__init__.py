"""Registry of schedules by name."""

from coordinator.schedules.base import Schedule
from emulator.plugins import Registry

SCHEDULES: Registry[type[Schedule]] = Registry(
    "schedule",
    "driftscale.schedule",
    {
        "adaptive_lr": "coordinator.schedules.adaptive_lr:AdaptiveLearningRate",
        "by_cluster": "coordinator.schedules.by_cluster:ByCluster",
        "on_drift": "coordinator.schedules.on_drift:OnDrift",
        "slowness": "coordinator.schedules.slowness:Slowness",
    },
    base="coordinator.schedules.base:Schedule",
)

__all__ = ["SCHEDULES", "Schedule"]
