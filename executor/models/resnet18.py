"""ResNet-18, whose tensors are named as in the published weight files."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn

from executor.models.base import ModelSpec
from executor.models.images import NORMS, Norm, convolution, image_shape, sequence, with_channels
from executor.models.settings import StemAndNormSettings


class Resnet18(ModelSpec):
    """A stem, four stages of two residual blocks each, the mean over the image, and an affine map.

    The stages have 64, 128, 256 and 512 channels, and all but the first halve the image. A block maps x to
    ReLU(s(x) + N(K(ReLU(N(K(x)))))), with 3x3 convolutions K without bias and normalisations N; s is the
    identity, or a normalised 1x1 convolution where the block changes the shape. Takes grey images (height,
    width) and images with channels (channels, height, width).

    With `stem = "imagenet"`, `norm = "batch"` and images of three channels, tensors have the names, shapes
    and order of torchvision's `resnet18`: 11,689,512 parameters at 1,000 labels. Statistics of batches that
    hold few of the labels differ between clients, and their average suits none, so that `group` is the
    default.

    Source: He et al. 2016 (the network; stride 1 and no pooling on small images, as in their networks for
    CIFAR-10); Wu and He 2018 (GroupNorm); Hsieh et al. 2020 (batch norm on unlike clients); Reddi et al. 2021
    (GroupNorm in two groups in federated ResNet-18).

    >>> import torch
    >>> with torch.device("meta"):
    ...     model = Resnet18(Resnet18.Settings(stem="imagenet")).build((3, 224, 224), num_outputs=1000)
    >>> sum(parameter.numel() for parameter in model.parameters())
    11689512
    """

    Settings = StemAndNormSettings

    stacks = False
    channels: ClassVar[tuple[int, ...]] = (64, 128, 256, 512)

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        inputs, _, _ = image_shape("resnet18", sample_shape)
        large, norm = self.settings.stem == "imagenet", NORMS[self.settings.norm]
        first, last = self.channels[0], self.channels[-1]
        stages: dict[str, nn.Module] = {
            f"layer{number}": nn.Sequential(BasicBlock(before, after, norm), BasicBlock(after, after, norm))
            for number, (before, after) in enumerate(pairwise((first, *self.channels)), 1)
        }
        return sequence(
            images=with_channels(sample_shape),
            conv1=convolution(inputs, first, 7, 2) if large else convolution(inputs, first, 3),
            bn1=norm(first),
            relu=nn.ReLU(),
            maxpool=nn.MaxPool2d(3, 2, 1) if large else nn.Identity(),
            **stages,
            avgpool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            fc=nn.Linear(last, num_outputs),
        )


class BasicBlock(nn.Module):
    """ReLU(s(x) + f(x)) of images (n, inputs, height, width); f has two normalised 3x3 convolutions.

    The image is halved where there are other channels than before.
    """

    def __init__(self, inputs: int, outputs: int, norm: Norm) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.conv1, self.bn1 = convolution(inputs, outputs, 3, stride), norm(outputs)
        self.conv2, self.bn2 = convolution(outputs, outputs, 3), norm(outputs)
        shortcut = (convolution(inputs, outputs, 1, stride), norm(outputs)) if stride == 2 else ()
        self.downsample = nn.Sequential(*shortcut)

    def forward(self, images: Tensor) -> Tensor:
        inner = nn.functional.relu(self.bn1(self.conv1(images)))
        return nn.functional.relu(self.downsample(images) + self.bn2(self.conv2(inner)))
