"""A small residual network without state: GroupNorm, since averages of BatchNorm's statistics mean little."""

from __future__ import annotations

from torch import Tensor, nn

from executor.models.base import ModelSpec
from executor.models.cnn import KERNEL, POOL
from executor.models.images import image_shape
from executor.models.settings import ResnetSettings

STRIDE = 2


class Resnet(ModelSpec):
    """A 3x3 convolution of stride 2, `depth` residual blocks, 2x2 average pooling, and an affine map.

    A block maps x to ReLU(x + N(K(ReLU(N(K(x)))))), with 3x3 convolutions K, which keep the size of the image
    and have no bias, and normalisations N over groups of channels of one sample. Takes grey images (height,
    width) and images with channels (channels, height, width).

    The block is the basic one of He et al. Unlike in their networks, all have the same width and resolution,
    and channels are not averaged over the whole image before the affine map: a group that has just been
    normalised has the mean 0 (on Fashion-MNIST, eight channels then had 39 % in place of 71 % after 300
    steps).

    One block of four channels on images of 6 x 6 pixels: the first convolution leaves 3 x 3, the pooling
    2 x 2. The first convolution has 4 x 9 weights and its normalisation 8 numbers, each convolution of the
    block 4 x 4 x 9 and 8, the affine map 10 x 16 + 10.

    Source: He et al. 2016 (residual blocks); Wu and He 2018 (GroupNorm).

    >>> import torch
    >>> model = Resnet(Resnet.Settings(depth=1, channels=4, groups=2)).build((6, 6), num_outputs=10)
    >>> sum(parameter.numel() for parameter in model.parameters()) == 36 + 8 + 2 * (144 + 8) + 170
    True
    >>> model(torch.zeros(5, 6, 6)).shape
    torch.Size([5, 10])
    """

    Settings = ResnetSettings

    stacks = False

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        inputs, height, width = image_shape("resnet", sample_shape)
        channels, groups = self.settings.channels, self.settings.groups
        return nn.Sequential(
            *([nn.Unflatten(1, (1, sample_shape[0]))] if len(sample_shape) == 2 else []),
            nn.Conv2d(inputs, channels, KERNEL, STRIDE, padding=KERNEL // 2, bias=False),
            nn.GroupNorm(groups, channels),
            nn.ReLU(),
            *(ResidualBlock(channels, groups) for _ in range(self.settings.depth)),
            nn.AvgPool2d(POOL, ceil_mode=True),
            nn.Flatten(),
            nn.Linear(channels * _after_pooling(height) * _after_pooling(width), num_outputs),
        )


class ResidualBlock(nn.Module):
    """ReLU(x + f(x)) of images (n, channels, height, width); f has two normalised convolutions."""

    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(channels, channels, KERNEL, padding=KERNEL // 2, bias=False),
            nn.GroupNorm(groups, channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, KERNEL, padding=KERNEL // 2, bias=False),
            nn.GroupNorm(groups, channels),
        )

    def forward(self, images: Tensor) -> Tensor:
        return nn.functional.relu(images + self.residual(images))


def _after_pooling(side: int) -> int:
    """The length in pixels of a side of `side` pixels after the first convolution and the pooling."""
    return -(-side // (STRIDE * POOL))
