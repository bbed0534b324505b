"""A model that sees some of the features only."""

from __future__ import annotations

from math import prod
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from emulator import plugins
from executor.models import MODELS
from executor.models.base import ModelSpec


class Masked(ModelSpec):
    """Another model behind a mask: the features are multiplied by a vector of as many numbers.

    The mask is a part of the vector of parameters, named `mask`, so that it travels and is copied with its
    model, but no training changes it. It starts as all ones; whoever wants a model to see less sets it, as
    KUE does (Cano and Krawczyk, 2020).

    FedDrift's code trains KUE's models behind their masks and answers without them;
    `feddrift_unmasked_inference` reproduces that for parity.
    """

    class Settings(plugins.Settings):
        inner: Annotated[plugins.Chosen[ModelSpec], plugins.ChoiceOf(MODELS)] = Field(
            "mlp", validate_default=True, description="the model behind the mask: a name or a table"
        )
        feddrift_unmasked_inference: bool = Field(
            False,
            description="ignore the mask when clients are served, as FedDrift's code does: for parity only",
        )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._inner = settings.inner.build()
        self.stacks = self._inner.stacks
        self.dense = self._inner.dense and not isinstance(self._inner, Masked)

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        inner = self._inner.build(sample_shape, num_labels)
        return FeatureMask(prod(sample_shape), inner, self.settings.feddrift_unmasked_inference)


class FeatureMask(nn.Module):
    """`inner` of the features times `mask` (num_features,); of all of them, if `unmasked_inference`, once
    the module is in evaluation mode."""

    def __init__(self, num_features: int, inner: nn.Module, unmasked_inference: bool) -> None:
        super().__init__()
        self.mask = nn.Parameter(torch.ones(num_features), requires_grad=False)
        self.inner = inner
        self._unmasked_inference = unmasked_inference

    def forward(self, features: Tensor) -> Tensor:
        if not (self._unmasked_inference and not self.training):
            features = (features.flatten(1) * self.mask).view_as(features)
        logits: Tensor = self.inner(features)
        return logits
