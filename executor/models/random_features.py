"""A linear model of random features of a sample: the kernel machine that federated averaging can train."""

from __future__ import annotations

from math import pi, prod, sqrt

import torch
from torch import Tensor, nn

from executor.models.base import ModelSpec
from executor.models.settings import RandomFeaturesSettings


class RandomFeatures(ModelSpec):
    """One affine map to the logits from random features of the flattened sample, which nobody trains.

    Their inner products approach a Gaussian kernel, exp(-|x - y|^2 / (2 width^2)): the model is one of which
    samples are near each other, and can fit any drift of features as long as samples of one kind stay apart
    from others. The features are the same in all runs, and are never sent.

    Six features in a sample, five random ones and three labels make 3 x 5 weights and 3 biases.

    Source: Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007, algorithm 1.

    >>> model = RandomFeatures(RandomFeatures.Settings(features=5)).build((2, 3), num_outputs=3)
    >>> sum(parameter.numel() for parameter in model.parameters()), model(torch.zeros(4, 2, 3)).shape
    (18, torch.Size([4, 3]))
    """

    Settings = RandomFeaturesSettings

    stacks = True
    has_values = True  # those of the features

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        size, count = prod(sample_shape), self.settings.features
        features = _Features(size, count, self.settings.width or sqrt(size) / 4)
        return nn.Sequential(nn.Flatten(), features, nn.Linear(count, num_outputs))


class _Features(nn.Module):
    """sqrt(2 / D) cos(x W + b) of samples x (n, size), with W of N(0, 1 / width^2) and b uniform."""

    weight: Tensor
    bias: Tensor

    def __init__(self, size: int, features: int, width: float) -> None:
        super().__init__()
        drawing = torch.Generator().manual_seed(0)
        self.register_buffer("weight", torch.randn(size, features, generator=drawing) / width)
        self.register_buffer("bias", 2 * pi * torch.rand(features, generator=drawing))

    def forward(self, samples: Tensor) -> Tensor:
        return torch.cos(samples @ self.weight + self.bias) * sqrt(2 / len(self.bias))
