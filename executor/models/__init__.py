"""The models a configuration can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.plugins import Registry

if TYPE_CHECKING:
    from executor.models.base import ModelSpec

MODELS: Registry[type[ModelSpec]] = Registry(
    "model",
    "driftscale.model",
    {
        "cnn": "executor.models.cnn:Cnn",
        "linear": "executor.models.linear:Linear",
        "masked": "executor.models.masked:Masked",
        "mlp": "executor.models.mlp:Mlp",
        "resnet": "executor.models.resnet:Resnet",
    },
    loads_late=True,
    settings={
        "cnn": "executor.models.settings:CnnSettings",
        "linear": "emulator.plugins:NoSettings",
        "masked": "executor.models.settings:MaskedSettings",
        "mlp": "executor.models.settings:MlpSettings",
        "resnet": "executor.models.settings:ResnetSettings",
    },
    base="executor.models.base:ModelSpec",
    taken="executor.models.module:as_model",
)
