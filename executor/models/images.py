"""What models of images share: the shapes that they take, and layers as the published networks have them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Literal

from torch import nn

from emulator.errors import ConfigurationError

GROUPS = 2
"""Groups of channels that `group` normalises, as Reddi et al. 2021 have it: of many channels, which vary also
where one pixel is left."""

Norm = Callable[[int], nn.Module]
"""Makes the normalisation of so many channels."""

NORMS: Mapping[Literal["group", "batch"], Norm] = {
    "group": partial(nn.GroupNorm, GROUPS),
    "batch": nn.BatchNorm2d,
}


def image_shape(model: str, sample_shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(channels, height, width) of samples that are images; grey ones, (height, width), have one channel.

    Raises ConfigurationError, in the name of the model, if they are no images.
    """
    if len(sample_shape) not in (2, 3):
        raise ConfigurationError(
            f"model {model} takes images (height, width) or (channels, height, width), not samples of shape "
            f"{sample_shape}; use mlp or linear"
        )
    height, width = sample_shape[-2:]
    return prod(sample_shape[:-2]), height, width


def with_channels(sample_shape: tuple[int, ...]) -> nn.Module:
    """A layer that gives grey images an axis for their channel, and leaves others as they are."""
    return nn.Unflatten(1, (1, sample_shape[0])) if len(sample_shape) == 2 else nn.Identity()


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution that a normalisation follows: without bias, of images padded by half a kernel."""
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)


def sequence(**layers: nn.Module) -> nn.Sequential:
    """Layers that compute one after the other, whose names are those of the arguments."""
    return nn.Sequential(OrderedDict(layers))
