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
        "apfl": "executor.rules.apfl:Apfl",
        "aso_memory": "executor.rules.aso_memory:AsoMemory",
        "clip": "executor.rules.clip:Clip",
        "ditto": "executor.rules.ditto:Ditto",
        "early_stopping": "executor.rules.early_stopping:EarlyStopping",
        "feddc": "executor.rules.feddc:FedDC",
        "feddyn": "executor.rules.feddyn:FedDyn",
        "fedprox": "executor.rules.fedprox:FedProx",
        "personal_layers": "executor.rules.personal_layers:PersonalLayers",
        "scaffold": "executor.rules.scaffold:Scaffold",
        "sgd": "executor.rules.sgd:Sgd",
    },
    loads_late=True,
    settings={
        "adam": "executor.rules.settings:AdamSettings",
        "apfl": "executor.rules.settings:ApflSettings",
        "aso_memory": "executor.rules.settings:AsoMemorySettings",
        "clip": "executor.rules.settings:ClipSettings",
        "ditto": "executor.rules.settings:DittoSettings",
        "early_stopping": "executor.rules.settings:EarlyStoppingSettings",
        "feddc": "executor.rules.settings:FedDCSettings",
        "feddyn": "executor.rules.settings:FedDynSettings",
        "fedprox": "executor.rules.settings:FedProxSettings",
        "personal_layers": "executor.rules.settings:PersonalLayersSettings",
        "scaffold": "emulator.plugins:NoSettings",
        "sgd": "executor.rules.settings:SgdSettings",
    },
    base="executor.rules.base:LocalRule",
)
