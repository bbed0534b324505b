"""Registry of clusterers by name."""

from coordinator.clusterers.base import Clusterer
from emulator.plugins import Registry

CLUSTERERS: Registry[type[Clusterer]] = Registry(
    "clusterer",
    "driftscale.clusterer",
    {
        "single": "coordinator.clusterers.single:Single",
        "static": "coordinator.clusterers.static:Static",
        "fielding": "coordinator.clusterers.fielding:Fielding",
        "oracle": "coordinator.clusterers.oracle:Oracle",
        "feddrift_eager": "coordinator.clusterers.feddrift_eager:FedDriftEager",
        "feddrift": "coordinator.clusterers.feddrift:FedDrift",
        "feddrift_c": "coordinator.clusterers.feddrift_c:FedDriftC",
        "ifca": "coordinator.clusterers.ifca:Ifca",
        "auxo": "coordinator.clusterers.auxo:Auxo",
        "hypcluster": "coordinator.clusterers.hypcluster:HypCluster",
        "flexcfl": "coordinator.clusterers.flexcfl:FlexCfl",
        "cfl": "coordinator.clusterers.cfl:Cfl",
        "drift_groups": "coordinator.clusterers.drift_groups:DriftGroups",
        "driftsurf": "coordinator.clusterers.driftsurf:DriftSurf",
        "aue": "coordinator.clusterers.aue:Aue",
        "aue_pc": "coordinator.clusterers.aue:AuePerClient",
        "kue": "coordinator.clusterers.kue:Kue",
    },
    base="coordinator.clusterers.base:Clusterer",
)

__all__ = ["CLUSTERERS", "Clusterer"]
