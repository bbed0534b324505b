"""ShuffleNet V2 x1.0, whose tensors are named as in the published weight files."""

from __future__ import annotations

from itertools import count, pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from executor.models.base import ModelSpec
from executor.models.images import NORMS, Norm, convolution, image_shape, sequence, with_channels
from executor.models.settings import StemAndNormSettings


class ShufflenetV2(ModelSpec):
    """A stem, stages of 4, 8 and 4 units, a 1x1 convolution, the mean over the image, and an affine map.

    The stages have 116, 232 and 464 channels, and halve the image. A unit sends half of the channels, or
    all of them where it halves the image, through a 1x1 convolution, a 3x3 convolution of each channel by
    itself and a 1x1 convolution, each normalised; it appends the result to the other half, and the channels
    of the two alternate. Takes grey images (height, width) and images with channels (channels, height,
    width).

    With `stem = "imagenet"`, `norm = "batch"` and images of three channels, tensors have the names, shapes
    and order of torchvision's `shufflenet_v2_x1_0`: 2,278,604 parameters at 1,000 labels. The stem `cifar`
    and `group`, the default for the reason that `resnet18` gives, are ours.

    Source: Ma et al. 2018.

    >>> import torch
    >>> with torch.device("meta"):
    ...     model = ShufflenetV2(ShufflenetV2.Settings()).build((3, 32, 32), num_outputs=1000)
    >>> sum(parameter.numel() for parameter in model.parameters())
    2278604
    """

    Settings = StemAndNormSettings

    stacks = False
    channels: ClassVar[tuple[int, ...]] = (24, 116, 232, 464, 1024)
    units: ClassVar[tuple[int, ...]] = (4, 8, 4)

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        inputs, _, _ = image_shape("shufflenet_v2", sample_shape)
        large, norm = self.settings.stem == "imagenet", NORMS[self.settings.norm]
        first, *_, before, last = self.channels
        stages: dict[str, nn.Module] = {
            f"stage{number}": nn.Sequential(*(Unit(*pair, norm) for pair in pairwise([old, *[new] * units])))
            for number, units, (old, new) in zip(count(2), self.units, pairwise(self.channels))
        }
        return sequence(
            images=with_channels(sample_shape),
            conv1=nn.Sequential(convolution(inputs, first, 3, 2 if large else 1), norm(first), nn.ReLU()),
            maxpool=nn.MaxPool2d(3, 2, 1) if large else nn.Identity(),
            **stages,
            conv5=nn.Sequential(convolution(before, last, 1), norm(last), nn.ReLU()),
            avgpool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            fc=nn.Linear(last, num_outputs),
        )


class Unit(nn.Module):
    """Maps images (n, inputs, height, width) to `outputs` channels, which come from two branches in turns.

    Where there are as many channels as before, each branch sees half of them, and the first keeps them; else
    both see all, and halve the image.
    """

    def __init__(self, inputs: int, outputs: int, norm: Norm) -> None:
        super().__init__()
        half = outputs // 2
        self.splits = inputs == outputs
        stride, seen = (1, half) if self.splits else (2, inputs)
        self.branch1 = nn.Sequential()
        if not self.splits:
            self.branch1.extend((convolution(inputs, inputs, 3, stride, groups=inputs), norm(inputs)))
            self.branch1.extend((convolution(inputs, half, 1), norm(half), nn.ReLU()))
        self.branch2 = nn.Sequential(
            *(convolution(seen, half, 1), norm(half), nn.ReLU()),
            *(convolution(half, half, 3, stride, groups=half), norm(half)),
            *(convolution(half, half, 1), norm(half), nn.ReLU()),
        )

    def forward(self, images: Tensor) -> Tensor:
        first, second = images.chunk(2, 1) if self.splits else (images, images)
        return torch.stack([self.branch1(first), self.branch2(second)], 2).flatten(1, 2)
