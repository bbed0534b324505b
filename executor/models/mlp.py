"""The fully connected network with hidden layers."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from torch import nn

from executor.models.base import ModelSpec
from executor.models.settings import MlpSettings


class Mlp(ModelSpec):
    """Hidden layers with ReLU between the flattened sample and the logits.

    Six features, five hidden units and three labels make 5 x 6 + 5 and 3 x 5 + 3 parameters.

    Source: ours; FedDrift (AISTATS 2023) has one hidden layer of twice as many units as features.

    >>> import torch
    >>> model = Mlp(Mlp.Settings(hidden=(5,))).build((2, 3), num_outputs=3)
    >>> sum(parameter.numel() for parameter in model.parameters())
    53
    >>> model(torch.zeros(4, 2, 3)).shape
    torch.Size([4, 3])
    """

    Settings = MlpSettings

    stacks = True
    dense = True

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        widths = (prod(sample_shape), *self.settings.hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(widths[-1], num_outputs))
