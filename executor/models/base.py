"""What a model is to the rest of the executor: a recipe that builds a module for a shape of samples.

A recipe knows nothing of training, flat vectors or initial values; those are `executor.flat`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import nn

from emulator import plugins


class ModelSpec(ABC):
    """A model by its parameters; the samples' shape and the number of labels come from the trace.

    `stacks` says which strategy `auto` takes on a CPU: a dense model gains from training many clients in one
    batched step, a convolutional one does not.
    """

    Parameters: ClassVar[type[plugins.Parameters]] = plugins.NoParameters
    stacks: ClassVar[bool]

    def __init__(self, parameters: plugins.Parameters) -> None:
        self.parameters = parameters

    @abstractmethod
    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        """A module that maps samples (n, *sample_shape) to logits (n, num_labels).

        ConfigurationError when the model cannot take samples of that shape.
        """
