"""Multinomial logistic regression."""

from __future__ import annotations

from math import prod

from torch import nn

from executor.models.base import ModelSpec


class Linear(ModelSpec):
    """One affine map from the flattened sample to the logits.

    Six features and three labels make 3 x 6 weights and 3 biases.

    Source: ours: multinomial logistic regression.

    >>> import torch
    >>> model = Linear(Linear.Settings()).build((2, 3), num_outputs=3)
    >>> sum(parameter.numel() for parameter in model.parameters())
    21
    >>> model(torch.zeros(5, 2, 3)).shape
    torch.Size([5, 3])
    """

    stacks = True
    dense = True

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(prod(sample_shape), num_outputs))
