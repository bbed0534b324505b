"""A model that sees only some of the features."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, nn

from executor.models.base import ModelSpec
from executor.models.settings import MaskedSettings


class Masked(ModelSpec):
    """Another model behind a mask: the features are multiplied by a vector with one number for each.

    The mask is part of the parameter vector, named `mask`, so that it is sent and copied with its model, but
    training never changes it. It starts as all ones; a clusterer sets it to hide features from a model, as
    KUE does.

    Four features and three labels around `linear`: a mask of 4, 3 x 4 weights and 3 biases, of which the mask
    is not trained. A feature of mask 0 does not reach the inner model.

    Source: Cano and Krawczyk 2020 (KUE), in the form that FedDrift (AISTATS 2023) compares with.

    >>> model = Masked(Masked.Settings(inner="linear")).build((4,), num_outputs=3)
    >>> [parameter.numel() for parameter in model.parameters() if parameter.requires_grad]
    [12, 3]
    >>> model.mask.data = torch.tensor([1.0, 1.0, 0.0, 1.0])
    >>> hidden = torch.tensor([[0.0, 0.0, 5.0, 0.0]])
    >>> torch.equal(model(hidden), model(torch.zeros(1, 4)))
    True
    """

    Settings = MaskedSettings

    def __init__(self, settings: MaskedSettings) -> None:
        super().__init__(settings)
        self._inner = settings.inner.build()
        self.stacks, self.has_values = self._inner.stacks, self._inner.has_values
        self.dense = self._inner.dense and not isinstance(self._inner, Masked)

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        inner = self._inner.build(sample_shape, num_outputs)
        return FeatureMask(prod(sample_shape), inner, self.settings.feddrift_unmasked_inference)


class FeatureMask(nn.Module):
    """Applies `inner` to the features times `mask` (num_features,).

    With `unmasked_inference`, evaluation mode ignores the mask.
    """

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
