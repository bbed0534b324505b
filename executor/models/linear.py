"""Multinomial logistic regression."""

from __future__ import annotations

from math import prod

from torch import nn

from executor.models.base import ModelSpec


class Linear(ModelSpec):
    """One affine map from the flattened sample to the logits."""

    stacks = True
    dense = True

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(prod(sample_shape), num_labels))
