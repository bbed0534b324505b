"""The local rules a configuration can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.plugins import Registry

if TYPE_CHECKING:
    from executor.rules.base import LocalRule

RULES: Registry[type[LocalRule]] = Registry(
    "local rule",
    "driftscale.rule",
    {
        "adam": "executor.rules.adam:Adam",
        "fedprox": "executor.rules.fedprox:FedProx",
        "sgd": "executor.rules.sgd:Sgd",
    },
    loads_late=True,
    settings={
        "adam": "executor.rules.settings:AdamSettings",
        "fedprox": "executor.rules.settings:FedProxSettings",
        "sgd": "executor.rules.settings:SgdSettings",
    },
    base="executor.rules.base:LocalRule",
)
