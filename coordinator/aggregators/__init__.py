"""Aggregators, by name."""

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import FedAvg
from emulator.plugins import Registry

AGGREGATORS: Registry[type[Aggregator]] = Registry("aggregator", "driftscale.aggregator", {"fedavg": FedAvg})

__all__ = ["AGGREGATORS", "Aggregator"]
