"""`ModelSpec`: the base of all models, a recipe that builds a torch module for samples of a given shape.

A recipe knows nothing of training, flat vectors or initial values: `executor.flat` owns those.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import nn

from emulator import plugins


class ModelSpec(plugins.Configured, ABC):
    """Base of the models; the shape of samples and the number of outputs come from the trace.

    `stacks` and `dense` decide which training strategy `auto` chooses on a CPU.

    Attributes:
        stacks: Whether training many clients in one batched step is faster than one after the other, as for
            fully connected models, unlike convolutional ones. None: it follows from the module's layers.
        dense: Whether the model is a sequence of affine maps of the flattened sample with ReLU between them,
            and nothing else. The parameter vector has each layer's weights and then its biases, layer by
            layer; a vector named `mask`, by which the features are multiplied, may come first.
        tells_next_token: Whether samples are token ids, and outputs are a logit for each token of the
            vocabulary, at each token of a sample. One of ours without it takes no tokens.
        has_values: Whether initial values are those with which the module is built, instead of ours for the
            layers that we know; it is then never built on the meta device.
    """

    chance: ClassVar[str] = "a module is built by torch's chance alone, which is seeded for it"
    stacks: bool | None = None
    dense: bool = False
    tells_next_token: bool = False
    has_values: bool = False

    @abstractmethod
    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        """A module that maps samples of shape (n, *sample_shape) to outputs of shape (n, num_outputs).

        Where outputs are of each token, as those of the objective `next_token`, it is (n, T, num_outputs).

        Args:
            sample_shape: The shape of one sample's features.
            num_outputs: The number of outputs: of labels, by default.

        Returns:
            A module of any layers, but for what `executor.probing` refuses.

        Raises:
            ConfigurationError: The model cannot take samples of that shape.
        """
