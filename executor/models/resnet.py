"""A small residual network without state: GroupNorm, since averages of BatchNorm's statistics mean little."""

from __future__ import annotations

from torch import Tensor, nn

from emulator.errors import ConfigurationError
from executor.models.base import ModelSpec
from executor.models.cnn import KERNEL
from executor.models.settings import ResnetSettings

STRIDE = 2


class Resnet(ModelSpec):
    """A 3x3 convolution of stride 2, `depth` residual blocks of one width, and the logits of channel means.

    A block maps x to ReLU(x + N(K(ReLU(N(K(x)))))), with 3x3 convolutions K, which keep the size of the image
    and have no bias, and normalisations N over groups of channels of one sample. Channels are averaged over
    the image before the affine map to the logits, so that the number of parameters does not depend on the
    size of the image. Takes grey images (height, width) and images with channels (channels, height, width).

    The basic block and the normalisation before the addition are those of He et al.; unlike their networks,
    all blocks have the same width and resolution, so that `depth` is the only thing that it changes.

    One block of four channels: the first convolution has 4 x 9 weights and its normalisation 8 numbers, each
    convolution of the block 4 x 4 x 9 and 8, the affine map 10 x 4 + 10.

    Source: He et al. 2016 (residual blocks); Wu and He 2018 (GroupNorm).

    >>> import torch
    >>> model = Resnet(Resnet.Settings(depth=1, channels=4, groups=2)).build((6, 6), num_labels=10)
    >>> sum(parameter.numel() for parameter in model.parameters()) == 36 + 8 + 2 * (144 + 8) + 50
    True
    >>> model(torch.zeros(5, 6, 6)).shape
    torch.Size([5, 10])
    """

    Settings = ResnetSettings

    stacks = False

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        if len(sample_shape) not in (2, 3):
            raise ConfigurationError(
                f"model resnet takes images (height, width) or (channels, height, width), not samples of "
                f"shape {sample_shape}; use mlp or linear"
            )
        inputs = 1 if len(sample_shape) == 2 else sample_shape[0]
        channels, groups = self.settings.channels, self.settings.groups
        return nn.Sequential(
            *([nn.Unflatten(1, (1, sample_shape[0]))] if len(sample_shape) == 2 else []),
            nn.Conv2d(inputs, channels, KERNEL, STRIDE, padding=KERNEL // 2, bias=False),
            nn.GroupNorm(groups, channels),
            nn.ReLU(),
            *(ResidualBlock(channels, groups) for _ in range(self.settings.depth)),
            ChannelMeans(),
            nn.Linear(channels, num_labels),
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


class ChannelMeans(nn.Module):
    """Maps images (n, channels, height, width) to the mean of each channel (n, channels)."""

    def forward(self, images: Tensor) -> Tensor:
        return images.mean(dim=(-2, -1))
