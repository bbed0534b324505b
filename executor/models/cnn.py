"""The small convolutional network of federated image tasks."""

from __future__ import annotations

from torch import Tensor, nn

from emulator.errors import ConfigurationError
from executor.models.base import ModelSpec
from executor.models.images import image_shape
from executor.models.settings import CnnSettings

KERNEL = 3
POOL = 2


class Cnn(ModelSpec):
    """Blocks of (3x3 convolution, ReLU, 2x2 max pooling), any hidden layers, and an affine map to the logits.

    Takes grey images (height, width) and images with channels (channels, height, width). With the default
    settings, images of 28 x 28 pixels make a two-block network whose last layer has 800 inputs.

    One block of four filters on images of 6 x 6 pixels: the convolution leaves 4 x 4, the pooling 2 x 2. It
    has 4 x 9 + 4 parameters, the affine map 10 x 16 + 10.

    Source: ours, of a common form.

    >>> import torch
    >>> model = Cnn(Cnn.Settings(channels=(4,), padding=0)).build((6, 6), num_outputs=10)
    >>> sum(parameter.numel() for parameter in model.parameters())
    210
    >>> model(torch.zeros(5, 6, 6)).shape
    torch.Size([5, 10])
    """

    Settings = CnnSettings

    stacks = False

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        inputs, height, width = image_shape("cnn", sample_shape)
        padding = self._padding(min(height, width))
        blocks: list[nn.Module] = [ChannelsLast()]
        for outputs in self.settings.channels:
            # NOTE: pooling before ReLU gives the same numbers and gradients for a quarter of the work.
            blocks += [nn.Conv2d(inputs, outputs, KERNEL, padding=padding), nn.MaxPool2d(POOL), nn.ReLU()]
            height, width, inputs = _after_block(height, padding), _after_block(width, padding), outputs
        blocks.append(nn.Flatten())
        inputs *= height * width
        for outputs in self.settings.hidden:
            blocks += [nn.Linear(inputs, outputs), nn.ReLU()]
            inputs = outputs
        return nn.Sequential(*blocks, nn.Linear(inputs, num_outputs))

    def _padding(self, side: int) -> int:
        """The padding to use for images whose shorter side has `side` pixels.

        Raises ConfigurationError if such an image does not last through all blocks.
        """
        configured = self.settings.padding
        for padding in (0, 1) if configured is None else (configured,):
            left = side
            for _ in self.settings.channels:
                left = _after_block(left, padding)
            if left > 0:
                return padding
        blocks = len(self.settings.channels)
        rule = "" if configured is None else f" with padding = {configured}"
        raise ConfigurationError(
            f"model cnn: nothing is left of {side} pixels after {blocks} blocks of a 3x3 convolution and a "
            f"2x2 pooling{rule}; configure fewer channels or use mlp"
        )


class ChannelsLast(nn.Module):
    """Maps images of shape (n, height, width) or (n, channels, height, width) to the latter.

    NOTE: in memory the channels of a pixel are adjacent (channels last), as torch then pools ten times faster
    on a CPU; convolutions keep the memory layout of their input.
    """

    def forward(self, images: Tensor) -> Tensor:
        pixels = images.unsqueeze(-1) if images.dim() == 3 else images.movedim(1, -1).contiguous()
        return pixels.movedim(-1, 1)


def _after_block(side: int, padding: int) -> int:
    """The length in pixels of a side of `side` pixels after one block, at least 0."""
    return max(side + 2 * padding - KERNEL + 1, 0) // POOL
