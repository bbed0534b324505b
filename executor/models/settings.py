"""Settings of our models, without torch: a mistake in them is reported before torch is imported."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from emulator.numbers import ModelCount, Number, PositiveFactor, Units
from emulator.plugins import ChoiceOf, Chosen, Settings
from executor.models import MODELS


class CnnSettings(Settings):
    """Settings of `cnn`."""

    channels: tuple[Units, ...] = Field(
        (16, 32), min_length=1, description="filters of each block, first to last", examples=[(32, 64)]
    )
    padding: Annotated[int, Number(ge=0, le=1)] | None = Field(
        None,
        description="pixels of zeros around each convolution's input; if omitted, 0 for images that are "
        "large enough (10 x 10 for two blocks), else 1",
    )
    hidden: tuple[Units, ...] = Field(
        (), description="units of each hidden layer between the blocks and the logits", examples=[(128,)]
    )


class CharLstmSettings(Settings):
    """Settings of `char_lstm`."""

    embedding: Units = Field(8, description="numbers that each token is looked up as", examples=[16])
    hidden: Units = Field(256, description="units of each recurrent layer", examples=[64])
    layers: Annotated[int, Number(ge=1, le=64)] = Field(2, description="recurrent layers", examples=[1])


class MaskedSettings(Settings):
    """Settings of `masked`."""

    inner: Annotated[Chosen[Any], ChoiceOf(MODELS)] = Field(
        "mlp",
        validate_default=True,
        description="the model behind the mask: a name or a table",
        examples=["linear"],
    )
    feddrift_unmasked_inference: bool = Field(
        False,
        description="ignore the mask when clients are served, as FedDrift's code does: for parity only",
    )


class ContextSettings(Settings):
    """Settings of `context`."""

    inner: Annotated[Chosen[Any], ChoiceOf(MODELS)] = Field(
        "mlp",
        validate_default=True,
        description="the model that takes the vector: `linear` or `mlp`, a name or a table",
        examples=["linear"],
    )
    size: Units = Field(64, description="numbers of a client's context", examples=[32])


class MixtureSettings(ContextSettings):
    """Settings of `mixture`."""

    experts: ModelCount = Field(8, description="models of the sample that are mixed", examples=[16])


class MlpSettings(Settings):
    """Settings of `mlp`."""

    hidden: tuple[Units, ...] = Field(
        (64,),
        description="units of each hidden layer, first to last; none makes it `linear`",
        examples=[(128, 64)],
    )


class RandomFeaturesSettings(Settings):
    """Settings of `random_features`."""

    features: Units = Field(2048, description="random features of a sample", examples=[512])
    width: PositiveFactor | None = Field(
        None,
        description="of the kernel, in the unit of features: samples further apart are unlike; without it, a "
        "quarter of the root of the number of features",
        examples=[2.0],
    )


class ResnetSettings(Settings):
    """Settings of `resnet`."""

    depth: Units = Field(3, description="residual blocks, of two convolutions each", examples=[9])
    channels: Units = Field(16, description="channels of the first convolution and of all blocks")
    groups: Units = Field(
        4, description="groups of channels that are normalised together; divides `channels`, and is less"
    )

    @model_validator(mode="after")
    def _refuse_unequal_groups(self) -> ResnetSettings:
        # A group of one channel and one pixel would have no variance.
        if self.channels % self.groups != 0 or self.channels == self.groups:
            raise ValueError(
                f"groups = {self.groups}: must divide channels = {self.channels} into groups of at least two"
            )
        return self


class StemAndNormSettings(Settings):
    """Settings of `resnet18` and `shufflenet_v2`."""

    stem: Literal["cifar", "imagenet"] = Field(
        "cifar",
        description="how the network begins: for small images with a 3x3 convolution of stride 1, or as on "
        "ImageNet with a convolution of stride 2 and 3x3 max pooling of stride 2",
    )
    norm: Literal["group", "batch"] = Field(
        "group",
        description="what follows each convolution: GroupNorm of two groups, or batch norm, whose "
        "statistics `training.batch_norm` averages or keeps",
    )


class VitTinySettings(Settings):
    """Settings of `vit_tiny`."""

    patch: Units = Field(
        4, description="side of a patch in pixels; divides the height and the width of images", examples=[7]
    )


class WordTransformerSettings(Settings):
    """Settings of `word_transformer`."""

    layers: Annotated[int, Number(ge=1, le=64)] = Field(2, description="layers of attention", examples=[4])
    heads: Units = Field(4, description="heads of attention; divides `width`", examples=[8])
    width: Units = Field(64, description="numbers of a token", examples=[128])

    @model_validator(mode="after")
    def _refuse_unequal_heads(self) -> WordTransformerSettings:
        if self.width % self.heads != 0:
            raise ValueError(f"heads = {self.heads}: must divide width = {self.width}")
        return self
