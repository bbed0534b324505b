"""The local rules a configuration can name."""

from __future__ import annotations

from emulator.plugins import Registry
from executor.rules.adam import Adam
from executor.rules.base import LocalRule
from executor.rules.fedprox import FedProx
from executor.rules.sgd import Sgd

RULES: Registry[type[LocalRule]] = Registry(
    "local rule", "driftscale.rule", {"adam": Adam, "fedprox": FedProx, "sgd": Sgd}
)
