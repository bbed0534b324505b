"""Registry of aggregators by name."""

from coordinator.aggregators.base import Aggregator
from emulator.plugins import Registry

AGGREGATORS: Registry[type[Aggregator]] = Registry(
    "aggregator",
    "driftscale.aggregator",
    {
        "fedadagrad": "coordinator.aggregators.fedadagrad:FedAdagrad",
        "fedadam": "coordinator.aggregators.fedadam:FedAdam",
        "fedavg": "coordinator.aggregators.fedavg:FedAvg",
        "fedbuff": "coordinator.aggregators.fedbuff:FedBuff",
        "fedyogi": "coordinator.aggregators.fedyogi:FedYogi",
        "krum": "coordinator.aggregators.krum:Krum",
        "median": "coordinator.aggregators.median:Median",
        "norm_clip": "coordinator.aggregators.norm_clip:NormClip",
        "qfedavg": "coordinator.aggregators.qfedavg:QFedAvg",
        "scaffold": "coordinator.aggregators.scaffold:Scaffold",
        "trimmed_mean": "coordinator.aggregators.trimmed_mean:TrimmedMean",
    },
    base="coordinator.aggregators.base:Aggregator",
)

__all__ = ["AGGREGATORS", "Aggregator"]
