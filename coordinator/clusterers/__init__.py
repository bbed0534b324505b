"""Clusterers, by name."""

from coordinator.clusterers.aue import Aue, AuePerClient
from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.cfl import Cfl
from coordinator.clusterers.driftsurf import DriftSurf
from coordinator.clusterers.feddrift import FedDrift
from coordinator.clusterers.feddrift_c import FedDriftC
from coordinator.clusterers.feddrift_eager import FedDriftEager
from coordinator.clusterers.fielding import Fielding
from coordinator.clusterers.ifca import Ifca
from coordinator.clusterers.kue import Kue
from coordinator.clusterers.oracle import Oracle
from coordinator.clusterers.single import Single
from coordinator.clusterers.static import Static
from emulator.plugins import Registry

CLUSTERERS: Registry[type[Clusterer]] = Registry(
    "clusterer",
    "driftscale.clusterer",
    {
        "single": Single,
        "static": Static,
        "fielding": Fielding,
        "oracle": Oracle,
        "feddrift_eager": FedDriftEager,
        "feddrift": FedDrift,
        "feddrift_c": FedDriftC,
        "ifca": Ifca,
        "cfl": Cfl,
        "driftsurf": DriftSurf,
        "aue": Aue,
        "aue_pc": AuePerClient,
        "kue": Kue,
    },
)

__all__ = ["CLUSTERERS", "Clusterer"]
