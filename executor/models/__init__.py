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
        "char_lstm": "executor.models.char_lstm:CharLstm",
        "cnn": "executor.models.cnn:Cnn",
        "context": "executor.models.context:Context",
        "linear": "executor.models.linear:Linear",
        "masked": "executor.models.masked:Masked",
        "mixture": "executor.models.context:Mixture",
        "mlp": "executor.models.mlp:Mlp",
        "random_features": "executor.models.random_features:RandomFeatures",
        "resnet": "executor.models.resnet:Resnet",
        "resnet18": "executor.models.resnet18:Resnet18",
        "shufflenet_v2": "executor.models.shufflenet_v2:ShufflenetV2",
        "vit_tiny": "executor.models.vit_tiny:VitTiny",
        "word_transformer": "executor.models.word_transformer:WordTransformer",
    },
    loads_late=True,
    settings={
        "char_lstm": "executor.models.settings:CharLstmSettings",
        "cnn": "executor.models.settings:CnnSettings",
        "context": "executor.models.settings:ContextSettings",
        "linear": "emulator.plugins:NoSettings",
        "masked": "executor.models.settings:MaskedSettings",
        "mixture": "executor.models.settings:MixtureSettings",
        "mlp": "executor.models.settings:MlpSettings",
        "random_features": "executor.models.settings:RandomFeaturesSettings",
        "resnet": "executor.models.settings:ResnetSettings",
        "resnet18": "executor.models.settings:StemAndNormSettings",
        "shufflenet_v2": "executor.models.settings:StemAndNormSettings",
        "vit_tiny": "executor.models.settings:VitTinySettings",
        "word_transformer": "executor.models.settings:WordTransformerSettings",
    },
    base="executor.models.base:ModelSpec",
    taken="executor.models.module:as_model",
)
