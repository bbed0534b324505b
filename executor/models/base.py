"""`ModelSpec`: the base of all models, a recipe that builds a torch module for samples of a given shape.

A recipe knows nothing of training, flat vectors or initial values: `executor.flat` owns those.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import nn

from emulator import plugins
from emulator.declared import WrongAnswerError, expect, returns


def _module(module: nn.Module, model: ModelSpec, sample_shape: tuple[int, ...], num_labels: int) -> None:
    """Its parameters have no values: it is tried on the CPU, whatever they are."""
    tried = copy.deepcopy(module).to_empty(device="cpu").eval()
    try:
        with torch.device("cpu"), torch.no_grad():
            logits = tried(torch.zeros(2, *sample_shape))
    except Exception as error:
        problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise WrongAnswerError(f"must take samples of shape {sample_shape}, and raises {problem}") from error
    made = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    expect(made == (2, num_labels), f"must make logits of shape {(2, num_labels)} of 2 samples, not {made}")


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
    stacks: bool
    dense: bool = False

    @abstractmethod
    @returns(_module)
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
