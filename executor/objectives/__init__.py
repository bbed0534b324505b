"""The objectives a configuration can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.plugins import Registry

if TYPE_CHECKING:
    from executor.objectives.base import Objective

OBJECTIVES: Registry[type[Objective]] = Registry(
    "objective",
    "driftscale.objective",
    {
        "absolute_error": "executor.objectives.errors:AbsoluteError",
        "labels": "executor.objectives.labels:Labels",
        "multi_label": "executor.objectives.multi_label:MultiLabel",
        "next_token": "executor.objectives.next_token:NextToken",
        "squared_error": "executor.objectives.errors:SquaredError",
    },
    loads_late=True,
    settings={
        "absolute_error": "executor.objectives.settings:ErrorSettings",
        "labels": "emulator.plugins:NoSettings",
        "multi_label": "emulator.plugins:NoSettings",
        "next_token": "emulator.plugins:NoSettings",
        "squared_error": "executor.objectives.settings:ErrorSettings",
    },
    base="executor.objectives.base:Objective",
)
