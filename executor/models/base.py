"""What a model is to the rest of the executor: a recipe that builds a module for a shape of samples.

A recipe knows nothing of training, flat vectors or initial values; those are `executor.flat`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import nn

from emulator import plugins


class ModelSpec(plugins.Configured, ABC):
    """A model by its parameters; the samples' shape and the number of labels come from the trace.

    `stacks` and `dense` say which strategy `auto` takes on a CPU. A fully connected model gains from training
    many clients in one batched step, a convolutional one does not. A `dense` one is nothing but affine maps
    of the flattened sample with ReLU between them, their weights and biases in this order in the vector of
    parameters; a vector named `mask` may come before them, by which the features are multiplied.
    """

    stacks: bool
    dense: bool = False

    @abstractmethod
    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        """A module that maps samples (n, *sample_shape) to logits (n, num_labels).

        ConfigurationError when the model cannot take samples of that shape.
        """
