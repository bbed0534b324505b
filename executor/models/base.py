"""`ModelSpec`: the base of all models, a recipe that builds a torch module for samples of a given shape.

A recipe knows nothing of training, flat vectors or initial values: `executor.flat` owns those.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import nn

from emulator import plugins
from emulator.plugins import returns


class ModelSpec(plugins.Configured, ABC):
    """Base of the models; the shape of samples and the number of labels come from the trace.

    `stacks` and `dense` decide which training strategy `auto` chooses on a CPU.

    Attributes:
        stacks: Whether training many clients in one batched step is faster than one after the other, as for
            fully connected models, unlike convolutional ones.
        dense: Whether the model is a sequence of affine maps of the flattened sample with ReLU between them,
            and nothing else. The parameter vector has each layer's weights and then its biases, layer by
            layer; a vector named `mask`, by which the features are multiplied, may come first.
    """

    chance: ClassVar[str] = "a model has no random numbers of its own yet: leave chance out"
    stacks: bool = False
    dense: bool = False

    @abstractmethod
    @returns("executor.checks:module")
    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        """A module that maps samples of shape (n, *sample_shape) to logits of shape (n, num_labels).

        Args:
            sample_shape: The shape of one sample's features.
            num_labels: The number of labels.

        Returns:
            A module without buffers and dropout, and with layers that `executor.flat` can initialise.

        Raises:
            ConfigurationError: The model cannot take samples of that shape.
        """
