"""Registry of aggregators by name."""

from coordinator.aggregators.base import Aggregator
from emulator.plugins import Registry

AGGREGATORS: Registry[type[Aggregator]] = Registry(
    "aggregator",
    "driftscale.aggregator",
    {
        "async_mix": "coordinator.aggregators.async_mix:AsyncMix",
        "fedadagrad": "coordinator.aggregators.fedadagrad:FedAdagrad",
        "fedadam": "coordinator.aggregators.fedadam:FedAdam",
        "fedavg": "coordinator.aggregators.fedavg:FedAvg",
        "fedbuff": "coordinator.aggregators.fedbuff:FedBuff",
        "feddc": "coordinator.aggregators.feddc:FedDC",
        "feddyn": "coordinator.aggregators.feddyn:FedDyn",
        "fednova": "coordinator.aggregators.fednova:FedNova",
        "fedyogi": "coordinator.aggregators.fedyogi:FedYogi",
        "flash": "coordinator.aggregators.flash:Flash",
        "krum": "coordinator.aggregators.krum:Krum",
        "median": "coordinator.aggregators.median:Median",
        "norm_clip": "coordinator.aggregators.norm_clip:NormClip",
        "qfedavg": "coordinator.aggregators.qfedavg:QFedAvg",
        "sample_share": "coordinator.aggregators.sample_share:SampleShare",
        "scaffold": "coordinator.aggregators.scaffold:Scaffold",
        "trimmed_mean": "coordinator.aggregators.trimmed_mean:TrimmedMean",
    },
    base="coordinator.aggregators.base:Aggregator",
)

__all__ = ["AGGREGATORS", "Aggregator"]
