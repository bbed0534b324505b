"""Aggregators, by name."""

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import FedAvg
from coordinator.aggregators.krum import Krum
from coordinator.aggregators.median import Median
from coordinator.aggregators.norm_clip import NormClip
from coordinator.aggregators.trimmed_mean import TrimmedMean
from emulator.plugins import Registry

AGGREGATORS: Registry[type[Aggregator]] = Registry(
    "aggregator",
    "driftscale.aggregator",
    {
        "fedavg": FedAvg,
        "krum": Krum,
        "median": Median,
        "norm_clip": NormClip,
        "trimmed_mean": TrimmedMean,
    },
)

__all__ = ["AGGREGATORS", "Aggregator"]
