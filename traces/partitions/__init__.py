"""Registry of partitions by name: how data without clients is divided among clients."""

from emulator.plugins import Registry
from traces.partitions.base import Partition, Samples

PARTITIONS: Registry[type[Partition]] = Registry(
    "partition",
    "driftscale.partition",
    {
        "column": "traces.partitions.column:ByColumn",
        "dirichlet": "traces.partitions.dirichlet:Dirichlet",
        "iid": "traces.partitions.sizes:Iid",
        "lognormal": "traces.partitions.sizes:Lognormal",
        "quarters": "traces.partitions.shards:Quarters",
        "shards": "traces.partitions.shards:Shards",
    },
    base="traces.partitions.base:Partition",
)

__all__ = ["PARTITIONS", "Partition", "Samples"]
